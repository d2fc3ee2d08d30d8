import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { acquireLock, type Lock } from '../../src/lock.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { getExampleArguments, singleCallTools } from '../support/every-tool.ts';
import {
  type Behaviour,
  createCreditHeaders,
  delays,
  faults,
  respondAsDocumented,
  respondWithError,
  respondWithJson,
  startUpstream,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

/** The possible outcomes of a request to the API. */
const outcomes = {
  answers: respondAsDocumented,
  'turns down (502)': respondWithError(502),
  'turns down (503)': respondWithError(503),
  'turns down (503, charge 0)': respondWithJson({}, { status: 503, headers: createCreditHeaders(0) }),
  'turns down (504)': respondWithError(504),
  resets: faults.resets,
  refuses: respondWithError(422),
  fails: respondWithError(500),
  'is over its limit': respondWithError(429),
  'wants money': respondWithError(402),
} satisfies Record<string, Behaviour>;
type Outcome = keyof typeof outcomes;

/**
 * Returns the expected number of requests for a sequence of outcomes. Implements the retry rules independently of the
 * server.
 */
function requestsFor(
  outcome: readonly Outcome[],
  { isGatedTool, tool }: { isGatedTool: boolean; tool: string },
): number {
  const writes = tool === 'add_collection_item';
  let requestCount = 0;
  let blind = 0;
  for (const next of outcome) {
    requestCount++;
    const turnedDown = next.startsWith('turns down');
    if (!turnedDown && next !== 'resets') return requestCount;
    if (requestCount === 3) return requestCount;
    if (isGatedTool && !next.startsWith('turns down (503')) return requestCount;
    if (next === 'resets' || writes) blind++;
    if (writes && blind > 1) return requestCount;
  }
  return requestCount;
}

test('the server retries failed calls exactly as often as the documented retry rules allow', async ({
  upstream,
  server,
}) => {
  const kinds = fc.constantFrom(...(Object.keys(outcomes) as Outcome[]));
  const runs = fc.array(kinds, { minLength: 3, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...singleCallTools), runs, async (each, run) => {
      upstream.respondWith(...run.map((kind) => outcomes[kind]));
      upstream.credits = each.tool === 'get_credits' ? undefined : respondAsDocumented;
      const { isError } = await server.call(each.tool, each.args);
      const sentRequests = upstream.requests.filter(
        ({ path }) => each.tool === 'get_credits' || !path.endsWith('/credits'),
      );
      const expected = requestsFor(run, each);
      expect(sentRequests).toHaveLength(expected);
      expect(isError).toBe(run[expected - 1] !== 'answers');
    }),
    { numRuns: 200 },
  );
});

test('a paid call is retried after a 503 response that says that nothing was charged', async ({ upstream, start }) => {
  const server = await start({ creditBudget: 10 });
  upstream.credits = respondAsDocumented;
  upstream.respondWith(
    respondWithJson({}, { status: 503, headers: createCreditHeaders(0) }),
    respondWithJson({ id: 'x' }, { headers: createCreditHeaders(3) }),
  );
  const { isError, data } = await server.call('get_ad', getExampleArguments('get_ad'));
  expect([isError, data.receipt.charged]).toEqual([false, 3]);
  const { thisServer } = (await server.call('get_credits')).data;
  expect(thisServer).toMatchObject({ charged: 3, paidCalls: 1 });
  expect(thisServer).not.toHaveProperty('uncertain');
});

test.for(['nonsense', '-1', ''])(
  'a paid call is not retried after a 503 response with the invalid charge "%s"',
  async (charge, { upstream, start }) => {
    const serverWithBudget = await start({ creditBudget: 10 });
    upstream.credits = respondAsDocumented;
    upstream.respondWith(
      respondWithJson({ id: 'x' }, { headers: createCreditHeaders(3) }),
      respondWithJson({}, { status: 503, headers: createCreditHeaders(charge) }),
    );
    await serverWithBudget.call('get_ad', getExampleArguments('get_ad'));
    const { text } = await serverWithBudget.call('get_ad', getExampleArguments('get_ad'));
    expect(upstream.requests.filter(({ path }) => !path.endsWith('/credits'))).toHaveLength(2);
    expect(text).toContain('unknown whether the service charged');
    expect((await serverWithBudget.call('get_credits')).data.thisServer).toMatchObject({ charged: 3, uncertain: 3 });
  },
);

test('the error of a paid call whose deadline passes while its cost is being stored does not say "Nothing was sent"', async ({
  upstream,
  start,
}) => {
  const files = createTemporaryFolder();
  const server = await start({ files, timeoutMs: 1500, cacheSeconds: 900 });
  await server.call('get_ad', { adId: deriveUuid('first') });
  const [keyFile = ''] = readdirSync(join(files, 'keys')).filter((name) => name.endsWith('.log'));
  let lock: Lock | undefined;
  upstream.respondWith(async (request, response) => {
    // The server cannot store the cost of the call while this test holds the lock.
    lock = await acquireLock(join(files, 'keys', `${keyFile}.lock`));
    respondWithError(504)(request, response);
  });
  const { text, error } = await server.call('get_ad', { adId: deriveUuid('second') });
  lock?.release();
  expect(error).toMatchObject({ kind: 'timeout', retryable: false });
  expect(text).not.toContain('Nothing was sent');
});

