import { expect, test } from 'vitest';
import type { RedisCreditLedger } from '../../../src/state/redis/redis-credit-ledger.ts';
import { until } from '../../support/http.ts';
import { describeWithRedis } from '../../support/redis-server.ts';
import { asking, charged, learning, leaseOf } from '../ledger-suite.ts';
import { openLedgers } from './ledger-replicas.ts';

const evaluated = /cmdstat_eval(?:sha)?:calls=\d+/g;
const unavailable = { failure: { kind: 'unavailable', sent: false } };

describeWithRedis('while Redis is away', () => {
  test('nothing is reserved and nothing reads as zero, but estimates go on with what is known', async () => {
    const { server, ledgers } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', learning(4));
    await server.kill();
    await expect(ledger.reserve('t', asking())).rejects.toMatchObject(unavailable);
    await expect(ledger.read('t')).rejects.toMatchObject(unavailable);
    await expect(ledger.changed('t', '', new AbortController().signal)).rejects.toMatchObject(unavailable);
    const known = await ledger.estimate('t');
    expect(known.spent).toBe(4);
    expect(known.prices.get('getAd')).toBeDefined();
    expect((await ledger.saved('t', 1)).spent).toBe(4);
  });

  test('a call that ends is settled once Redis is back, even if it was never away for good', async () => {
    const { server, ledgers } = await openLedgers(2);
    const [one, other] = ledgers as [RedisCreditLedger, RedisCreditLedger];
    const lease = leaseOf(await one.reserve('t', asking({ credits: 5 })));
    server.pause();
    await one.settle('t', charged(3), lease);
    server.resume();
    await expect
      .poll(() => other.read('t').catch(() => {}), { timeout: 10_000 })
      .toMatchObject({ spent: 3, reserved: 0 });
    // What was sent before the pause and what was sent after it are one settlement.
    await one.settle('t', charged(1));
    expect(await other.read('t')).toMatchObject({ spent: 4, calls: 2, uncertain: 0 });
  }, 20_000);

  test('what is settled without a reservation counts once, even if it has to be sent again', async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(1));
    server.pause();
    await ledger.settle('t', { charged: 3, uncertain: 2, isPaidAnswer: true });
    server.resume();
    await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    expect(await ledger.read('t')).toMatchObject({ spent: 4, calls: 2, uncertain: 2 });
  }, 20_000);

  test('a reservation that nobody knows was granted does not stay', async () => {
    const { server, ledgers } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    server.pause();
    await expect(ledger.reserve('t', asking({ credits: 5 }))).rejects.toMatchObject(unavailable);
    server.resume();
    await expect
      .poll(() => ledger.read('t').catch(() => {}), { timeout: 10_000 })
      .toMatchObject({ reserved: 0, uncertain: 0, spent: 0 });
  }, 20_000);
});

describeWithRedis('what waits for Redis', () => {
  test('holds no reservation that was never sent', async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await server.kill();
    await until(() => replicas.every(({ redis }) => !redis.connection.isUp()));
    for (let index = 0; index < 200; index++)
      await expect(ledger.reserve(`t${index}`, asking())).rejects.toMatchObject(unavailable);
    await server.restart();
    await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    const scripts = server.cli('INFO', 'commandstats').match(evaluated) ?? [];
    expect(scripts.map((line) => Number(line.split('=')[1])).reduce((sum, calls) => sum + calls, 0)).toBeLessThan(100);
  }, 20_000);

  test('holds so many settlements; the reservations of further ones count as lost', async () => {
    const { server, ledgers, replicas } = await openLedgers(1, { leaseMs: 3000, maxPending: 1 });
    const [ledger] = ledgers as [RedisCreditLedger];
    const lease = leaseOf(await ledger.reserve('t', asking({ credits: 4, ifLost: 5 })));
    leaseOf(await ledger.reserve('t', asking({ credits: 1 })));
    server.pause();
    await ledger.settle('t', charged(1));
    await ledger.settle('t', charged(4), lease);
    server.resume();
    await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    await expect
      .poll(() => ledger.read('t').catch(() => {}), { timeout: 10_000 })
      .toMatchObject({ spent: 1, uncertain: 5, reserved: 1 });
  }, 20_000);
});

