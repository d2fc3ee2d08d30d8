import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { NamedTurns } from '../../../src/state/memory-state.ts';
import { RedisTurns } from '../../../src/state/redis/redis-turns.ts';
import type { Turns } from '../../../src/state/state.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { openReplicaRedis } from './open-replica.ts';

let server: RedisServer;
const never = () => new AbortController().signal;
const openReplica = async () => {
  const { redis } = await openReplicaRedis(server);
  return { redis, turns: new RedisTurns(redis) };
};

/** Takes a turn many times at once, and counts how many have it. */
async function maxAtOnce(replicas: readonly Turns[], times: number): Promise<number> {
  let [running, max] = [0, 0];
  await Promise.all(
    Array.from({ length: times }, async (_, index) => {
      const end = await (replicas[index % replicas.length] as Turns).take('a question', never());
      max = Math.max(max, ++running);
      await new Promise((resolve) => setTimeout(resolve, 1));
      running--;
      end();
    }),
  );
  return max;
}

test('a turn in memory is had by one call at a time', async () => {
  expect(await maxAtOnce([new NamedTurns()], 20)).toBe(1);
});

describeWithRedis('turns in Redis', () => {
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());
  beforeEach(() => void server.cli('FLUSHALL'));

  test('are had by one call of one replica at a time', async () => {
    const replicas = await Promise.all(Array.from({ length: 3 }, openReplica));
    expect(
      await maxAtOnce(
        replicas.map(({ turns }) => turns),
        9,
      ),
    ).toBe(1);
    await expect.poll(() => server.cli('--scan'), { timeout: 10_000 }).toBe('');
  });

  test('are renewed while they last, and free when their replica is gone', async () => {
    const [one, other] = [await openReplica(), await openReplica()];
    await one.turns.take('a question', never());
    const [key = ''] = server.cli('--scan').split('\n');
    expect(key).not.toContain('question');
    server.cli('PEXPIRE', key, '4000');
    await expect.poll(() => Number(server.cli('PTTL', key)), { timeout: 6000 }).toBeGreaterThan(6000);
    expect(Number(server.cli('PTTL', key))).toBeLessThanOrEqual(10_000);
    one.redis.connection.close();
    server.cli('PEXPIRE', key, '100');
    (await other.turns.take('a question', never()))();
  });

  test('that one waits for in vain are busy, and take nobody with them', async () => {
    const [one, other] = [await openReplica(), await openReplica()];
    const end = await one.turns.take('a question', never());
    const leaving = new AbortController();
    const left = other.turns.take('a question', leaving.signal);
    const waiting = other.turns.take('a question', never());
    leaving.abort();
    await expect(left).rejects.toMatchObject({ failure: { kind: 'busy' } });
    (await other.turns.take('another question', never()))();
    end();
    (await waiting)();
  });

  test('are unavailable while Redis is gone', async () => {
    const { turns } = await openReplica();
    server.pause();
    await expect(turns.take('a question', never())).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    server.resume();
    await expect
      .poll(() => turns.take('a question', never()).then((end) => end(), String), { timeout: 10_000 })
      .toBeUndefined();
  });
});
