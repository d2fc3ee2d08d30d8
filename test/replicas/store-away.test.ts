import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { refusal } from '../support/faulty-upstream.ts';
import { type Replica, replicasForAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

const getAd = (replica: Replica, name: string) => replica.call('get_ad', { adId: uuidOf(name) });
const spendingOf = async (replica: Replica) => (await replica.call('get_credits')).data.thisServer;

describeEveryServer('replicas whose store goes away', (server) => {
  describe('with a budget', () => {
    beforeAll(() => server.kill());
    const fleet = replicasForAll({ count: 2, server, args: ['--credit-budget', '10', '--metrics'] });

    test('start without the store, and share everything once it comes', async () => {
      const [one, other] = fleet.tenant().replicas;
      expect(await one.readiness()).toBe('state unavailable');
      expect((await getAd(one, 'a')).error).toMatchObject({ kind: 'unavailable' });
      await server.restart();
      await fleet.ready();
      await getAd(one, 'a');
      expect((await getAd(other, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
    });

    test('refuse paid calls while the store is away, say so, and heal by themselves', async () => {
      const { upstream, replicas } = fleet.tenant();
      const [one, other] = replicas;
      for (const name of ['a', 'b', 'c']) await getAd(one, name);
      await server.kill();
      expect((await getAd(one, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
      const refused = await getAd(one, 'd');
      expect(refused.error).toEqual({ kind: 'unavailable', retryable: true });
      expect(refused.text).toMatch(/^This server could not use its stored data\.\n/);
      expect(refused.text).toContain('Nothing was sent, nothing was charged.');
      expect(refused.text).not.toMatch(/redis|postgres|127\.0\.0\.1|:\d{4}/i);
      expect((await other.call('get_credits')).error).toMatchObject({ kind: 'unavailable' });
      expect((await other.call('whoami')).isError).toBe(false);
      await expect.poll(one.readiness).toBe('state unavailable');
      expect((await one.get('/readyz')).status).toBe(503);
      expect((await one.get('/healthz')).status).toBe(200);
      expect((await one.get('/metrics')).text).toContain('ad_library_state_up 0');

      await server.restart();
      await fleet.ready();
      expect((await one.get('/metrics')).text).toContain('ad_library_state_up 1');
      expect(await spendingOf(other)).toMatchObject({ charged: 3, budget: 10 });
      expect((await getAd(other, 'd')).data.receipt.charged).toBe(1);
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(4);
      for (const { process } of fleet.all) {
        expect(process.stderr()).toContain('the shared state cannot be reached');
        expect(process.stderr()).not.toContain('svc_live');
      }
    });
  });

  describe('without a budget', () => {
    const fleet = replicasForAll({ count: 2, server });
    afterEach(async () => {
      await server.restart();
      await fleet.ready();
    });

    test('go on while the store is away, and count what was charged once it is back', async () => {
      const [one, other] = fleet.tenant().replicas;
      await getAd(one, 'a');
      server.pause();
      expect((await getAd(one, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
      for (const name of ['b', 'c']) expect((await getAd(one, name)).data.receipt.charged).toBe(1);
      const again = await one.call('get_ad', { adId: uuidOf('a'), fresh: true });
      expect(again.data.receipt.charged).toBe(1);
      const isKept = async () => {
        for (const name of ['a', 'b', 'c'])
          expect((await getAd(one, name)).data.receipt).toMatchObject({ charged: 0, cached: true });
      };
      await isKept();
      // That it is away is said, and not with each answer.
      expect(one.process.stderr()).not.toContain('"level":"error"');
      server.resume();
      await expect.poll(() => spendingOf(other)).toMatchObject({ charged: 4 });
      await isKept();
    });

    test('serve nothing to a rejected key, whether they heard of it before the store went away or since', async () => {
      const [before, since] = [fleet.tenant(), fleet.tenant()];
      const [one, other] = before.replicas;
      for (const replica of [one, other, since.replicas[0]]) await getAd(replica, 'a');
      before.upstream.does(refusal(401));
      await one.call('whoami');
      await expect.poll(async () => (await getAd(other, 'a')).error?.kind).toBe('unauthorized');
      await server.kill();
      expect((await getAd(other, 'a')).error).toMatchObject({ kind: 'unauthorized' });
      expect((await getAd(since.replicas[0], 'a')).data.receipt).toMatchObject({ cached: true });
      since.upstream.does(refusal(401));
      await since.replicas[0].call('whoami');
      expect((await getAd(since.replicas[0], 'a')).error).toMatchObject({ kind: 'unauthorized' });
    });

    test('say that a dataset is unavailable while the store is away, never that it is empty', async () => {
      const service = new AdService(100);
      const [one, other] = fleet.tenant(service.behaviour).replicas;
      const gather = { filters: { query: 'tea' }, maxCredits: 100 };
      const countAds = { sql: 'SELECT count(*) AS ads FROM ads' };
      await one.call('gather_ads', gather);
      expect((await other.call('query_ads', countAds)).data.rows).toEqual([[100]]);
      await server.kill();
      for (const [name, args] of [
        ['query_ads', countAds],
        ['export_ads', {}],
        ['gather_ads', gather],
        ['get_ad', { adId: service.ads[0]?.id, seen: true }],
      ] as const)
        expect((await other.call(name, args)).error, name).toMatchObject({ kind: 'unavailable', retryable: true });
      await server.restart();
      // Each replica finds the store again on its own.
      for (const replica of [other, one])
        await expect.poll(async () => (await replica.call('query_ads', countAds)).data.rows).toEqual([[100]]);
      expect(service.charged).toBe(10);
    });
  });
});
