import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { add } from '../add-items.ts';
import { datasetSuite } from '../dataset-suite.ts';
import { idsIn, noise, openReplica, partsOf, type ReplicaOptions, step } from './dataset-replicas.ts';

let redis: RedisServer;
const open = (options?: ReplicaOptions) => openReplica(redis, options);

describeWithRedis('datasets in Redis', () => {
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());
  beforeEach(() => void redis.cli('FLUSHALL'));

  datasetSuite('in Redis', async () => (await open()).datasets);

  test('what one replica brought, each other has when it next answers, and a later one, too', async () => {
    const [one, other] = [await open(), await open()];
    expect(await idsIn(await other.dataset())).toEqual([]);
    await add(await one.dataset(), 1, { id: 'x', headline: 'one' });
    expect(await idsIn(await other.dataset())).toEqual(['x']);
    await add(await other.dataset(), 2, { id: 'x', headline: 'two' }, { id: 'y' });
    await (await other.dataset()).saveGathering(step(['x', 'y']));
    const { version: _, ...expected } = await (await one.dataset()).contents();
    expect(expected).toMatchObject({ gatherings: [{ complete: true }], ads: [{ versions: [{}] }, { versions: [] }] });
    for (const replica of [other, await open()])
      expect(await (await replica.dataset()).contents()).toMatchObject(expected);
  });

  test('belong to one key, one service and one secret, and show nothing of them', async () => {
    const one = await open();
    await add(await one.dataset('svc_live_key'), 1, { id: 'a-known-id', headline: 'A known headline' });
    await (await one.dataset('svc_live_key')).saveGathering(step(['a-known-id'], { question: 'a-known-question' }));
    const others = [
      await one.dataset('svc_live_other'),
      await (await open({ baseUrl: 'https://other.example' })).dataset('svc_live_key'),
      await (await open({ secret: 'another secret, which is long enough' })).dataset('svc_live_key'),
    ];
    for (const other of others) expect(await idsIn(other)).toEqual([]);
    const keys = redis.cli('--scan').split('\n');
    expect(keys).toHaveLength(5);
    for (const key of keys) {
      expect(key).not.toContain('svc_live');
      expect(redis.cli('DUMP', key)).not.toMatch(/known|svc_live|example\.com/);
      expect(Number(redis.cli('PTTL', key)), key).toBeGreaterThan(86_400_000);
    }
  });

  test('lose and double nothing while replicas add, merge and read at once', async () => {
    const replicas = await Promise.all(Array.from({ length: 4 }, () => open()));
    await Promise.all(
      replicas.map(async ({ dataset }, own) => {
        for (let at = 0; at < 40; at++) {
          await add(await dataset(), at, { id: `${own}-${at}`, body: noise(20_000) }, { id: 'all', at, own });
          if (at % 7 === own) await (await dataset()).contents();
        }
      }),
    );
    for (const { datasets } of replicas) await datasets.close();
    expect(partsOf(redis, 'base')).toBeGreaterThan(0);
    expect(partsOf(redis, 'log')).toBeLessThan(120);
    for (const { dataset, warnings } of [...replicas, await open()]) {
      expect(await idsIn(await dataset())).toHaveLength(161);
      expect(warnings).toEqual([]);
    }
  });

  test('are merged when the log has many parts, and a replica that has read them does not read them again', async () => {
    const [one, other] = [await open(), await open()];
    await add(await one.dataset(), 0, { id: 'first' });
    const { version } = await (await other.dataset()).contents();
    for (let at = 1; at < 500; at++) await add(await one.dataset(), at, { id: `${at % 10}` });
    await other.dataset().then((dataset) => dataset.contents());
    await add(await one.dataset(), 501, { id: 'last' });
    await one.datasets.close();
    expect([partsOf(redis, 'base'), partsOf(redis, 'log')]).toEqual([1, 125]);
    const after = await (await other.dataset()).contents();
    expect(after.ads).toHaveLength(12);
    expect(after.version.split('.')[0]).toBe(version.split('.')[0]);
  });

  test('read and write what is larger than one command may be', async () => {
    const [one, other] = [await open(), await open()];
    const ads = Array.from({ length: 40 }, (_, index) => ({ id: `${index}`, body: noise(200_000) }));
    await add(await one.dataset(), 1, ...ads);
    expect(await idsIn(await other.dataset())).toHaveLength(40);
    await one.datasets.close();
    expect(partsOf(redis, 'base')).toBeGreaterThan(1);
    expect(await idsIn(await (await open()).dataset())).toHaveLength(40);
  });

  test('skip what is damaged, and say so', async () => {
    const { dataset } = await open();
    for (const id of ['cut', 'whole', 'foreign']) await add(await dataset(), 1, { id });
    await add(await dataset('b'), 1, { id: 'of another tenant' });
    const [log = '', others = ''] = redis
      .cli('--scan', '--pattern', '*:log')
      .split('\n')
      .toSorted((left, right) => Number(redis.cli('LLEN', right)) - Number(redis.cli('LLEN', left)));
    redis.cli('LSET', log, '0', 'garbage');
    redis.cli('EVAL', "redis.call('LSET', KEYS[1], 2, redis.call('LINDEX', KEYS[2], 0))", '2', log, others);
    const reader = await open();
    expect(await idsIn(await reader.dataset())).toEqual(['whole']);
    expect(reader.warnings).toHaveLength(1);
  });
});