describeWithRedis('after Redis lost everything', () => {
  test('replicas write back the larger spending they know, prices and reservations', async () => {
    const { server, ledgers, replicas, join } = await openLedgers(2);
    const [one, other] = ledgers as [RedisCreditLedger, RedisCreditLedger];
    await one.settle('t', learning(2));
    await other.settle('t', learning(3));
    await one.read('t');
    const lease = leaseOf(await one.reserve('t', asking({ budget: 20, credits: 4 })));
    await other.settle('t', charged(2));
    await server.restart();
    await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    const { ledger: third } = await join();
    expect(await third.read('t')).toMatchObject({ spent: 7, calls: 3, reserved: 4 });
    expect((await third.read('t')).prices.get('getAd')?.bySize.get(1)?.any).toBe(3);
    await one.settle('t', charged(4), lease);
    expect(await third.read('t')).toMatchObject({ spent: 11, reserved: 0, uncertain: 0 });
  });

  test('what was settled while it was away is counted once', async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(2));
    const lease = leaseOf(await ledger.reserve('t', asking({ credits: 4 })));
    await server.kill();
    await ledger.settle('t', charged(4), lease);
    await server.restart();
    await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    await expect.poll(() => ledger.read('t')).toMatchObject({ spent: 6, calls: 2, reserved: 0, uncertain: 0 });
  });
});

describeWithRedis('a reservation that was settled', () => {
  test('is not brought back by a renewal that comes too late', async () => {
    const { server, ledgers, replicas } = await openLedgers(2);
    const [one, other] = ledgers as [RedisCreditLedger, RedisCreditLedger];
    const lease = leaseOf(await one.reserve('t', asking({ credits: 4 })));
    await other.settle('t', charged(4), lease);
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    const isBack = (logged: string[]) => logged.filter((line) => line.includes('can be reached')).length === 2;
    await until(() => replicas.every(({ logged }) => isBack(logged)));
    expect(await one.read('t')).toMatchObject({ spent: 4, reserved: 0 });
  });
});

describeWithRedis('a key that somebody made up', () => {
  test('takes no room in Redis without a budget, and for a minute with one', async () => {
    const { server, ledgers } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    const nothing = { charged: 0, uncertain: 0, isPaidAnswer: false };
    await ledger.read('t');
    await ledger.settle('t', nothing);
    expect(server.cli('DBSIZE')).toBe('0');
    await ledger.settle('t', nothing, leaseOf(await ledger.reserve('t', asking())));
    for (const key of server.cli('KEYS', '*').split('\n'))
      expect(Number(server.cli('PTTL', key)), key).toBeLessThanOrEqual(60_000);
  });

  test('displaces nobody who spent something', async () => {
    const { server, replicas, ledgers, join } = await openLedgers(1, { maxSpenders: 2, maxStrangers: 2 });
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(5));
    for (const tenant of ['a', 'b', 'c', 'd']) await ledger.read(tenant);
    server.cli('FLUSHALL');
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    await until(() => replicas[0]?.logged.filter((line) => line.includes('can be reached')).length === 2);
    expect(await (await join()).ledger.read('t')).toMatchObject({ spent: 5 });
  });
});

describeWithRedis('a Redis that is full', () => {
  test('closes budgets, keeps what was spent, and heals once there is room', async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(2));
    const lease = leaseOf(await ledger.reserve('t', asking({ credits: 3 })));
    server.cli('CONFIG', 'SET', 'maxmemory', '1');
    await expect(ledger.reserve('t', asking())).rejects.toMatchObject(unavailable);
    await ledger.settle('t', charged(3), lease);
    server.cli('CONFIG', 'SET', 'maxmemory', '0');
    await expect.poll(() => ledger.read('t'), { timeout: 10_000 }).toMatchObject({ spent: 5, reserved: 0 });
    const linesWith = (text: string) => replicas[0]?.logged.filter((line) => line.includes(text)).length;
    await expect.poll(() => linesWith('takes new values again'), { timeout: 10_000 }).toBe(1);
    expect(linesWith('takes no new values')).toBe(1);
  }, 20_000);
});

describeWithRedis('what is in Redis', () => {
  test('shows no key, no tenant and no price, and a neighbour who breaks it breaks nothing else', async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('tenant-of-someone', learning(4));
    const keys = server.cli('KEYS', '*').split('\n').toSorted();
    expect(keys.join(' ')).toMatch(/^ad-library:(\{[\w-]{22}\}):account ad-library:\1:settled:[\w-]{22}$/);
    const key = String(keys[0]);
    expect(server.cli('HGETALL', key)).not.toMatch(/tenant|getAd|bySize/);
    server.cli('HSET', key, 'prices', 'broken');
    expect((await ledger.read('tenant-of-someone')).spent).toBe(4);
    const { ledger: other, logged } = replicas[0] as (typeof replicas)[0];
    server.cli('SET', key, 'not an account');
    await expect(other.read('tenant-of-someone')).rejects.toMatchObject(unavailable);
    await other.settle('tenant-of-someone', charged(1));
    await other.settle('somebody else', charged(1));
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    await expect.poll(() => logged.filter((line) => line.includes('can be reached')).length).toBe(2);
    expect(await other.read('somebody else')).toMatchObject({ spent: 1 });
    expect(logged.join('\n')).not.toContain('tenant');
  });
});
