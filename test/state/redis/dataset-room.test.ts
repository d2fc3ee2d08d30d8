import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { add } from '../add-items.ts';
import { idsIn, noise, openReplica, type ReplicaOptions, step } from './dataset-replicas.ts';

let redis: RedisServer;
const open = (options?: ReplicaOptions) => openReplica(redis, options);

const MB = 1024 * 1024;
/** What the lists of all datasets hold. */
const bytesHeld = () =>
  Number(
    redis.cli(
      'EVAL',
      `local sum = 0
      for _, key in ipairs(redis.call('KEYS', '*:dataset:*')) do
        if redis.call('TYPE', key).ok == 'list' then
          for _, part in ipairs(redis.call('LRANGE', key, 0, -1)) do sum = sum + #part end
        end
      end
      return sum`,
      '0',
    ),
  );

describeWithRedis('the room for datasets in Redis', () => {
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());
  beforeEach(() => void redis.cli('FLUSHALL'));

  test('of one key is bounded; what came last stays, and every replica states the same of what was let go', async () => {
    const limits = { maxBytesEach: 2 * MB };
    const [one, other] = [await open({ limits }), await open({ limits })];
    await (await other.dataset()).saveGathering(step(['0', '1', '119']));
    for (let at = 0; at < 120; at++) {
      await add(await (at % 2 ? one : other).dataset(), at, { id: `${at}`, body: noise(40_000) });
      if (at % 10 === 0) for (const { datasets } of [one, other]) await datasets.close();
      expect(bytesHeld()).toBeLessThan(2.5 * MB);
    }
    for (const { datasets } of [one, other]) await datasets.close();
    const seen = await Promise.all([one, other, await open()].map(async ({ dataset }) => (await dataset()).contents()));
    for (const { ads, letGo, gatherings } of seen) {
      expect(ads.length).toBeGreaterThan(30);
      expect(ads.at(-1)?.id).toBe('119');
      expect(ads.length + letGo.ads).toBe(120);
      expect(gatherings).toMatchObject([{ complete: false, missing: 2 }]);
      expect(letGo).toEqual(seen[0]?.letGo);
    }
  });

  test('is shared fairly: whoever holds much gives up their own', { timeout: 60_000 }, async () => {
    const limits = { maxBytes: 4 * MB, maxBytesEach: 4 * MB };
    const [one, other] = [await open({ limits }), await open({ limits })];
    for (let tenant = 0; tenant < 10; tenant++)
      await add(await one.dataset(`small ${tenant}`), 1, { id: 'x', body: noise(100_000) });
    for (let at = 0; at < 100; at++) {
      await add(await other.dataset('greedy'), at, { id: `${at}`, body: noise(100_000) });
      await other.datasets.close();
      expect(bytesHeld()).toBeLessThan(4.1 * MB);
    }
    for (let tenant = 0; tenant < 10; tenant++)
      expect(await idsIn(await other.dataset(`small ${tenant}`))).toEqual(['x']);
    const { ads, letGo } = await (await one.dataset('greedy')).contents();
    expect(ads.length).toBeGreaterThan(25);
    expect(ads.length + letGo.ads).toBe(100);
  });

  test('is made without keeping those waiting who hold little', async () => {
    const { dataset, datasets } = await open({ limits: { maxBytes: MB, maxBytesEach: MB } });
    const total = () => Number(redis.cli('GET', redis.cli('--scan', '--pattern', '*:datasets-total')));
    for (let at = 0; at < 20; at++) {
      await add(await dataset('greedy'), at, { id: `${at}`, body: noise(100_000) });
      if (total() + 100_000 > MB) break;
    }
    await datasets.close();
    await add(await dataset('small'), 1, { id: 'x', body: noise(400_000) });
    expect(total()).toBeGreaterThan(MB);
    await datasets.close();
    expect(total()).toBeLessThan(MB);
    expect(await idsIn(await dataset('small'))).toEqual(['x']);
  });

  test('is made of what has the same secret, and what others keep is left alone', async () => {
    const limits = { maxBytes: MB, maxBytesEach: MB };
    const other = await open({ secret: 'another secret, which is long enough' });
    for (let at = 0; at < 20; at++) await add(await other.dataset(), at, { id: `${at}`, body: noise(100_000) });
    const one = await open({ limits });
    for (let at = 0; at < 20; at++) await add(await one.dataset(), at, { id: `${at}`, body: noise(100_000) });
    await one.datasets.close();
    expect(await idsIn(await other.dataset())).toHaveLength(20);
  });

  test('counts what is there', async () => {
    const { dataset } = await open();
    for (const key of ['a', 'b']) await add(await dataset(key), 1, { id: 'x', body: noise(10_000) });
    const total = () => redis.cli('GET', redis.cli('--scan', '--pattern', '*:datasets-total'));
    expect(Number(total())).toBe(bytesHeld());
  });

  test('of memory is bounded, whatever a few bytes in Redis turn into', async () => {
    const limits = { maxMemory: 4 * MB, maxMemoryEach: 2 * MB };
    const one = await open({ limits });
    for (let at = 0; at < 20; at++) await add(await one.dataset(), at, { id: `${at}`, body: 'x'.repeat(500_000) });
    expect(bytesHeld()).toBeLessThan(50_000);
    const { ads, letGo } = await (await one.dataset()).contents();
    expect(ads.length).toBeLessThan(5);
    expect(ads.at(-1)?.id).toBe('19');
    expect(ads.length + letGo.ads).toBe(20);
    expect((await (await (await open()).dataset()).contents()).letGo).toEqual(letGo);
    for (const key of ['b', 'c', 'd', 'e']) {
      await add(
        await one.dataset(key),
        1,
        { id: 'x', body: 'x'.repeat(800_000) },
        { id: 'y', body: 'y'.repeat(800_000) },
      );
      expect(await idsIn(await one.dataset(key))).toEqual(['x', 'y']);
    }
    expect(one.datasets.memory).toBeLessThanOrEqual(limits.maxMemory);
  });
});
