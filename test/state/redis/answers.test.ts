import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { memoryAnswers } from '../../../src/state/memory-state.ts';
import type { Redis } from '../../../src/state/redis/open-redis.ts';
import { redisAnswers } from '../../../src/state/redis/redis-answers.ts';
import { redisWindows } from '../../../src/state/redis/redis-windows.ts';
import { Removals } from '../../../src/state/redis/removals.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { answersSuite, ttl } from '../answers-suite.ts';
import { joinRedis } from './fixture.ts';

const name = { fingerprint: '["getAd",{"id":"1"}]' };
const answer = {
  value: { id: '1' },
  raw: { id: '1' },
  receipt: { charged: 1, remaining: 9, cached: false, requestId: 'r' },
};

describe('the cached answers of one process', () => {
  answersSuite(async () => {
    let time = 1_000_000;
    const now = () => time;
    const pass = async (ms: number) => {
      time += ms;
    };
    return { answers: memoryAnswers({ maxBytes: 1_000_000, ttl, now }), now, pass };
  });
});

describeWithRedis('what all replicas keep', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(() => void server.cli('FLUSHALL'));
  afterAll(() => server.close());

  /** Time passes in Redis, whose clock counts: all that is kept has so much less time left. */
  const pass = async (ms: number) => {
    for (const key of server.cli('KEYS', '*').split('\n')) {
      const left = Number(server.cli('PTTL', key));
      if (left > 0) server.cli('PEXPIRE', key, String(Math.max(0, left - ms)));
    }
  };
  const answersOf = (redis: Redis, now: () => number) =>
    redisAnswers({ redis, removals: new Removals(redis, ttl), ttl, now });
  const open = async (now: () => number) => answersOf((await joinRedis(server)).redis, now);

  describe('answers', () => {
    answersSuite(async () => ({ answers: await open(() => 1_000_000), now: () => 1_000_000, pass }));

    test('are no longer kept once the memory of Redis is nearly full, so that spending finds room', async () => {
      const now = () => 1_000_000;
      const answers = await open(now);
      const isKept = async (id: string) => {
        const own = { fingerprint: `["getAd",{"id":"${id}"}]` };
        await (await answers.begin('t', own)).store({ answer, at: now() });
        return (await answers.get('t', own)) !== undefined;
      };
      expect(await isKept('a')).toBe(true);
      const used = Number(/used_memory:(\d+)/.exec(server.cli('INFO', 'memory'))?.[1]);
      server.cli('CONFIG', 'SET', 'maxmemory', String(Math.round(1.2 * used)));
      let number = 0;
      await expect.poll(() => isKept(`b${number++}`), { timeout: 10_000 }).toBe(false);
      server.cli('CONFIG', 'SET', 'maxmemory', '0');
      await expect.poll(() => isKept(`c${number++}`), { timeout: 10_000 }).toBe(true);
    });

    test('have the same age whatever the clock of a replica says, and are dropped for all of them', async () => {
      const [ahead, behind] = [await open(() => 9e12), await open(() => 1000)];
      await (await ahead.begin('t', name)).store({ answer, at: 9e12 });
      await pass(10_000);
      const found = await behind.get('t', name);
      expect(found?.answer).toEqual(answer);
      expect(1000 - (found?.at ?? 0)).toBeGreaterThanOrEqual(10_000);
      expect(1000 - (found?.at ?? 0)).toBeLessThan(15_000);
      const begun = await ahead.begin('t', name);
      await behind.invalidate('t');
      await begun.store({ answer, at: 9e12 });
      expect(await ahead.get('t', name)).toBeUndefined();
    });

    test('are there for their time, however long ago something was dropped before them', async () => {
      const answers = await open(() => 1000);
      const items = { ...name, group: 'items' };
      await answers.invalidate('t');
      await answers.invalidate('t', 'items');
      await pass(ttl + 590_000);
      await (await answers.begin('t', items)).store({ answer, at: 1000 });
      await pass(20_000);
      expect(await answers.get('t', items)).toMatchObject({ answer });
    });

    test('that are nested too deep are not kept, and fail nobody', async () => {
      const answers = await open(() => 1000);
      const depth = 200_000;
      const raw = JSON.parse('['.repeat(depth) + ']'.repeat(depth));
      await (await answers.begin('t', name)).store({ answer: { ...answer, raw }, at: 1000 });
      expect(await answers.get('t', name)).toBeUndefined();
    });

    test('that were cut, changed or put under another name are absent', async () => {
      const answers = await open(() => 1000);
      const [one, other] = [name, { fingerprint: '["getAd",{"id":"2"}]' }];
      await (await answers.begin('t', one)).store({ answer, at: 1000 });
      const key = server.cli('KEYS', '*:answer:*');
      await (await answers.begin('t', other)).store({ answer, at: 1000 });
      const otherKey =
        server
          .cli('KEYS', '*:answer:*')
          .split('\n')
          .find((found) => found !== key) ?? '';
      server.cli('COPY', key, otherKey, 'REPLACE');
      expect(await answers.get('t', other)).toBeUndefined();
      expect(await answers.get('t', one)).toBeDefined();
      server.cli('SETRANGE', key, '60', 'x');
      // The replica that has opened it before knows what it was.
      expect(await answers.get('t', one)).toMatchObject({ answer });
      expect(await (await open(() => 1000)).get('t', one)).toBeUndefined();
      server.cli('DEL', key);
      server.cli('LPUSH', key, 'of a neighbour');
      expect(await answers.get('t', one)).toBeUndefined();
    });

    test('are absent while Redis is away, and what is dropped meanwhile is dropped when it is back', async () => {
      const { redis } = await joinRedis(server);
      const [near, far] = [answersOf(redis, () => 1000), await open(() => 1000)];
      await (await near.begin('t', name)).store({ answer, at: 1000 });
      server.pause();
      expect(await near.get('t', name)).toBeUndefined();
      await near.invalidate('t');
      server.resume();
      await expect.poll(() => redis.connection.isUp(), { timeout: 10_000 }).toBe(true);
      await expect.poll(() => far.get('t', name)).toBeUndefined();
    }, 20_000);
  });

  test('what is dropped while Redis is full is absent here at once, and for all once there is room', async () => {
    const [near, far] = [await open(() => 1000), await open(() => 1000)];
    await (await near.begin('t', name)).store({ answer, at: 1000 });
    onTestFinished(() => void server.cli('CONFIG', 'SET', 'maxmemory', '0'));
    server.cli('CONFIG', 'SET', 'maxmemory', '1');
    await near.invalidate('t');
    expect(await near.get('t', name)).toBeUndefined();
    const early = await near.begin('t', name);
    expect(early.cached).toBeUndefined();
    server.cli('CONFIG', 'SET', 'maxmemory', '0');
    await early.store({ answer, at: 1000 });
    await expect.poll(() => far.get('t', name), { timeout: 10_000 }).toBeUndefined();
    await expect
      .poll(async () => {
        await (await near.begin('t', name)).store({ answer, at: 1000 });
        return far.get('t', name);
      })
      .toMatchObject({ answer });
  }, 20_000);

  test('full windows are known to all, with their age, until they are not full any more', async () => {
    const [one, other] = [
      redisWindows((await joinRedis(server)).redis, () => 1000),
      redisWindows((await joinRedis(server)).redis, () => 9e12),
    ];
    const window = { usageLimit: { isLimitReached: true }, left: 0, checkedAt: 1000, id: 'a' };
    await one.set('t', window);
    await pass(30_000);
    const found = await other.get('t');
    expect(found).toMatchObject({ left: 0, id: 'a', usageLimit: { isLimitReached: true } });
    expect(9e12 - (found?.checkedAt ?? 0)).toBeGreaterThanOrEqual(30_000);
    expect(await other.get('another')).toBeUndefined();
    await other.set('t', undefined);
    expect(await one.get('t')).toBeUndefined();
  });
});
