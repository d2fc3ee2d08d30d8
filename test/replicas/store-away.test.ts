import { beforeAll, describe, expect, test } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { type Replica, startReplicasBeforeAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';

const getAd = (replica: Replica, name: string) => replica.call('get_ad', { adId: deriveUuid(name) });
const readSpending = async (replica: Replica) => (await replica.call('get_credits')).data.thisServer;

describeEveryServer('Replicas with an unreachable store', (server) => {
  describe('With a credit budget', () => {
    beforeAll(() => server.kill());
    const fleet = startReplicasBeforeAll({ count: 2, server, args: ['--credit-budget', '10', '--metrics'] });

    test('replicas start without the store and share their state once the store is reachable', async () => {
      const [one, other] = fleet.createTenant().replicas;
      expect(await one.readReadiness()).toBe('state unavailable');
      expect((await getAd(one, 'a')).error).toMatchObject({ kind: 'unavailable' });
      await server.restart();
      await fleet.waitUntilReady();
      await getAd(one, 'a');
      expect((await getAd(other, 'a')).data.receipt).toMatchObject({ charged: 0, cached: true });
    });

    test('replicas refuse paid calls while the store is unreachable, and recover without a restart', async () => {
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
      expect((await other.call('get_credits')).error).toMatchObject({ kind: 'unavailable' });
      expect((await other.call('whoami')).isError).toBe(false);
      await expect.poll(one.readReadiness).toBe('state unavailable');
      expect((await one.get('/readyz')).status).toBe(503);
      expect((await one.get('/healthz')).status).toBe(200);
      expect((await one.get('/metrics')).text).toContain('ad_library_state_up 0');

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
  });
});
