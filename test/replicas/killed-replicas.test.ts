import { beforeAll, expect, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { waitUntil } from '../support/deadline.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { type Behaviour, delays, respondAsDocumented } from '../support/faulty-upstream.ts';
import { type Replica, startReplicasBeforeAll, type Tenant } from '../support/replicas.ts';
import type { Result } from '../support/server.ts';
import { describeEveryServer } from '../support/stores.ts';

const budget = 100;
const adId = deriveUuid('ad');
const getAd = (replica: Replica, id = adId) => replica.call('get_ad', { adId: id });
const readSpending = async (replica: Replica) => (await replica.call('get_credits')).data.thisServer;
const mayBeCharged = { kind: 'network', retryable: false };
/** The timeout of a call, in milliseconds. The reservations of a killed replica end ten seconds after it. */
const timeoutMs = 5000;
const afterDeadline = { timeout: 60_000, interval: 500 };
/** Repeats a call until the reservations of the killed replica no longer block it. */
async function afterLease(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    const result = await call();
    if (!['busy', 'timeout'].includes(String(result.error?.kind))) return result;
  }
}
const question = { filters: { query: 'tea' }, maxCredits: budget };

/** Starts calls on a replica. Returns the checks that run on the other replicas after the first one was killed. */
type Scenario = (tenant: Tenant, replicas: Tenant['replicas']) => Promise<() => Promise<void>>;

const createWaitingScenario =
  (behaviour: Behaviour): Scenario =>
  async ({ upstream }, [one, other]) => {
    await getAd(one, deriveUuid('price'));
    upstream.respondWith(behaviour);
    void getAd(one).catch(() => {});
    await upstream.waitForRequests(1);
    const waiting = getAd(other);
    return async () => {
      expect((await waiting).error).toMatchObject({ kind: 'timeout' });
      const { error, text } = await afterLease(() => getAd(other));
      expect(error).toMatchObject(mayBeCharged);
      expect(text).toContain('It is unknown whether the service charged for this call, so it was not sent again.');
      expect(upstream.requests).toHaveLength(1);
      upstream.respondWith(respondAsDocumented);
      // The replica reserved the credits after it claimed the call, so the reservation ends a little later.
      await expect.poll(() => readSpending(other), afterDeadline).toMatchObject({ charged: 1, uncertain: 1 });
      // The user can decide to send the call again.
      expect(await getAd(other)).toMatchObject({ isError: false, data: { receipt: { charged: 1 } } });
    };
  };

const scenarios: Record<string, Scenario> = {
  'an identical call on another replica says that the first call may have been charged': createWaitingScenario(
    delays.hangs,
  ),

  'the remaining budget counts as spent if the running call had an unknown price': async (
    { upstream },
    [one, other],
  ) => {
    upstream.respondWith(delays.hangs);
    void getAd(one).catch(() => {});
    await upstream.waitForRequests(1);
    return async () => {
      upstream.respondWith(respondAsDocumented);
      await expect.poll(() => readSpending(other), afterDeadline).toMatchObject({ charged: 0, uncertain: budget });
      upstream.respondWith(respondAsDocumented);
      expect((await getAd(other, deriveUuid('another'))).error).toMatchObject({ kind: 'credit_budget' });
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toEqual([]);
    };
  },

  'a result that was already delivered is free on other replicas': async ({ upstream }, [one, other]) => {
    await getAd(one);
    return async () => {
      expect((await getAd(other)).data.receipt).toMatchObject({ charged: 0, cached: true });
      const spending = await readSpending(other);
      expect(spending).toMatchObject({ charged: 1 });
      expect(spending).not.toHaveProperty('uncertain');
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(1);
    };
  },

  'another replica continues the gather_ads run and pays for no page twice': async (
    { upstream },
    [one, other, third],
  ) => {
    const service = new AdService(450);
    upstream.respondWith(service.respond);
    const countAds = { sql: 'SELECT count(*) AS ads FROM ads' };
    service.overrideResponse = ({ sequenceNumber }) => (sequenceNumber > 2 ? delays.hangs : undefined);
    void one.call('gather_ads', question).catch(() => {});
    await waitUntil(() => service.searches.length === 3);
    expect((await other.call('query_ads', countAds)).data.rows).toEqual([[200]]);
    return async () => {
      service.overrideResponse = () => undefined;
      // A call may reach its deadline while it waits for the killed replica. The next call reports that the page in
      // progress may have been charged, and only the call after it requests this page again.
      const gatherAgain = async () => (await afterLease(() => other.call('gather_ads', question))).data;
      await expect.poll(gatherAgain, afterDeadline).toMatchObject({ read: 450, complete: true });
      expect((await third.call('query_ads', countAds)).data.rows).toEqual([[450]]);
      expect(service.chargedCredits).toBe(45);
    };
  },
};

describeEveryServer('Killed replicas', (server) => {
  const fleet = startReplicasBeforeAll({
    count: 3,
    server,
    args: ['--credit-budget', String(budget), '--timeout-ms', String(timeoutMs)],
  });
  const checksByScenario = new Map<string, () => Promise<void>>();
  beforeAll(async () => {
    const all = Object.entries(scenarios).map(async ([name, startScenario]) => {
      const tenant = fleet.createTenant();
      checksByScenario.set(name, await startScenario(tenant, tenant.replicas));
    });
    await Promise.all(all);
    await fleet.all[0]?.kill();
  });

  test.each(Object.keys(scenarios))('after a replica was killed, %s', async (name) => {
    await checksByScenario.get(name)?.();
  });
});
