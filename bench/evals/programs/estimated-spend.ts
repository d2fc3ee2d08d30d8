import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  let sum = 0;
  let cursor: string | null | undefined;
  do {
    const page = await tools.search_ads({ filters: { countries: ['NZ'] }, limit: 100, ...(cursor && { cursor }) });
    for (const ad of page.items) sum += ad.adSpendMax ?? 0;
    cursor = page.cursor;
  } while (cursor);
  return sum;
}
