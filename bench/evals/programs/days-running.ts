import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  let count = 0;
  let cursor: string | null | undefined;
  do {
    const page = await tools.search_ads({ filters: { countries: ['IE'] }, limit: 100, ...(cursor && { cursor }) });
    count += page.items.filter((ad) => (ad.daysRunning ?? 0) > 90).length;
    cursor = page.cursor;
  } while (cursor);
  return count;
}
