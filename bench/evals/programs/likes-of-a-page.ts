import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const { items } = await tools.search_pages({ filters: { query: 'Lichtwerft' }, limit: 1 });
  const [found] = items;
  if (found === undefined) throw new Error('There is none.');
  const { page } = await tools.get_page({ pageId: found.pageId });
  return (page.pageLikes ?? 0) + (page.pageIgFollowers ?? 0);
}
