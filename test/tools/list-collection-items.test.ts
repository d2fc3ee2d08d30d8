import { expect } from 'vitest';
import { serviceTest } from '../support/fixtures.ts';

const test = serviceTest();

test('a collection of several pages is read to its end, each item once', async ({ server }) => {
  const found = await server.call('search_ads', { limit: 5 });
  const ids = found.data.items.map(({ id }) => id);
  const { data } = await server.call('list_collections');
  const all = data.items;
  const empty = all.find(({ adCount }) => adCount === 0) ?? all[0];
  for (const itemId of ids)
    await server.call('add_collection_item', { collectionId: empty?.id, itemType: 'ads', itemId });
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await server.call('list_collection_items', {
      collectionId: empty?.id,
      itemType: 'ads',
      limit: 2,
      ...(cursor !== undefined && { cursor }),
    });
    expect(page.data).toMatchObject({ collection: { id: empty?.id }, itemType: 'ads' });
    seen.push(...page.data.items.map(({ id }) => id));
    cursor = page.data.cursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toEqual(expect.arrayContaining(ids));
  expect(new Set(seen).size).toBe(seen.length);
});
