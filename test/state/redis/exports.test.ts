import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { RedisExports } from '../../../src/state/redis/redis-exports.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { exportFile, exportsSuite } from '../exports-suite.ts';
import { openReplicaRedis, type RedisOptions } from './open-replica.ts';

let server: RedisServer;
const hour = 3_600_000;
const open = async (options: RedisOptions & { now?: () => number; maxBytes?: number } = {}) =>
  new RedisExports({ now: Date.now, ...options, ...(await openReplicaRedis(server, options)) });

describeWithRedis('exports in Redis', () => {
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());
  beforeEach(() => void server.cli('FLUSHALL'));

  exportsSuite('in Redis', () => open());

  test('made by one replica are listed and read by another, whatever the clocks of both say', async () => {
    const [one, other] = [
      await open({ now: () => Date.now() - 3 * hour }),
      await open({ now: () => Date.now() + 3 * hour }),
    ];
    const bytes = randomBytes(3_000_000);
    const made = await exportFile(one.of('a'), 'big.csv', bytes.subarray(0, 1_700_000), bytes.subarray(1_700_000));
    const [listed] = await other.of('a').list();
    expect(listed).toMatchObject({ uri: made.uri, bytes: bytes.length });
    expect(bytes.equals((await listed?.content()) ?? Buffer.of())).toBe(true);
    expect(await other.of('b').find(made.uri)).toBeUndefined();
  });

  test('are kept for an hour, and show nothing of what is in them', async () => {
    const exports = (await open()).of('svc_live_key');
    await exportFile(exports, 'secret-name.csv', 'a-secret-row\n'.repeat(50));
    const keys = server.cli('--scan').split('\n');
    expect(keys).toHaveLength(5);
    for (const key of keys) {
      expect(`${key} ${server.cli('DUMP', key)}`).not.toMatch(/secret|svc_live|csv/);
      const ms = Number(server.cli('PTTL', key));
      expect(ms).toBeGreaterThan(0.9 * hour);
      expect(ms).toBeLessThanOrEqual(2 * hour);
    }
    const other = await open({ secret: 'another secret, which is long enough' });
    expect(await other.of('svc_live_key').list()).toEqual([]);
  });

  test('that lost a part are refused, and those that are gone are not listed', async () => {
    const exports = (await open()).of('a');
    const cut = await exportFile(exports, 'cut.csv', randomBytes(600_000));
    const [key = ''] = server.cli('--scan', '--pattern', '*:exports:*').split('\n');
    server.cli('RPOP', key);
    await expect((await exports.find(cut.uri))?.content()).rejects.toMatchObject({ failure: { kind: 'not_found' } });
    server.cli('DEL', key);
    expect(await exports.list()).toEqual([]);
  });

  test('have room for the last 50 of a key, and for all keys a fair share', async () => {
    const maxBytes = 400_000;
    const store = await open({ maxBytes });
    for (let file = 0; file < 55; file++) await exportFile(store.of('many'), `${file}.csv`, 'x');
    const names = (await store.of('many').list()).map(({ name }) => name);
    expect([names.length, names.at(0), names.at(-1)]).toEqual([50, '54.csv', '5.csv']);
    await exportFile(store.of('small'), 'small.csv', randomBytes(50_000));
    for (let file = 0; file < 12; file++) await exportFile(store.of('greedy'), `${file}.csv`, randomBytes(50_000));
    expect(Number(server.cli('GET', server.cli('--scan', '--pattern', '*:exports-total')))).toBeLessThanOrEqual(
      maxBytes,
    );
    expect(await store.of('small').list()).toHaveLength(1);
    const greedy = (await store.of('greedy').list()).map(({ name }) => name);
    expect(greedy.length).toBeGreaterThan(3);
    expect(greedy.at(0)).toBe('11.csv');
    expect(server.cli('--scan', '--pattern', '*:exports:*').split('\n').length).toBe(51 + greedy.length);
  });

  test('are unavailable, and not empty, while Redis is gone', async () => {
    const exports = (await open()).of('a');
    await exportFile(exports, 'x.csv', 'x');
    server.pause();
    const unavailable = { failure: { kind: 'unavailable' } };
    await expect(exports.list()).rejects.toMatchObject(unavailable);
    await expect(exportFile(exports, 'y.csv', 'y')).rejects.toMatchObject(unavailable);
    server.resume();
    await expect.poll(() => exports.list().catch(() => []), { timeout: 10_000 }).toHaveLength(1);
  });
});
