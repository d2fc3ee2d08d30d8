import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createAd } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { ad, createCreditHeaders, page, respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest();

/** Invalid items that a list may contain instead of an ad or an advertiser page. */
const unusableItem = fc.oneof(
  fc.constantFrom(null, 'text', 7, true, [], {}, { headline: 'no id' }, { pageName: 'no id' }),
  fc.constantFrom(7, null, '', ['x'], { a: 1 }).map((id) => ({ id, pageId: id, headline: 'odd id' })),
);

const listing = (items: readonly unknown[], charged: number) =>
  respondWithJson(
    { items, cursor: null, hasMore: false, totalHits: items.length },
    { headers: createCreditHeaders(charged) },
  );

const lists = {
  search_ads: { args: {}, usable: (index: number) => createAd(index), idOf: 'id' },
  search_pages: { args: {}, usable: (index: number) => ({ ...page, pageId: `${index}` }), idOf: 'pageId' },
  list_collection_items: {
    args: { collectionId: deriveUuid('c'), itemType: 'ads' },
    usable: (index: number) => createAd(index),
    idOf: 'id',
  },
};

test('a result list omits items without an id and states their number', async ({ upstream, start }) => {
  const someItems = fc.array(fc.option(unusableItem, { nil: undefined }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(lists)), someItems, async (tool, mixed) => {
      const { args, usable, idOf } = lists[tool as keyof typeof lists];
      const items = [usable(0), ...mixed.map((one, index) => (one === undefined ? usable(index + 1) : one))];
      const ids = [usable(0), ...mixed.flatMap((one, index) => (one === undefined ? usable(index + 1) : []))];
      const unusable = mixed.filter((one) => one !== undefined).length;
      upstream.respondWith(listing(items, 1));
      const server = await start();
      for (const charged of [1, 0]) {
        const { data, text, isError } = await server.call(tool, args);
        expect(isError).toBe(false);
        expect(data.items.map((item) => (item as Record<string, unknown>)[idOf])).toEqual(
          ids.map((item) => (item as Record<string, unknown>)[idOf]),
        );
        expect(data.receipt.charged).toBe(charged);
        expect((data.receipt as { unusable?: number }).unusable).toBe(unusable === 0 ? undefined : unusable);
        if (unusable === 1) expect(text).toContain('1 item that the service sent has no id and is left out.');
        else if (unusable > 1) expect(text).toContain(`${unusable} items that the service sent have no id`);
        else expect(text).not.toContain('left out');
      }
      expect(upstream.requests.filter(({ path }) => path.includes('v1/'))).toHaveLength(1);
      await server.close();
    }),
    { numRuns: 25 },
  );
});

describe('API responses whose items have no id', () => {
  test('a search whose items are all unusable still reports its total and its charge', async ({ upstream, server }) => {
    upstream.respondWith(listing([{ headline: 'no id' }], 1));
    const counted = await server.call('count_ads');
    expect(counted.data).toMatchObject({ total: 1, receipt: { charged: 1, unusable: 1 } });
    const searched = await server.call('search_ads', { limit: 5 });
    expect(searched.data).toMatchObject({ items: [], receipt: { charged: 1, unusable: 1 } });
  });
});

test('list_collection_items returns an error if every item in the API response has the wrong type', async ({
  upstream,
  server,
}) => {
  upstream.respondWith(listing([page, page], 1));
  const { text, error } = await server.call('list_collection_items', lists.list_collection_items.args);
  expect(error?.kind).toBe('unexpected_response');
  expect(text).toContain('The items are not of the requested item type.');
  expect(text).toContain('The service says it charged 1 credits for this call.');
});

test('gather_ads stores the valid ads of a result page that also has invalid items', async ({ upstream, server }) => {
  upstream.respondWith(listing([ad, { headline: 'no id' }, null], 1));
  const { data, text } = await server.call('gather_ads', { maxCredits: 10 });
  expect(data).toMatchObject({ read: 1, stopped: 'end', receipt: { charged: 1, unusable: 2 } });
  expect(text).toContain('2 items that the service sent have no id and are left out.');
  expect((await server.call('query_ads', { sql: 'SELECT count(*) FROM ads' })).data.rows).toEqual([[1]]);
});
