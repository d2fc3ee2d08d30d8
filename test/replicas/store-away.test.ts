import { beforeAll, describe, expect, test } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { type Replica, startReplicasBeforeAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';

const getAd = (replica: Replica, name: string) => replica.call('get_ad', { adId: deriveUuid(name) });
const readSpending = async (replica: Replica) => (await replica.call('get_credits')).data.thisServer;

describeEveryServer('Replicas with an unreachable shared store', (server) => {
  describe('Replicas with a credit budget', () => {
    beforeAll(() => server.kill());
    const fleet = startReplicasBeforeAll({ count: 2, server, args: ['--credit-budget', '10', '--metrics'] });

    test('replicas can start while the shared store is unreachable, and use the store as soon as it is reachable', async () => {
      const [one, other] = fleet.createTenant().replicas;
      expect(await one.readReadiness()).toBe('away');
      expect((await getAd(one, 'a')).error).toMatchObject({ kind: 'unavailable' });
      await server.restart();
      await fleet.waitUntilReady();
      await getAd(one, 'a');
      expect((await getAd(other, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
    });

    test('while the shared store is unreachable, replicas with a credit budget refuse paid calls', async () => {
      const { upstream, replicas } = fleet.createTenant();
      const [one, other] = replicas;
      for (const name of ['a', 'b', 'c']) await getAd(one, name);
      await server.kill();
      expect((await getAd(one, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
      const refused = await getAd(one, 'd');
      expect(refused.error).toEqual({ kind: 'unavailable', retryable: true });
      expect(refused.text).toMatch(/^This server could not use its stored data\.\n/);
      expect(refused.text).toContain('Nothing was sent, nothing was charged.');
      expect(refused.text).not.toMatch(/redis|postgres|127\.0\.0\.1|:\d{4}/i);
      const credits = await other.call('get_credits');
      expect(credits.isError).toBe(false);
      expect(credits.text).toContain('What this server has spent is not known now');
      expect((await other.call('whoami')).isError).toBe(false);
      await expect.poll(one.readReadiness).toBe('away');
      // If the probe failed, a load balancer would remove all replicas at once.
      expect((await one.get('/readyz')).status).toBe(200);
      expect((await one.get('/healthz')).status).toBe(200);
      expect((await one.get('/metrics')).text).toContain('ad_library_state_up 0');

      const counted = await other.call('count_ads', {});
      expect(counted.error).toMatchObject({ kind: 'unavailable' });

      await server.restart();
      await fleet.waitUntilReady();
      expect((await one.get('/metrics')).text).toContain('ad_library_state_up 1');
      expect(await readSpending(other)).toMatchObject({ charged: 3, budget: 10 });
      expect((await getAd(other, 'd')).data.receipt.charged).toBe(1);
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(4);
      for (const { process } of fleet.all) {
        expect(process.stderr()).toContain('the shared state cannot be reached');
        expect(process.stderr()).not.toContain('svc_live');
      }
    });

    test('a replica that is shutting down fails its readiness probe but still responds to calls', async () => {
      const [stopping] = fleet.createTenant().replicas;
      stopping.process.child.kill('SIGTERM');
      await expect.poll(stopping.readReadiness).toBe('draining');
      expect((await stopping.get('/readyz')).status).toBe(503);
      expect((await stopping.call('whoami')).isError).toBe(false);
      expect((await stopping.process.ended).code).toBe(0);
    });
  });

  describe('Replicas without a credit budget', () => {
    const fleet = startReplicasBeforeAll({ count: 1, server });

    test('while the shared store is unreachable, replicas without a credit budget still serve calls', async () => {
      const [replica] = fleet.createTenant().replicas;
      await getAd(replica, 'a');
      await server.kill();
      for (const [tool, args] of [
        ['whoami', {}],
        ['get_credits', {}],
        ['search_ads', { limit: 5 }],
        ['count_ads', { filters: { query: 'x' } }],
      ] as const) {
        const { text, isError } = await replica.call(tool, args);
        expect([tool, isError, isError && text]).toEqual([tool, false, false]);
      }
      for (const [tool, args] of [
        ['query_ads', { sql: 'SELECT 1' }],
        ['gather_ads', { maxCredits: 5 }],
      ] as const)
        expect((await replica.call(tool, args)).error).toMatchObject({ kind: 'unavailable' });
      await server.restart();
      await fleet.waitUntilReady();
    });
  });
});
