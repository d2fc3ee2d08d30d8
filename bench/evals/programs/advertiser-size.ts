import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const { items } = await tools.search_pages({ filters: { countries: ['US'] }, limit: 50 });
  return items.reduce((most, page) => Math.max(most, page.adsAmount ?? 0), 0);
}
