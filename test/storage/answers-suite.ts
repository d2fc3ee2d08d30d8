import { expect, test } from 'vitest';
import { createRequestWithoutArguments } from '../../src/api/call.ts';
import { operations } from '../../src/api/operations.ts';
import type { CachedResponse, ClaimedCall, ResponseCache } from '../../src/storage/call-state.ts';

const cachedAnswer = (headline: string, now: number): CachedResponse => ({
  response: {
    validatedBody: { id: '1' },
    rawBody: { id: '1', headline },
    receipt: { charged: 1, remaining: 99, cached: false, requestId: 'r' },
  },
  arrivedAt: now,
});
const answerNameOf = (id: string, group?: string) => ({ fingerprint: JSON.stringify(['getAd', { id }]), group });
const headlineOf = (cached: CachedResponse | undefined) =>
  (cached?.response.rawBody as { headline?: string } | undefined)?.headline;

export interface AnswersUnderTest {
  responseCache: ResponseCache;
  now: () => number;
  /** Moves the clock forward. */
  advanceTime(ms: number): Promise<void>;
}

/** The lifetime of cached responses in these tests, in milliseconds. */
export const ttlMs = 60_000;

/** Creates a call with the fields that the response cache reads. */
export const createCall = (tenantId = 't', signal = new AbortController().signal): ClaimedCall => ({
  request: createRequestWithoutArguments(operations.getAd),
  owner: { apiKey: 'k', tenantId },
  signal,
});

interface AnswerToCache {
  tenantId?: string;
  id?: string;
  group?: string | undefined;
  cached: CachedResponse;
}

/** Claims a call and caches its response. */
export async function cacheAnswer(
  responseCache: ResponseCache,
  { tenantId = 't', id = '1', group, cached }: AnswerToCache,
): Promise<void> {
  await (
    await claimCall(responseCache, await responseCache.resolveName(tenantId, answerNameOf(id, group)), tenantId)
  ).cacheResponse(cached);
}

export async function claimCall(responseCache: ResponseCache, name: string | undefined, tenantId = 't') {
  const claim = await responseCache.claim(createCall(tenantId), name, {
    arrivedAfter: Infinity,
    onProcessDied: async () => {},
  });
  if (claim.kind !== 'granted') throw new Error(`the claim is ${claim.kind}`);
  return claim;
}

/** Defines the tests of a response cache, in memory or in a shared store. */
export function testAnswers(open: () => Promise<AnswersUnderTest>): void {
  const find = async (
    responseCache: ResponseCache,
    id: string,
    { tenantId = 't', group }: Partial<AnswerToCache> = {},
  ) => {
    const name = await responseCache.resolveName(tenantId, answerNameOf(id, group));
    return name === undefined ? undefined : responseCache.get(tenantId, name);
  };

  test('a cached response is returned only for the same API key and the same call', async () => {
    const { responseCache, now, advanceTime: pass } = await open();
    expect(await find(responseCache, '1')).toBeUndefined();
    const cached = cachedAnswer('one', now());
    await cacheAnswer(responseCache, { cached });
    await pass(5000);
    const cachedResponse = await find(responseCache, '1');
    expect(cachedResponse?.response).toEqual(cached.response);
    // Allow for some difference: the store rounds to milliseconds, and the clocks run during the test.
    const age = now() - (cachedResponse?.arrivedAt ?? 0);
    expect(age).toBeGreaterThan(4990);
    expect(age).toBeLessThan(35_000);
    const request = { onProcessDied: async () => {} };
    expect(await responseCache.claim(createCall(), answerNameOf('1').fingerprint, request)).toMatchObject({
      kind: 'cached',
      cachedResponse: { response: cached.response },
    });
    expect(await find(responseCache, '2')).toBeUndefined();
    expect(await find(responseCache, '1', { tenantId: 'other' })).toBeUndefined();
  });

  test('a newer response replaces the cached response of the same call and expires after its lifetime', async () => {
    const { responseCache, now, advanceTime: pass } = await open();
    for (const headline of ['one', 'two']) await cacheAnswer(responseCache, { cached: cachedAnswer(headline, now()) });
    expect(headlineOf(await find(responseCache, '1'))).toBe('two');
    await pass(ttlMs - 30_000);
    expect(headlineOf(await find(responseCache, '1'))).toBe('two');
    await pass(30_001);
    expect(await find(responseCache, '1')).toBeUndefined();
  });

  test('removing one response from the cache keeps all other cached responses', async () => {
    const { responseCache, now } = await open();
    for (const [tenantId, id] of [
      ['t', '1'],
      ['t', '2'],
      ['other', '1'],
    ] as const)
      await cacheAnswer(responseCache, { tenantId, id, cached: cachedAnswer(id, now()) });
    await (await claimCall(responseCache, answerNameOf('1').fingerprint)).removeResponse();
    expect(await find(responseCache, '1')).toBeUndefined();
    expect(headlineOf(await find(responseCache, '2'))).toBe('2');
    expect(headlineOf(await find(responseCache, '1', { tenantId: 'other' }))).toBe('1');
  });

  test('if a group of responses is removed from the cache, the response of a running call in this group is not cached', async () => {
    const { responseCache, now } = await open();
    const keep = (tenantId: string, id: string, group?: string) =>
      cacheAnswer(responseCache, { tenantId, id, group, cached: cachedAnswer(id, now()) });
    await keep('t', 'a', 'one');
    await keep('t', 'b', 'two');
    await keep('t', 'c');
    await keep('other', 'a', 'one');
    const early = await claimCall(responseCache, await responseCache.resolveName('t', answerNameOf('a', 'one')));
    await responseCache.forgetGroup('t', 'one');
    await early.cacheResponse(cachedAnswer('stale', now()));
    const findAll = async () =>
      [
        await find(responseCache, 'a', { group: 'one' }),
        await find(responseCache, 'b', { group: 'two' }),
        await find(responseCache, 'c'),
      ].map(headlineOf);
    expect(await findAll()).toEqual([undefined, 'b', 'c']);
    await keep('t', 'a', 'one');
    expect(await findAll()).toEqual(['a', 'b', 'c']);
    expect(headlineOf(await find(responseCache, 'a', { tenantId: 'other', group: 'one' }))).toBe('a');
  });
}
