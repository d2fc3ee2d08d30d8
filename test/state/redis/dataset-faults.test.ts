import { deflateRawSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../support/http.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { add } from '../add-items.ts';
import { idsIn, noise, openReplica, type Replica, step } from './dataset-replicas.ts';

async function openReplicas(count: number): Promise<{ redis: RedisServer; replicas: Replica[] }> {
  const redis = await startRedis();
  onTestFinished(redis.close);
  return { redis, replicas: await Promise.all(Array.from({ length: count }, () => openReplica(redis))) };
}

const unavailable = { failure: { kind: 'unavailable' } };
const allUp = (replicas: Replica[]) => until(() => replicas.every(({ redis }) => redis.connection.isUp()));

describeWithRedis('datasets while Redis is in trouble', () => {
  test('are unavailable and never empty, and lose nothing that was paid for meanwhile', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    await add(await one.dataset(), 1, { id: 'before' });
    redis.pause();
    const during = await one.dataset();
    await expect(add(during, 2, { id: 'during' })).rejects.toMatchObject(unavailable);
    await expect(during.saveGathering(step(['during']))).rejects.toMatchObject(unavailable);
    await expect(during.contents()).rejects.toMatchObject(unavailable);
    await expect(during.item('ads', 'before')).rejects.toMatchObject(unavailable);
    await expect(during.maxAds()).rejects.toMatchObject(unavailable);
    redis.resume();
    await allUp(replicas);
    for (const { dataset } of [one, other]) expect(await idsIn(await dataset())).toEqual(['before', 'during']);
  });

  test('that were added to are complete as soon as their replica can write again', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    await redis.kill();
    for (const id of ['x', 'y']) await expect(add(await one.dataset(), 1, { id })).rejects.toMatchObject(unavailable);
    await redis.restart();
    await allUp(replicas);
    expect(await idsIn(await other.dataset())).toEqual(['x', 'y']);
  });

  test('that were added to while it was full are complete as soon as there is room', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    redis.cli('CONFIG', 'SET', 'maxmemory', '1');
    await expect(add(await one.dataset(), 1, { id: 'x' })).rejects.toMatchObject(unavailable);
    redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    await expect.poll(async () => idsIn(await other.dataset()), { timeout: 10_000 }).toEqual(['x']);
  }, 20_000);

  test('keep no more than there is room for, and say so', async () => {
    const { redis, replicas } = await openReplicas(1);
    const [one] = replicas as [Replica];
    await redis.kill();
    for (let at = 0; at < 18; at++)
      await expect(add(await one.dataset(), at, { id: `${at}`, body: noise(2 * 1024 * 1024) })).rejects.toMatchObject(
        unavailable,
      );
    expect(one.warnings.join()).toContain('too much waits');
  });

  test('come back from replicas that have read them when Redis was started anew, empty', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    await add(await one.dataset(), 1, { id: 'x', headline: 'one' });
    await add(await other.dataset(), 2, { id: 'x', headline: 'two' }, { id: 'y' });
    await (await one.dataset()).saveGathering(step(['x', 'y']));
    const { version: _, ...before } = await (await one.dataset()).contents();
    await redis.restart();
    await until(() => !one.redis.connection.isUp() || redis.cli('PING') === 'PONG');
    await allUp(replicas);
    await expect
      .poll(
        () =>
          one
            .dataset()
            .then((dataset) => dataset.contents())
            .catch(() => undefined),
        { timeout: 10_000 },
      )
      .toMatchObject(before);
    expect(await (await (await openReplica(redis)).dataset()).contents()).toMatchObject(before);
  });

  test('come back when Redis was started anew from an older copy, and what comes after is not missed', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    for (const id of ['x', 'y', 'z']) await add(await one.dataset(), 1, { id });
    await (await one.dataset()).contents();
    const log = redis.cli('--scan', '--pattern', '*:log');
    redis.cli('RPOP', log, '2');
    await add(await other.dataset(), 2, { id: 'v' });
    await add(await other.dataset(), 2, { id: 'w' });
    expect(await idsIn(await one.dataset())).toEqual(['v', 'w', 'x', 'y', 'z']);
    expect(await idsIn(await other.dataset())).toEqual(['v', 'w', 'x', 'y', 'z']);
  });

  test('are not merged by a version that does not know all of it', async () => {
    const { redis, replicas } = await openReplicas(1);
    const [one] = replicas as [Replica];
    const name = one.redis.keyOf('a', 'dataset');
    const newer = one.redis.seal.close(name, deflateRawSync('{"kind":"videos","id":"x"}\n{"id":"x"}\n'));
    await one.redis.connection.send(name, ['RPUSH', `${name}:log`, newer]);
    for (let at = 0; at < 10; at++) await add(await one.dataset(), at, { id: `${at}`, body: noise(100_000) });
    expect(await idsIn(await one.dataset())).toHaveLength(10);
    await one.datasets.close();
    expect(redis.cli('LLEN', `${name}:log`)).toBe('11');
  });

  test('are merged later when a replica dies over it', async () => {
    const { redis, replicas } = await openReplicas(2);
    const [one, other] = replicas as [Replica, Replica];
    for (let at = 0; at < 10; at++) await add(await one.dataset(), at, { id: `${at}`, body: noise(100_000) });
    one.redis.connection.close();
    await one.datasets.close();
    const about = redis.cli('--scan', '--pattern', '*:about');
    redis.cli('HSET', about, 'merging', '0');
    await add(await other.dataset(), 11, { id: 'last' });
    await other.datasets.close();
    expect(Number(redis.cli('HGET', about, 'baseBytes'))).toBeGreaterThan(0);
    expect(await idsIn(await other.dataset())).toHaveLength(11);
  });
});
