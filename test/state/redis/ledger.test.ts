import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Admission, CreditLedger } from '../../../src/credits/ledger.ts';
import { memoryCreditLedger } from '../../../src/state/memory-state.ts';
import { RedisCreditLedger } from '../../../src/state/redis/redis-credit-ledger.ts';
import { Waiters } from '../../../src/state/redis/waiters.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { asking, charged, learning, leaseOf, ledgerSuite } from '../ledger-suite.ts';
import { joinRedis } from './fixture.ts';

describe('the ledger of one process', () => {});

describeWithRedis('the ledger of all replicas', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(() => void server.cli('FLUSHALL'));
  afterAll(() => server.close());

  const openReplica = async (leaseMs?: number) => {
    const { redis, logged } = await joinRedis(server);
    const waiters = new Waiters(redis.connection, redis.channelOf('changes'));
    return { ledger: new RedisCreditLedger(redis, waiters, { leaseMs }), redis, logged };
  };
  const open = async () => (await openReplica()).ledger;

  ledgerSuite(open);

  test('counts a call that ended for several replicas once', async () => {
    const [one, other] = [await open(), await open()];
    const lost = { id: 'lost:one', charged: 0, uncertain: 4, isPaidAnswer: false };
    for (const ledger of [one, other, one]) await ledger.settle('t', lost);
    expect(await one.read('t')).toMatchObject({ uncertain: 4 });
  });

  test('does what one in memory does, whichever replica is asked', async () => {
    const operation = fc.oneof(
      fc.record({
        reserve: fc.record({
          budget: fc.constantFrom(0, 5, 12, 40),
          credits: fc.constantFrom(0, 0.1, 1, 3),
          paid: fc.boolean(),
          line: fc.constantFrom(undefined, undefined, 'paid', 'getAd'),
        }),
      }),
      fc.record({ settle: fc.nat(9), credits: fc.constantFrom(0, 0.1, 1, 3), learns: fc.boolean() }),
    );
    const replicas = [await open(), await open()];
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(operation, fc.nat(1)), { maxLength: 40 }), async (operations) => {
        const tenant = `t${run++}`;
        const memory = memoryCreditLedger({ now: () => 1 });
        const admissions: [Admission, Admission][] = [];
        for (const [step, at] of operations) {
          const ledgers = [memory, replicas[at] as CreditLedger] as const;
          if ('reserve' in step) {
            const request = () => step.reserve;
            const [one, other] = await Promise.all(ledgers.map((ledger) => ledger.reserve(tenant, request)));
            expect(other?.kind).toBe(one?.kind);
            if (one?.kind === 'granted' && other?.kind === 'granted') admissions.push([one, other]);
          } else {
            const [pair] = admissions.splice(step.settle % Math.max(1, admissions.length), 1);
            const settlement = step.learns ? learning(step.credits) : charged(step.credits);
            for (const [index, ledger] of ledgers.entries())
              await ledger.settle(tenant, settlement, pair && leaseOf(pair[index] as Admission));
          }
          const [expected, real] = await Promise.all(ledgers.map((ledger) => ledger.read(tenant)));
          const { spent, uncertain, calls, reserved, paidUnderWay, prices } = expected as typeof real & object;
          expect(real).toMatchObject({ uncertain, calls, paidUnderWay, prices });
          expect(real?.spent).toBeCloseTo(spent, 9);
          expect(real?.reserved).toBeCloseTo(reserved, 9);
        }
      }),
      { numRuns: 40 },
    );
  });

  test('a budget holds over replicas that reserve at the same time', async () => {
    const replicas = await Promise.all([open(), open(), open()]);
    const requests = Array.from({ length: 60 }, (_, index) =>
      replicas[index % 3]?.reserve('t', asking({ paid: false })),
    );
    const kinds = (await Promise.all(requests)).map((admission) => admission?.kind);
    expect(kinds.filter((kind) => kind === 'granted')).toHaveLength(10);
  });

  test('a replica that waits is woken by another', async () => {
    const [one, other] = await Promise.all([open(), open()]);
    const lease = leaseOf(await one.reserve('t', asking({ line: 'paid' })));
    const admission = await other.reserve('t', asking({ line: 'paid' }));
    if (admission.kind !== 'wait') throw new Error(admission.kind);
    const changed = other.changed('t', admission.version, new AbortController().signal);
    await one.settle('t', charged(1), lease);
    await changed;
  });

  describe('the lease of a replica that died', () => {
    const died = async (request: Parameters<typeof asking>[0]) => {
      const [dying, living] = await Promise.all([openReplica(200), openReplica(200)]);
      const lease = leaseOf(await dying.ledger.reserve('t', asking(request)));
      dying.redis.connection.close();
      return { dying, living, lease };
    };

    test('counts as what its call would cost', async () => {
      const { living } = await died({ credits: 2, ifLost: 3 });
      expect(await living.ledger.read('t')).toMatchObject({ reserved: 2, uncertain: 0 });
      await expect.poll(() => living.ledger.read('t')).toMatchObject({ reserved: 0, uncertain: 3, paidUnderWay: 0 });
      expect((await living.ledger.reserve('t', asking({ credits: 8 }))).kind).toBe('refused');
      expect((await living.ledger.reserve('t', asking({ credits: 7 }))).kind).toBe('granted');
    });

    test('counts as the rest of the budget where nothing is known of the price', async () => {
      const { living } = await died({});
      await expect.poll(() => living.ledger.read('t')).toMatchObject({ reserved: 0, uncertain: 10 });
    });

    test('wakes those that wait for it', async () => {
      const { living } = await died({ line: 'paid', ifLost: 1 });
      const admission = await living.ledger.reserve('t', asking({ line: 'paid' }));
      if (admission.kind !== 'wait') throw new Error(admission.kind);
      await living.ledger.changed('t', admission.version, new AbortController().signal);
      expect((await living.ledger.reserve('t', asking({ line: 'paid' }))).kind).toBe('granted');
    });

    test('is settled after all, once, if the replica only seemed dead', async () => {
      const { living } = await died({ credits: 2, ifLost: 3 });
      const late = await openReplica(200);
      const lease = leaseOf(await late.ledger.reserve('t', asking({ credits: 4, ifLost: 5 })));
      await expect.poll(() => living.ledger.read('t'), { timeout: 1900 }).toMatchObject({ uncertain: 8 });
      await late.ledger.settle('t', charged(1), lease);
      await late.ledger.settle('t', charged(1), lease);
      expect(await living.ledger.read('t')).toMatchObject({ uncertain: 3, spent: 1, calls: 1 });
    });
  });

  test('the lease of a call that takes long is renewed', async () => {
    const replica = await openReplica(4000);
    leaseOf(await replica.ledger.reserve('t', asking({ ifLost: 1 })));
    const until = () => /"until_":(\d+)/.exec(server.cli('HGETALL', server.cli('KEYS', '*account')))?.[1];
    const first = until();
    await expect.poll(until, { timeout: 10_000 }).not.toBe(first);
    expect(await replica.ledger.read('t')).toMatchObject({ reserved: 1, uncertain: 0 });
  }, 20_000);

  test('spending ends 30 days after the last paid call, and a stranger is forgotten within a day', async () => {
    const ledger = await open();
    await ledger.settle('t', charged(10));
    const left = Number(server.cli('PTTL', server.cli('KEYS', '*account')));
    expect(left).toBeGreaterThan(29.9 * 86_400_000);
    expect(left).toBeLessThanOrEqual(30 * 86_400_000);
    server.cli('FLUSHALL');
    const stranger = await open();
    const lease = leaseOf(await stranger.reserve('stranger', asking()));
    await stranger.settle('stranger', { charged: 0, uncertain: 0, isPaidAnswer: false }, lease);
    expect(Number(server.cli('PTTL', server.cli('KEYS', '*account')))).toBeLessThanOrEqual(3_600_000);
    await (await open()).read('passer-by');
    expect(server.cli('KEYS', '*account').split('\n')).toHaveLength(1);
  });

  test('spending ends even if somebody keeps asking, but not while a call is under way', async () => {
    const payer = await openReplica();
    const lease = leaseOf(await payer.ledger.reserve('t', asking({ ifLost: 1 })));
    await payer.ledger.settle('t', charged(10));
    payer.redis.connection.close();
    server.cli('HSET', server.cli('KEYS', '*account'), 'paidAt', String(Date.now() - 30 * 86_400_000));
    const ledger = await open();
    expect(await ledger.read('t')).toMatchObject({ spent: 10, calls: 1 });
    await ledger.settle('t', { charged: 0, uncertain: 0, isPaidAnswer: false }, lease);
    expect(await ledger.read('t')).toMatchObject({ spent: 0, calls: 0, uncertain: 0 });
    expect((await ledger.reserve('t', asking({ credits: 10 }))).kind).toBe('granted');
  });
});
