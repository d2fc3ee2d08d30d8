import { expect, test } from 'vitest';
import type { AnswerCache, CachedAnswer } from '../../src/state/ports.ts';

const cachedAnswer = (headline: string, now: number): CachedAnswer => ({
  answer: {
    value: { id: '1' },
    raw: { id: '1', headline },
    receipt: { charged: 1, remaining: 99, cached: false, requestId: 'r' },
    cacheId: headline,
  },
  at: now,
});
const nameOf = (id: string, group?: string) => ({ fingerprint: JSON.stringify(['getAd', { id }]), group });
const headlineOf = (kept: CachedAnswer | undefined) =>
  (kept?.answer.raw as { headline?: string } | undefined)?.headline;

export interface AnswersUnderTest {
  answers: AnswerCache;
  now: () => number;
  /** Lets time pass. */
  pass(ms: number): Promise<void>;
}

/** How long answers are cached in these tests. */
export const ttl = 60_000;

/** What every store of answers does, in memory or in Redis. */
export function answersSuite(open: () => Promise<AnswersUnderTest>): void {
  test('returns what was kept, with its age, for its tenant and its call alone', async () => {
    const { answers, now, pass } = await open();
    const { cached, store } = await answers.begin('t', nameOf('1'));
    expect(cached).toBeUndefined();
    await store(cachedAnswer('one', now()));
    await pass(5000);
    const found = await answers.get('t', nameOf('1'));
    expect(found?.answer).toEqual(cachedAnswer('one', 0).answer);
    // A store's clock tells milliseconds, ours their parts; and both go on.
    const age = now() - (found?.at ?? 0);
    expect(age).toBeGreaterThan(4990);
    expect(age).toBeLessThan(35_000);
    expect((await answers.begin('t', nameOf('1'))).cached).toEqual(found && { ...found, at: expect.any(Number) });
    expect(await answers.get('t', nameOf('2'))).toBeUndefined();
    expect(await answers.get('other', nameOf('1'))).toBeUndefined();
  });

  test('keeps the newest, until its time is over', async () => {
    const { answers, now, pass } = await open();
    for (const headline of ['one', 'two'])
      await (await answers.begin('t', nameOf('1'))).store(cachedAnswer(headline, now()));
    expect(headlineOf(await answers.get('t', nameOf('1')))).toBe('two');
    await pass(ttl - 30_000);
    expect(headlineOf(await answers.get('t', nameOf('1')))).toBe('two');
    await pass(30_001);
    expect(await answers.get('t', nameOf('1'))).toBeUndefined();
  });

  test('removes one answer, of its tenant alone', async () => {
    const { answers, now } = await open();
    for (const [tenant, id] of [
      ['t', '1'],
      ['t', '2'],
      ['other', '1'],
    ] as const)
      await (await answers.begin(tenant, nameOf(id))).store(cachedAnswer(id, now()));
    await answers.remove('t', nameOf('1'), cachedAnswer('newer', now()).answer);
    expect(await answers.get('t', nameOf('1'))).toBeUndefined();
    expect(headlineOf(await answers.get('t', nameOf('2')))).toBe('2');
    expect(headlineOf(await answers.get('other', nameOf('1')))).toBe('1');
  });

  test('drops a group, and what was asked before that is not cached', async () => {
    const { answers, now } = await open();
    const keep = async (tenant: string, id: string, group?: string) =>
      (await answers.begin(tenant, nameOf(id, group))).store(cachedAnswer(id, now()));
    await keep('t', 'a', 'one');
    await keep('t', 'b', 'two');
    await keep('t', 'c');
    await keep('other', 'a', 'one');
    const early = await answers.begin('t', nameOf('a', 'one'));
    await answers.invalidate('t', 'one');
    await early.store(cachedAnswer('stale', now()));
    const found = async () =>
      Promise.all(
        [nameOf('a', 'one'), nameOf('b', 'two'), nameOf('c')].map(async (name) =>
          headlineOf(await answers.get('t', name)),
        ),
      );
    expect(await found()).toEqual([undefined, 'b', 'c']);
    await keep('t', 'a', 'one');
    expect(await found()).toEqual(['a', 'b', 'c']);
    expect(headlineOf(await answers.get('other', nameOf('a', 'one')))).toBe('a');
  });
}
