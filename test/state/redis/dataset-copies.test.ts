import { expect, onTestFinished, test } from 'vitest';
import { beginning, DatasetLog } from '../../../src/state/redis/dataset-log.ts';
import { until } from '../../support/http.ts';
import { describeWithRedis, startRedis } from '../../support/redis-server.ts';
import { add } from '../add-items.ts';
import { idsIn, noise, openReplica, type Replica, type ReplicaOptions, step } from './dataset-replicas.ts';

async function openTwo(options?: ReplicaOptions) {
  const redis = await startRedis();
  onTestFinished(redis.close);
  const replicas = [await openReplica(redis, options), await openReplica(redis, options)] as const;
  const comeBack = async () => {
    await redis.restart();
    await until(() => replicas.every((replica) => replica.redis.connection.isUp()));
  };
  return { redis, one: replicas[0], other: replicas[1], comeBack };
}

const addAll = async ({ dataset }: Replica, ids: readonly string[], body = '') => {
  for (const [at, id] of ids.entries()) await add(await dataset(), at, { id, body });
};
const idsOf = async ({ dataset }: Replica) => idsIn(await dataset());
const names = (count: number) => Array.from({ length: count }, (_, index) => `${index}`.padStart(3, '0'));

describeWithRedis('datasets that Redis lost', () => {
  test('come back although a paid answer was added before anybody read them', async () => {
    const { one, other, comeBack } = await openTwo();
    await addAll(one, ['x', 'y', 'z']);
    await (await one.dataset()).saveGathering(step(['x', 'y']));
    for (const replica of [one, other]) await idsOf(replica);
    await comeBack();
    await addAll(one, ['new']);
    for (const replica of [one, other, one]) expect(await idsOf(replica)).toEqual(['new', 'x', 'y', 'z']);
    expect((await (await other.dataset()).contents()).gatherings).toMatchObject([{ id: 'g', complete: true }]);
  });

  test('come back where Redis has an earlier copy, of before they were merged', async () => {
    const { redis, one, other, comeBack } = await openTwo();
    await addAll(one, ['old']);
    redis.cli('SAVE');
    const ids = names(20);
    await addAll(one, ids, noise(60_000));
    await one.datasets.close();
    expect(Number(redis.cli('HGET', redis.cli('--scan', '--pattern', '*:about'), 'baseBytes'))).toBeGreaterThan(0);
    const before = [...ids, 'old'];
    for (const replica of [one, other]) expect(await idsOf(replica)).toEqual(before);
    await comeBack();
    for (const replica of [one, other, one]) expect(await idsOf(replica)).toEqual(before);
  });

  test('come back from a replica that is the only one to know them, however often others have merged meanwhile', async () => {
    const { redis, one } = await openTwo();
    await addAll(one, ['x']);
    await idsOf(one);
    redis.cli('FLUSHALL');
    const other = await openReplica(redis);
    for (let time = 0; time < 3; time++) {
      await addAll(other, names(10), noise(100_000));
      await other.datasets.close();
    }
    expect(await idsOf(one)).toEqual([...names(10), 'x']);
    expect(await idsOf(other)).toEqual([...names(10), 'x']);
  });
});

describeWithRedis('what is let go for want of room', () => {
  test('is nothing while there is room for each ad once', async () => {
    const { one, other } = await openTwo({ limits: { maxBytesEach: 700_000 } });
    const ids = names(7);
    const bodies = ids.map(() => noise(120_000));
    for (let time = 0; time < 3; time++)
      for (const [index, id] of ids.entries()) await add(await one.dataset(), time, { id, body: bodies[index] });
    await one.datasets.close();
    const { ads, letGo } = await (await other.dataset()).contents();
    expect(ads.map(({ id }) => id).sort()).toEqual(ids);
    expect(letGo.ads).toBe(0);
  });
});

describeWithRedis('a merge that took too long', () => {
  test('changes nothing once part of what it had written has expired', async () => {
    const { redis, one } = await openTwo();
    await addAll(one, ['x', 'y']);
    const name = one.redis.keyOf('a', 'dataset');
    const log = new DatasetLog(one.redis.connection, name);
    const read = await log.read(beginning);
    if (read === undefined || read === 'lost') throw new Error('there is no dataset');
    async function* slowly(parts: readonly Buffer[]) {
      for (const part of parts) {
        redis.cli('DEL', ...redis.cli('--scan', '--pattern', '*:merged:*').split('\n'));
        yield part;
      }
    }
    const options = { ...read, dropped: false, maxBytes: 1e6 };
    expect(await log.merge(read.position, slowly(read.parts), options)).toBeUndefined();
    expect(redis.cli('--scan', '--pattern', '*:merged:*')).toBe('');
    expect(await idsOf(one)).toEqual(['x', 'y']);
  });
});