describe('Retries of add_collection_item', () => {
  const saving = { collectionId: deriveUuid('c'), itemType: 'ads', itemId: deriveUuid('x') };
  const answer = (added: boolean, headers = {}) =>
    respondWithJson(
      { collection: { id: 'c', name: 'Saved' }, itemType: 'ads', itemId: deriveUuid('x'), added },
      { headers },
    );

  test('the result of add_collection_item says whether the saved item is an ad or an advertiser page', async ({
    upstream,
    server,
  }) => {
    upstream.respondWith(
      faults.resets,
      respondWithJson({ collection: { id: 'c' }, itemType: 'pages', itemId: '4711', added: false }),
    );
    const { text } = await server.call('add_collection_item', { ...saving, itemType: 'pages', itemId: '4711' });
    expect(text).toMatch(/^Page 4711: The item is in the collection\./);
  });

  test.for(['resets', 'turns down (504)'] as const)(
    'after a retry, add_collection_item does not claim that the item was saved before the call (first attempt: the API %s)',
    async (failure, { upstream, server }) => {
      upstream.respondWith(outcomes[failure], answer(false));
      const { text, data } = await server.call('add_collection_item', saving);
      expect(upstream.requests).toHaveLength(2);
      expect(data).toMatchObject({ added: false, note: expect.stringContaining('unknown') });
      expect(text).toContain('unknown whether this call added it or it was there before');
      expect(text).not.toContain('already');

      upstream.respondWith(outcomes[failure], answer(true));
      const added = await server.call('add_collection_item', saving);
      expect(added.data.note).toBeUndefined();
      expect(added.text).toContain(`Ad ${deriveUuid('x')} added to`);
    },
  );

  test('add_collection_item says that saving again is safe if an earlier save was free and both attempts fail', async ({
    upstream,
    server,
  }) => {
    upstream.respondWith(answer(true, createCreditHeaders(0)), faults.resets);
    await server.call('add_collection_item', saving);
    const { text, error } = await server.call('add_collection_item', saving);
    expect(upstream.requests).toHaveLength(3);
    expect(error?.retryable).toBe(true);
    expect(text).toContain('Saving it again is safe');
  });

  test('add_collection_item never says "Nothing was sent" if its first request was sent and its retry cannot connect', async ({
    start,
  }) => {
    const leaving = await startUpstream((_, response) => {
      response.socket?.resetAndDestroy();
      void leaving.close();
    });
    const serverWithLostUpstream = await start({ baseUrl: leaving.baseUrl });
    const { text } = await serverWithLostUpstream.call('add_collection_item', saving);
    expect(leaving.requests).toHaveLength(1);
    expect(text).not.toContain('Nothing was sent');
  });

  test('add_collection_item never says "Nothing was sent" if it times out between two attempts', async ({
    upstream,
    start,
  }) => {
    const hastyServer = await start({ timeoutMs: 250 }, { random: () => 1 });
    upstream.respondWith(faults.resets);
    const { text, error } = await hastyServer.call('add_collection_item', saving);
    expect(error?.kind).toBe('timeout');
    expect(text).not.toContain('Nothing was sent');
  });

  test('the server reads a collection from the API again after a save whose outcome is unknown', async ({
    upstream,
    start,
  }) => {
    const cachingServer = await start({ cacheSeconds: 900 });
    const list = respondWithJson({ collection: { id: 'c' }, items: [], cursor: null, hasMore: false });
    const readList = () =>
      cachingServer.call('list_collection_items', { collectionId: saving.collectionId, itemType: 'ads' });
    upstream.respondWith(list, respondWithError(504), respondWithError(404), list);
    await readList();
    await readList();
    await cachingServer.call('add_collection_item', saving);
    expect(upstream.requests).toHaveLength(3);
    await readList();
    expect(upstream.requests).toHaveLength(4);
  });

  test.for<[string, Behaviour]>([
    ['is reset', faults.resets],
    ['gets an incomplete response', faults['ends in the middle of the body']],
    ['gets no response', delays.hangs],
    ['gets an error from a gateway', respondWithError(502)],
  ])(
    'add_collection_item is not retried if its request %s and an earlier save was charged',
    async ([_, fault], { upstream, start }) => {
      const server = await start(fault === delays.hangs ? { timeoutMs: 2500 } : {});
      upstream.respondWith(answer(true, createCreditHeaders(3)), fault);
      await server.call('add_collection_item', saving);
      const { text, error } = await server.call('add_collection_item', saving);
      expect(error?.retryable).toBe(false);
      expect(text).toContain('Retrying may help, but may be charged again: ask the user first.');
      expect(text).toContain('saving it again may be charged again');
      expect(upstream.requests).toHaveLength(2);
    },
  );
});

test('the upper bound of the random delay before a retry doubles each time, and retries stop at the deadline', async ({
  upstream,
  start,
}) => {
  let draws = 0;
  const random = () => {
    draws++;
    return 0.05;
  };
  upstream.respondWith(respondWithError(503));
  const started = performance.now();
  await (await start({ timeoutMs: 5000 }, { random })).call('whoami');
  expect(draws).toBe(2);
  expect(performance.now() - started).toBeGreaterThanOrEqual(0.05 * 300 + 0.05 * 600 - 5);

  upstream.respondWith(respondWithError(503));
  const impatient = await start({ timeoutMs: 890 }, { random: () => 1 });
  const { error } = await impatient.call('whoami');
  expect(error).toMatchObject({ kind: 'unavailable', status: 503 });
  expect(upstream.requests).toHaveLength(2);
});
