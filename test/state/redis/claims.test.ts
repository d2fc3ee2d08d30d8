import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Call, operations } from '../../../src/api/call.ts';
import { RedisClaims } from '../../../src/state/redis/redis-claims.ts';
import { Removals } from '../../../src/state/redis/removals.ts';
import { Waiters } from '../../../src/state/redis/waiters.ts';
import type { Claim } from '../../../src/state/state.ts';
import { endLeases } from '../../replicas/end-leases.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { joinRedis } from './fixture.ts';

const callOf = (signal = new AbortController().signal): Call => ({
  operation: operations.getAd,
  path: { adId: '1' },
  query: {},
  fingerprint: '["getAd",{"adId":"1"},{},null]',
  apiKey: 'k',
  tenantId: 't',
  signal,
});
const answer = {
  value: { id: '1' },
  raw: { id: '1' },
  receipt: { charged: 1, remaining: 9, cached: false, requestId: 'r' },
};

const granted = (claim: Claim) => {
  if (claim.kind !== 'granted') throw new Error(`the claim is ${claim.kind}`);
  return claim;
};

describeWithRedis('claims in Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(() => void server.cli('FLUSHALL'));
  afterAll(() => server.close());

  const join = async () => {
    const { redis, logged } = await joinRedis(server);
    const redisClaims = new RedisClaims({
      redis,
      waiters: new Waiters(redis.connection, redis.channelOf('changes')),
      removals: new Removals(redis, 60_000),
    });
    const lost: string[] = [];
    const claims = { claim: (call: Call) => redisClaims.claim(call, async (id) => void lost.push(id)) };
    // From now on Redis knows the scripts.
    await granted(await claims.claim({ ...callOf(), tenantId: randomUUID() })).end(undefined);
    const times = () => logged.filter((line) => line.includes('can be reached')).length;
    /** Resolves when Redis was reached once more than that. */
    const reached = async (before: number) => void (await expect.poll(times, { timeout: 10_000 }).toBe(before + 1));
    return { claims, lost, times, reached, leave: () => redis.connection.close() };
  };
  const until = () => Number(server.cli('HGET', server.cli('KEYS', '*:claim:*'), 'until'));

  /** Lets Redis carry out a claim, but answer too late. */
  const claimLate = async ({ claims, times, reached }: Awaited<ReturnType<typeof join>>, call = callOf()) => {
    const before = times();
    server.pause();
    const claim = await claims.claim(call).catch(() => {});
    server.resume();
    await reached(before);
    return claim;
  };

  test('that were granted too late end with their call, and are renewed until then', async () => {
    const [one, other] = [await join(), await join()];
    const claim = granted((await claimLate(one)) as Claim);
    const before = until();
    await expect.poll(until, { timeout: 5000 }).toBeGreaterThan(before);
    await claim.end({ answer });
    endLeases(server);
    expect(await other.claims.claim(callOf())).toMatchObject({ kind: 'granted' });
  }, 20_000);

  test('that were granted too late for a caller who left are not kept', async () => {
    const [one, other] = [await join(), await join()];
    const caller = new AbortController();
    setTimeout(() => caller.abort(), 100);
    expect(await claimLate(one, callOf(caller.signal))).toBeUndefined();
    await expect.poll(() => server.cli('HGET', server.cli('KEYS', '*:claim:*'), 'owner'), { timeout: 5000 }).toBe('');
    endLeases(server);
    expect(await other.claims.claim(callOf())).toMatchObject({ kind: 'granted' });
  }, 20_000);

  test('whose end Redis refused are ended later, and those who wait get the outcome', async () => {
    const [one, other] = [await join(), await join()];
    const claim = granted(await one.claims.claim(callOf()));
    server.cli('ACL', 'SETUSER', 'default', '-evalsha');
    await claim.end({ answer });
    server.cli('ACL', 'SETUSER', 'default', '+evalsha');
    const waiting = await other.claims.claim(callOf());
    expect(waiting).toMatchObject({ kind: 'ended', outcome: { answer } });
  }, 20_000);

  test('whose end did not arrive are ended when Redis is back', async () => {
    const [one, other] = [await join(), await join()];
    const claim = granted(await one.claims.claim(callOf()));
    const before = one.times();
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    await claim.end({ answer });
    await one.reached(before);
    endLeases(server);
    expect(await other.claims.claim(callOf())).toMatchObject({ kind: 'granted' });
  }, 20_000);

  test('whose process has died are known to whoever asks next, by the same id, even if the answer came too late', async () => {
    const [one, other, third] = [await join(), await join(), await join()];
    granted(await one.claims.claim(callOf()));
    one.leave();
    endLeases(server);
    const late = granted((await claimLate(other)) as Claim);
    expect(other.lost).toEqual([]);
    expect((await third.claims.claim(callOf())).kind).toBe('granted');
    expect(third.lost).toHaveLength(1);
    await late.end({ answer });
    expect(other.lost).toEqual(third.lost);
  }, 20_000);

  test('that have ended do not come back with an earlier copy of Redis', async () => {
    const [one, other] = [await join(), await join()];
    const claim = granted(await one.claims.claim(callOf()));
    server.cli('SAVE');
    await claim.end({ answer });
    const before = [one.times(), other.times()] as const;
    await server.restart();
    await Promise.all([one.reached(before[0]), other.reached(before[1])]);
    endLeases(server);
    expect(await other.claims.claim(callOf())).toMatchObject({ kind: 'granted' });
  }, 20_000);

  test('whose answer is nested too deep to be handed over end, so that those who wait make the call', async () => {
    const [one, other] = [await join(), await join()];
    const claim = granted(await one.claims.claim(callOf()));
    const waiting = other.claims.claim(callOf());
    const waits = () => server.cli('HGET', server.cli('KEYS', '*:claim:*'), 'waiting');
    await expect.poll(waits).toBe('1');
    const depth = 200_000;
    await claim.end({ answer: { ...answer, raw: JSON.parse('['.repeat(depth) + ']'.repeat(depth)) } });
    expect(await waiting).toMatchObject({ kind: 'granted' });
  }, 20_000);

  test('are renewed as soon as Redis is back', async () => {
    const one = await join();
    granted(await one.claims.claim(callOf()));
    endLeases(server);
    const [before, over] = [one.times(), until()];
    server.cli('CLIENT', 'KILL', 'USER', 'default');
    await one.reached(before);
    expect(until()).toBeGreaterThan(over);
  }, 20_000);
});
