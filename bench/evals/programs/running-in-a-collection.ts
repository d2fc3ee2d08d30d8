import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const { items: collections } = await tools.list_collections();
  const collection = collections.find(({ name }) => name === 'Skincare that lasts');
  if (collection === undefined) throw new Error('There is none.');
  const { items } = await tools.list_collection_items({ collectionId: collection.id, itemType: 'ads', limit: 100 });
  return items.filter((ad) => ad.stillRunning === true).length;
}
