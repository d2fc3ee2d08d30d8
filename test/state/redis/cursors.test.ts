import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { memoryState } from '../../../src/state/memory-state.ts';
import { RedisCursors } from '../../../src/state/redis/redis-cursors.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { cursorsSuite } from '../cursors-suite.ts';
import { noise } from './dataset-replicas.ts';
import { openReplicaRedis, type RedisOptions } from './open-replica.ts';

let server: RedisServer;
const memory = { ttl: 0, maxPerTenant: 1, maxInAll: 1, now: Date.now };
const open = async (options?: RedisOptions) => {
  const { redis } = await openReplicaRedis(server, options);
  const cursors = new RedisCursors(redis, memoryState(memory).cursorsOf);
  return {
    redis,
    cursorsOf: (tenantId: string) => cursors.of(tenantId),
  };
};
const bytesHeld = () =>
  server
    .cli('--scan')
    .split('\n')
    .reduce((sum, key) => sum + Number(server.cli('MEMORY', 'USAGE', key, 'SAMPLES', '0')), 0);

describeWithRedis('cursors in Redis', () => {
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());
  beforeEach(() => void server.cli('FLUSHALL'));

  cursorsSuite('in Redis', async () => (await open()).cursorsOf);
  cursorsSuite('of another replica', async () => {
    const [one, other] = [await open(), await open()];
    return (tenantId) => ({ remember: one.cursorsOf(tenantId).remember, recall: other.cursorsOf(tenantId).recall });
  });

  test('of one replica work on all, for at least a day, and show nothing of what was searched', async () => {
    const [one, other] = [await open(), await open()];
    await one.cursorsOf('svc_live_key').remember('@1.cursor', { searchParams: { query: 'a-secret-query' } });
    expect(await other.cursorsOf('svc_live_key').recall('@1.cursor')).toBeDefined();
    const [key = '', ...others] = server.cli('--scan').split('\n');
    expect(others).toEqual([]);
    expect(Number(server.cli('PTTL', key))).toBeGreaterThan(86_000_000);
    expect(`${key} ${server.cli('HGETALL', key)}`).not.toMatch(/secret|cursor\b|svc_live/);
    const stranger = await open({ secret: 'another secret, which is long enough' });
    expect(await stranger.cursorsOf('svc_live_key').recall('@1.cursor')).toBeUndefined();
  });

  test('are bounded in number and in bytes, and the newest stay', async () => {
    const [one, other] = [await open(), await open()];
    const cursors = { remember: one.cursorsOf('a').remember, recall: other.cursorsOf('a').recall };
    for (let at = 0; at < 2500; at += 250)
      await Promise.all(
        Array.from({ length: 250 }, (_, more) =>
          cursors.remember(`@${at + more}`, { searchParams: { at: at + more } }),
        ),
      );
    expect(await cursors.recall('@2499')).toEqual({ searchParams: { at: 2499 } });
    expect(await cursors.recall('@1600')).toEqual({ searchParams: { at: 1600 } });
    expect(await cursors.recall('@0')).toBeUndefined();
    for (let at = 0; at < 40; at++) await cursors.remember(`@big ${at}`, { searchParams: { noise: noise(200_000) } });
    expect(bytesHeld()).toBeLessThan(2.6 * 1024 * 1024);
    expect(await cursors.recall('@big 39')).toBeDefined();
    await cursors.remember('@huge', { searchParams: { noise: noise(2_000_000) } });
    expect(await cursors.recall('@huge')).toBeUndefined();
    expect(await cursors.recall('@big 39')).toBeDefined();
  });

  test('that Redis refuses, because it is full, are known to all once there is room', async () => {
    const [one, other] = [await open(), await open()];
    server.cli('CONFIG', 'SET', 'maxmemory', '1');
    await one.cursorsOf('a').remember('@1', { searchParams: { query: 'tea' } });
    server.cli('CONFIG', 'SET', 'maxmemory', '0');
    await expect
      .poll(() => other.cursorsOf('a').recall('@1'), { timeout: 10_000 })
      .toEqual({ searchParams: { query: 'tea' } });
  }, 20_000);

  test('are known to their own replica while Redis is away, and to all once it is back', async () => {
    const [one, other] = [await open(), await open()];
    await server.kill();
    await one.cursorsOf('a').remember('@1', { searchParams: { query: 'tea' } });
    expect(await one.cursorsOf('a').recall('@1')).toEqual({ searchParams: { query: 'tea' } });
    await expect(other.cursorsOf('a').recall('@1')).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    await server.restart();
    await expect
      .poll(
        () =>
          other
            .cursorsOf('a')
            .recall('@1')
            .catch(() => undefined),
        { timeout: 10_000 },
      )
      .toEqual({
        searchParams: { query: 'tea' },
      });
  });
});
