import { expect, test } from 'vitest';
import { requestWithoutArguments } from '../../src/api/call.ts';
import { operations } from '../../src/api/operations.ts';
import type { AnswerCache, CachedAnswer, ClaimedCall } from '../../src/storage/call-state.ts';

const cachedAnswer = (headline: string, now: number): CachedAnswer => ({
  answer: {
    value: { id: '1' },
    raw: { id: '1', headline },
    receipt: { charged: 1, remaining: 99, cached: false, requestId: 'r' },
  },
  at: now,
});
const answerNameOf = (id: string, group?: string) => ({ fingerprint: JSON.stringify(['getAd', { id }]), group });
const headlineOf = (cached: CachedAnswer | undefined) =>
  (cached?.answer.raw as { headline?: string } | undefined)?.headline;

export interface AnswersUnderTest {
  answers: AnswerCache;
  now: () => number;
  /** Moves the clock forward. */
  advanceTime(ms: number): Promise<void>;
}

/** The lifetime of cached responses in these tests, in milliseconds. */
export const ttlMs = 60_000;

/** Creates a call with the fields that the response cache reads. */
export const createCall = (tenantId = 't', signal = new AbortController().signal): ClaimedCall => ({
  request: requestWithoutArguments(operations.getAd),
  owner: { apiKey: 'k', tenantId },
  signal,
});

interface AnswerToCache {
  tenantId?: string;
  id?: string;
  group?: string | undefined;
  cached: CachedAnswer;
}

/** Claims a call and caches its response. */
export async function cacheAnswer(
  answers: AnswerCache,
  { tenantId = 't', id = '1', group, cached }: AnswerToCache,
): Promise<void> {
  await (await claimCall(answers, await answers.resolveName(tenantId, answerNameOf(id, group)), tenantId)).put(cached);
}

export async function claimCall(answers: AnswerCache, name: string | undefined, tenantId = 't') {
  const claim = await answers.claim(createCall(tenantId), name, { after: Infinity, onLost: async () => {} });
  if (claim.kind !== 'granted') throw new Error(`the claim is ${claim.kind}`);
  return claim;
}

/** Defines the tests of a response cache, in memory or in a shared store. */
export function testAnswers(open: () => Promise<AnswersUnderTest>): void {
  const find = async (answers: AnswerCache, id: string, { tenantId = 't', group }: Partial<AnswerToCache> = {}) => {
    const name = await answers.resolveName(tenantId, answerNameOf(id, group));
    return name === undefined ? undefined : answers.get(tenantId, name);
  };

  test('a cached response is returned only for its own tenant and call', async () => {
    const { answers, now, advanceTime: pass } = await open();
    expect(await find(answers, '1')).toBeUndefined();
    const cached = cachedAnswer('one', now());
    await cacheAnswer(answers, { cached });
    await pass(5000);
    const cachedResponse = await find(answers, '1');
    expect(cachedResponse?.answer).toEqual(cached.answer);
    // Allow for some difference: the store rounds to milliseconds, and the clocks run during the test.
    const age = now() - (cachedResponse?.at ?? 0);
    expect(age).toBeGreaterThan(4990);
    expect(age).toBeLessThan(35_000);
    const request = { onLost: async () => {} };
    expect(await answers.claim(createCall(), answerNameOf('1').fingerprint, request)).toMatchObject({
      kind: 'cached',
      cachedAnswer: { answer: cached.answer },
    });
    expect(await find(answers, '2')).toBeUndefined();
    expect(await find(answers, '1', { tenantId: 'other' })).toBeUndefined();
  });

  test('a newer response replaces the cached one and expires after its lifetime', async () => {
    const { answers, now, advanceTime: pass } = await open();
    for (const headline of ['one', 'two']) await cacheAnswer(answers, { cached: cachedAnswer(headline, now()) });
    expect(headlineOf(await find(answers, '1'))).toBe('two');
    await pass(ttlMs - 30_000);
    expect(headlineOf(await find(answers, '1'))).toBe('two');
    await pass(30_001);
    expect(await find(answers, '1')).toBeUndefined();
  });

  test('removing one cached response keeps all other responses', async () => {
    const { answers, now } = await open();
    for (const [tenantId, id] of [
      ['t', '1'],
      ['t', '2'],
      ['other', '1'],
    ] as const)
      await cacheAnswer(answers, { tenantId, id, cached: cachedAnswer(id, now()) });
    await (await claimCall(answers, answerNameOf('1').fingerprint)).forget();
    expect(await find(answers, '1')).toBeUndefined();
    expect(headlineOf(await find(answers, '2'))).toBe('2');
    expect(headlineOf(await find(answers, '1', { tenantId: 'other' }))).toBe('1');
  });

  test('removing a group of cached responses also removes the response of a call that began earlier', async () => {
    const { answers, now } = await open();
    const keep = (tenantId: string, id: string, group?: string) =>
      cacheAnswer(answers, { tenantId, id, group, cached: cachedAnswer(id, now()) });
    await keep('t', 'a', 'one');
    await keep('t', 'b', 'two');
    await keep('t', 'c');
    await keep('other', 'a', 'one');
    const early = await claimCall(answers, await answers.resolveName('t', answerNameOf('a', 'one')));
    await answers.forgetGroup('t', 'one');
    await early.put(cachedAnswer('stale', now()));
    const findAll = async () =>
      [
        await find(answers, 'a', { group: 'one' }),
        await find(answers, 'b', { group: 'two' }),
        await find(answers, 'c'),
      ].map(headlineOf);
    expect(await findAll()).toEqual([undefined, 'b', 'c']);
    await keep('t', 'a', 'one');
    expect(await findAll()).toEqual(['a', 'b', 'c']);
    expect(headlineOf(await find(answers, 'a', { tenantId: 'other', group: 'one' }))).toBe('a');
  });
}
