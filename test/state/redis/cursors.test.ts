import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { redisCursors } from '../../../src/state/redis/redis-cursors.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { cursorsSuite } from '../cursors-suite.ts';
import { noise } from './dataset-replicas.ts';
import { openReplicaRedis, type RedisOptions } from './open-replica.ts';

let server: RedisServer;
const errors: unknown[] = [];
const open = async (options?: RedisOptions) => {
  const { redis } = await openReplicaRedis(server, options);
  return (tenantId: string) => redisCursors({ redis, tenantId, onError: (error) => errors.push(error) });
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
  beforeEach(() => {
    server.cli('FLUSHALL');
    errors.length = 0;
  });

  cursorsSuite('in Redis', open);

  test('of one replica work on all, for at least a day, and show nothing of what was searched', async () => {
    const [one, other] = [await open(), await open()];
    await one('svc_live_key').remember('@1.cursor', { searchParams: { query: 'a-secret-query' } });
    expect(await other('svc_live_key').recall('@1.cursor')).toBeDefined();
    const [key = '', ...others] = server.cli('--scan').split('\n');
    expect(others).toEqual([]);
    expect(Number(server.cli('PTTL', key))).toBeGreaterThan(86_000_000);
    expect(`${key} ${server.cli('HGETALL', key)}`).not.toMatch(/secret|cursor\b|svc_live/);
    expect(
      await (await open({ secret: 'another secret, which is long enough' }))('svc_live_key').recall('@1.cursor'),
    ).toBe(undefined);
  });

  test('are bounded in number and in bytes, and the newest stay', async () => {
    const cursors = (await open())('a');
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

  test('that cannot be remembered do no harm, and those that cannot be recalled are unavailable', async () => {
    const cursors = (await open())('a');
    await cursors.remember('@1', { searchParams: {} });
    server.pause();
    await cursors.remember('@2', { searchParams: {} });
    expect(errors).toHaveLength(1);
    await expect(cursors.recall('@1')).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    server.resume();
    await expect.poll(() => cursors.recall('@1').catch(() => undefined)).toBeDefined();
  });
});
