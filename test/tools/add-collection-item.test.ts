import { expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import {
  createCreditHeaders,
  createCreditStatus,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest();
const collectionId = deriveUuid('collection');
const createIds = (count: number) => Array.from({ length: count }, (_, index) => deriveUuid(`item ${index}`));
const buildArguments = (itemIds: string[]) => ({ collectionId, itemType: 'ads', itemIds });

/** Responds to the item ids in `replies` with these responses, and adds all other items. */
const createSavingResponse =
  (replies: Record<string, ReturnType<typeof respondWithJson>> = {}): ReturnType<typeof respondWithJson> =>
  (request, response, body = '{}') => {
    const { itemId = '' } = JSON.parse(body || '{}') as { itemId?: string };
    const added = { collection: { id: collectionId, name: 'Saved' }, itemType: 'ads', itemId, added: true };
    (replies[itemId] ?? respondWithJson(added, { headers: createCreditHeaders(0) }))(request, response, body);
  };

test('add_collection_item saves several items one after another and sends each item only once', async ({
  upstream,
  server,
}) => {
  const ids = createIds(12);
  const [first = '', second = '', third = ''] = ids;
  const alreadySavedItem = {
    collection: { id: collectionId, name: 'Saved' },
    itemType: 'ads',
    itemId: second,
    added: false,
  };
  upstream.respondWith(
    createSavingResponse({
      [second]: respondWithJson(alreadySavedItem),
      [third]: respondWithError(404, { message: 'There is no such ad' }),
    }),
  );
  const { data, text } = await server.call('add_collection_item', buildArguments([...ids, first.toUpperCase()]));
  const sentItemIds = upstream.requests.map(({ body }) => JSON.parse(body).itemId);
  expect(sentItemIds).toEqual(ids);
  const problem = expect.stringContaining('no such ad');
  expect(data.items).toEqual(
    ids.map((itemId, at) => ({ itemId, added: at !== 1 && at !== 2, ...(at === 2 && { problem }) })),
  );
  expect(data).toMatchObject({ itemType: 'ads', collection: { id: collectionId }, receipt: { calls: 12 } });
  expect(text).toContain(`"Saved" ${collectionId}: 10 added, 1 already there.\n${third}: `);
});

test.for([
  ['402', respondWithError(402), 'error'],
  ['429', respondWithError(429), 'usage_limit'],
  ['503', respondWithError(503), 'error'],
] as const)(
  'add_collection_item stops after an HTTP status %s and names the items that it did not try to save',
  async ([, reply, stopped], { upstream, start }) => {
    const ids = createIds(4);
    const server = await start();
    upstream.credits = respondWithJson(createCreditStatus());
    upstream.respondWith(createSavingResponse({ [ids[1] ?? '']: reply }));
    const { data, text } = await server.call('add_collection_item', buildArguments(ids));
    expect(data).toMatchObject({
      stopped,
      items: [{ added: true }, { problem: expect.any(String) }, { problem: 'not tried' }, { problem: 'not tried' }],
    });
    expect(text).toContain(`Not tried: ${ids[2]} and ${ids[3]}. Call again with these.`);
    expect(upstream.requests.filter(({ body }) => body.includes(ids[2] ?? ''))).toEqual([]);
  },
);

test('add_collection_item lists the saved items even if another item fails and the response lacks the collection', async ({
  upstream,
  server,
}) => {
  const ids = createIds(3);
  const savedItem = respondWithJson({ itemType: 'ads', added: true });
  upstream.respondWith(savedItem, respondWithError(404, { message: 'There is no such ad' }), savedItem);
  const { data, text } = await server.call('add_collection_item', buildArguments(ids));
  expect(data.items).toMatchObject([{ added: true }, { added: false, problem: expect.any(String) }, { added: true }]);
  expect(text).toContain(`Into the collection: 2 added, 0 already there.\n${ids[1]}: `);
});

test('add_collection_item returns an error if it could not save any item', async ({ upstream, server }) => {
  upstream.respondWith(respondWithError(404, { message: 'There is no such collection' }));
  expect((await server.call('add_collection_item', buildArguments(createIds(2)))).error).toMatchObject({
    kind: 'not_found',
  });
  upstream.respondWith(createSavingResponse());
  for (const [args, problem] of [
    [buildArguments(createIds(51)), 'itemIds'],
    [buildArguments([]), 'itemIds'],
    [buildArguments([...createIds(1), 'x']), 'itemIds.1: must be a UUID'],
    [{ ...buildArguments(createIds(1)), itemId: deriveUuid('x') }, 'pass either itemId or itemIds'],
    [{ collectionId, itemType: 'ads' }, 'pass either itemId or itemIds'],
  ] as const) {
    const { text, error } = await server.call('add_collection_item', args);
    expect([error?.kind, text]).toEqual(['invalid_request', expect.stringContaining(problem)]);
  }
  expect(upstream.requests).toEqual([]);
});
