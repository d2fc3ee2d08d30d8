import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const { items } = await tools.list_collections();
  return items.reduce((sum, collection) => sum + (collection.adCount ?? 0), 0);
}
