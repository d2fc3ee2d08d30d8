import { describe, expect } from 'vitest';
import { json } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();

describe('a cursor says what it is expected to cost', () => {
  test('on the next page: as much as this one', async ({ server }) => {
    const { text, data } = await server.call('search_ads', { limit: 20 });
    expect(text).toContain(`\n\nNext page: about 2 credits, with cursor:\n${data.cursor}\n`);
    expect(data.nextPage).toEqual({ credits: 2 });
    expect((await server.call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(2);
  });

  test('on the rest of a page that was cut: nothing', async ({ start }) => {
    const { call } = await start({ resultTokens: 1500 });
    const { text, data } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page is free with cursor:\n${data.cursor}\n`);
    expect(data.nextPage).toEqual({ credits: 0 });
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(0);
  });

  test('on the rest of a page that is not cached: the page', async ({ start }) => {
    const { call } = await start({ resultTokens: 1500, cacheSeconds: 0 });
    const { text, data } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page costs about 3 credits with cursor:\n${data.cursor}\n`);
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(3);
  });

  test('on the items of a collection', async ({ server }) => {
    const [collection] = (await server.call('list_collections')).data.items;
    const items = { collectionId: collection?.id, itemType: 'ads' };
    for (const { id } of (await server.call('search_ads', { limit: 2 })).data.items)
      await server.call('add_collection_item', { ...items, itemId: id });
    const { text } = await server.call('list_collection_items', { ...items, limit: 1 });
    expect(text).toContain('\n\nNext page: about 1 credit, with cursor:\n');
  });
});

upstreamTest('a cursor says nothing of its cost while that is unknown', async ({ upstream, server }) => {
  upstream.does(json({ items: [{ id: uuidOf('a') }], cursor: 'more', hasMore: true }));
  const { text, data } = await server.call('search_ads', { limit: 1 });
  expect(text).toContain('\n\nMore with cursor:\n');
  expect(data).not.toHaveProperty('nextPage');
});

upstreamTest('the last page has no price after it', async ({ upstream, server }) => {
  upstream.does(
    json(
      { items: [{ id: uuidOf('a') }], cursor: null, hasMore: false },
      { headers: { 'x-service-credits-charged': '1' } },
    ),
  );
  expect((await server.call('search_ads', { limit: 1 })).data).not.toHaveProperty('nextPage');
});
