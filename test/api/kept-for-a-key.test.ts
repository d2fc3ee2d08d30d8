import { expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';

const test = freshServiceTest();

test('saving an item discards cached answers of that tenant only', async ({ service, server }) => {
  const other = await server.as(service.createKey());
  const ids = (await server.call('list_collections')).data.items.map(({ id }) => id);
  const ad = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
  const theirs = (await other.call('list_collections')).data.items[0]?.id;
  await other.call('list_collection_items', { collectionId: theirs, itemType: 'ads' });
  await server.call('list_collection_items', { collectionId: ids[1], itemType: 'ads' });
  service.requests.length = 0;
  await server.call('add_collection_item', { collectionId: ids[0], itemType: 'ads', itemId: ad });
  await other.call('list_collection_items', { collectionId: theirs, itemType: 'ads' });
  await server.call('list_collection_items', { collectionId: ids[1], itemType: 'ads' });
  expect(service.paid()).toBe(1);
});

test('cached answers of a key are dropped when the service refuses the key', async ({ service, server }) => {
  const key = service.createKey();
  const revoked = await server.as(key);
  const search = { limit: 3, filters: { countries: ['US'] } };
  await revoked.call('search_ads', search);
  service.library.keys.revoke(key.slice(0, 17));
  expect((await revoked.call('whoami')).error?.kind).toBe('unauthorized');
  expect((await revoked.call('search_ads', search)).error?.kind).toBe('unauthorized');
});
