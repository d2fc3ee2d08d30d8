import { expect, test } from 'vitest';
import type { CreditAccount } from '../../../src/credits/ledger.ts';
import type { RedisCreditLedger } from '../../../src/state/redis/redis-credit-ledger.ts';
import { until } from '../../support/http.ts';
import { describeWithRedis } from '../../support/redis-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { asking, charged, learning, leaseOf } from '../ledger-suite.ts';
import { openLedger, openLedgers } from './ledger-replicas.ts';

describeWithRedis('a Redis that comes back with an earlier copy', () => {
  const afterCopy = async () => {
    const { server, ledgers, replicas } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(2));
    server.cli('SAVE');
    const lease = leaseOf(await ledger.reserve('t', asking({ credits: 4 })));
    const comeBack = async () => {
      await server.restart();
      await until(() => replicas.every(({ redis }) => redis.connection.isUp()));
    };
    return { server, ledger, lease, comeBack };
  };

  test('gets back reservations that are newer', async () => {
    const { ledger, lease, comeBack } = await afterCopy();
    await comeBack();
    expect(await ledger.read('t')).toMatchObject({ spent: 2, reserved: 4, paidUnderWay: 1 });
    await ledger.settle('t', charged(4), lease);
    expect(await ledger.read('t')).toMatchObject({ spent: 6, calls: 2, reserved: 0, uncertain: 0 });
  });

  test('counts what was settled while it was away, once', async () => {
    const { server, ledger, lease, comeBack } = await afterCopy();
    await server.kill();
    await ledger.settle('t', charged(4), lease);
    await comeBack();
    expect(await ledger.read('t')).toMatchObject({ spent: 6, calls: 2, reserved: 0, uncertain: 0 });
    await ledger.settle('t', charged(4), lease);
    expect(await ledger.read('t')).toMatchObject({ spent: 6, calls: 2 });
  });

  test('frees reservations that were settled since', async () => {
    const { server, ledger, lease, comeBack } = await afterCopy();
    server.cli('SAVE');
    await ledger.settle('t', charged(4), lease);
    await comeBack();
    expect(await ledger.read('t')).toMatchObject({ spent: 6, reserved: 0, uncertain: 0, paidUnderWay: 0 });
  });

  test('and takes a while to load it gets back everything', async () => {
    const slowly = ['--key-load-delay', '20000', '--loading-process-events-interval-bytes', '1024'];
    const { server, replicas, ledgers, join, areUp } = await openLedgers(1, { redis: slowly });
    const [ledger] = ledgers as [RedisCreditLedger];
    server.cli('EVAL', `for i = 1, 100 do redis.call('SET', i, string.rep('.', 1024)) end`, '0');
    server.cli('SAVE');
    const tenants = Array.from({ length: 20 }, (_, index) => `t${index}`);
    for (const tenant of tenants) await ledger.settle(tenant, charged(50));
    await server.restart();
    await areUp();
    // On a busy machine, Redis does not even say so.
    expect(replicas[0]?.logged.join()).toMatch(/LOADING|no answer within/);
    const { ledger: other } = await join();
    for (const tenant of tenants) expect(await other.read(tenant)).toMatchObject({ spent: 50 });
  });

  test('takes no prices of before it for those of after it', async () => {
    const { server, ledgers } = await openLedgers(2);
    const [one, other] = ledgers as [RedisCreditLedger, RedisCreditLedger];
    await one.settle('t', learning(1));
    const account = server.cli('--scan', '--pattern', '*:account');
    server.cli('COPY', account, 'copy');
    await one.settle('t', learning(2));
    await other.read('t');
    server.cli('COPY', 'copy', account, 'REPLACE');
    await one.settle('t', learning(30));
    const prices: unknown[] = [];
    const requestOf = (known: CreditAccount) => {
      prices.push(known.prices.get('getAd')?.bySize.get(1)?.any);
      return asking({ budget: 100 })();
    };
    await other.reserve('t', requestOf);
    expect(prices).toEqual([2, 30]);
  });
});

describeWithRedis('a Redis that is full when it comes back, empty', () => {
  test('gets back what was spent as soon as there is room', async () => {
    const { server, replicas, ledgers, join } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(2));
    server.cli('FLUSHALL');
    server.cli('CONFIG', 'SET', 'maxmemory', '1');
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    await until(() => replicas[0]?.logged.filter((line) => line.includes('can be reached')).length === 2);
    expect(server.cli('DBSIZE')).toBe('0');
    server.cli('CONFIG', 'SET', 'maxmemory', '0');
    const { ledger: other } = await join();
    await expect.poll(() => other.read('t'), { timeout: 10_000 }).toMatchObject({ spent: 2 });
  }, 20_000);
});

describeWithRedis('a reservation that arrives after it was given up', () => {
  test('reserves nothing', async () => {
    const { server } = await openLedgers(0);
    const proxy = await startTcpProxy(server.port);
    const { ledger, redis } = await openLedger(proxy);
    const { ledger: other } = await openLedger(server);
    await ledger.settle('t', charged(1), leaseOf(await ledger.reserve('t', asking())));
    const held = proxy.holdNext();
    await expect(ledger.reserve('t', asking({ budget: 100, credits: 99 }))).rejects.toMatchObject({
      failure: { kind: 'unavailable' },
    });
    await until(() => redis.connection.isUp());
    const calls = () => server.cli('INFO', 'commandstats').match(/cmdstat_evalsha:calls=(\d+)/)?.[1];
    const before = calls();
    (await held)();
    await until(() => calls() !== before);
    expect(await other.read('t')).toMatchObject({ spent: 1, reserved: 0, uncertain: 0 });
    expect(await other.reserve('t', asking({ budget: 100, credits: 99 }))).toMatchObject({ kind: 'granted' });
  }, 20_000);
});

describeWithRedis('an account with thousands of reservations', () => {
  test('counts them when their replica has died, and what is settled meanwhile', async () => {
    const { server, ledgers } = await openLedgers(1);
    const [ledger] = ledgers as [RedisCreditLedger];
    await ledger.settle('t', charged(1));
    const dead = '{"credits":0,"paid":false,"ifLost":0,"budget":10,"number":0,"until_":1}';
    const fill = `for i = 1, 9000 do redis.call('HSET', KEYS[1], 'lease:' .. i, ARGV[1]) end`;
    server.cli('EVAL', fill, '1', server.cli('--scan', '--pattern', '*:account'), dead);
    await ledger.settle('t', charged(2));
    expect(await ledger.read('t')).toMatchObject({ spent: 3, calls: 2, uncertain: 0 });
  });
});
