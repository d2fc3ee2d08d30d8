import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { redisState } from '../../../src/state/redis/redis-state.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { add } from '../add-items.ts';
import { openReplica } from './dataset-replicas.ts';

let server: RedisServer;
const open = async () => {
  const replica = await openReplica(server);
  const limits = { ttl: 1000, now: Date.now, maxPerTenant: 10, maxInAll: 10 };
  return { ...replica, keys: redisState({ redis: replica.redis, ...limits }).rejectedKeys };
};

describeWithRedis('keys that were rejected', () => {
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());
  beforeEach(() => void server.cli('FLUSHALL'));

  test('are known to all replicas, also those rejected while Redis was away, until the service answers one', async () => {
    const [one, other] = [await open(), await open()];
    await add(await one.dataset('a'), 1, { id: 'x' });
    server.pause();
    await one.keys.add('a');
    expect(await one.keys.has('a')).toBe(true);
    server.resume();
    await expect.poll(() => other.keys.has('a'), { timeout: 10_000 }).toBe(true);
    expect(await other.keys.has('b')).toBe(false);
    other.keys.answered('a', false);
    expect(await one.keys.has('a')).toBe(true);
    other.keys.answered('a', true);
    await expect.poll(() => one.keys.has('a')).toBe(false);
  });

  test('leave nothing in Redis if nothing is kept for them', async () => {
    const { keys } = await open();
    for (let number = 0; number < 20; number++) await keys.add(`made up ${number}`);
    expect(server.cli('--scan')).toBe('');
    expect(await keys.has('made up 1')).toBe(false);
  });
});
