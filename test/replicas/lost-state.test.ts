import { expect, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { createCreditHeaders, respondAsDocumented, respondWithJson } from '../support/faulty-upstream.ts';
import { createGate } from '../support/gate.ts';
import { type Replica, startReplicasBeforeAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';

const ad = (name: string) => ({ adId: deriveUuid(name) });
const budget = 30;

const readIds = async (replica: Replica) =>
  ((await replica.call('query_ads', { sql: 'SELECT id FROM ads' })).data.rows as string[][]).flat().toSorted();
const readSpending = async (replica: Replica) => (await replica.call('get_credits')).data.thisServer;

describeEveryServer('A shared store that loses data', (server) => {
  const fleet = startReplicasBeforeAll({ count: 2, server, args: ['--credit-budget', String(budget)] });

  test.each(['everything', 'all data since a backup'])(
    'replicas continue to serve calls after the shared store has lost %s',
    async (lostData) => {
      const { replicas, call } = fleet.createTenant((request, response) => {
        const isAd = request.url?.includes('/ads/');
        (isAd ? respondWithJson({ id: 'ad' }, { headers: createCreditHeaders(10) }) : respondAsDocumented)(
          request,
          response,
        );
      });
      const [one, other] = replicas;
      await one.call('get_ad', ad('before'));
      const restore = server.saveCopy();
      for (const name of ['a', 'b']) await one.call('get_ad', ad(name));
      expect((await other.call('get_ad', ad('c'))).error).toMatchObject({ kind: 'credit_budget' });
      if (lostData === 'everything') server.clear();
      else restore();
      const remembered = lostData === 'everything' ? 0 : 10;
      for (const replica of replicas.slice(0, 2)) {
        expect(await readSpending(replica)).toMatchObject({ charged: remembered });
        expect(await replica.readReadiness()).toBe('ready');
      }
      for (let spent = remembered; spent < budget; spent += 10)
        expect((await call('get_ad', ad(`after ${spent}`))).data.receipt).toMatchObject({ charged: 10 });
      expect((await call('get_ad', ad('too much'))).error).toMatchObject({ kind: 'credit_budget' });
    },
  );

  test('running calls still return their results if the shared store loses all its data', async () => {
    const gate = createGate();
    const { upstream, call } = fleet.createTenant(async (request, response) => {
      if (request.url?.includes('/ads/')) await gate.opened;
      respondAsDocumented(request, response);
    });
    const calls = Array.from({ length: 4 }, (_, index) => call('get_ad', ad(`ad ${index}`)));
    await upstream.waitForRequests(1);
    server.clear();
    gate.open();
    for (const { isError } of await Promise.all(calls)) expect(isError).toBe(false);
    expect((await call('get_ad', ad('another'))).isError).toBe(false);
  });

  test('all replicas show newly found ads after the shared store has been restored from a backup', async () => {
    const service = new AdService(4);
    const { replicas } = fleet.createTenant(service.respond);
    const bothReplicas = replicas.slice(0, 2);
    const [before, lostId, after] = service.ads.map(({ id }) => id);
    const readAd = (adId: string | undefined) => replicas[0].call('get_ad', { adId });
    await readAd(before);
    const restore = server.saveCopy();
    await readAd(lostId);
    for (const replica of bothReplicas) expect(await readIds(replica)).toHaveLength(2);
    restore();
    await readAd(after);
    for (const replica of bothReplicas) expect(await readIds(replica)).toEqual(expect.arrayContaining([before, after]));
  });

  test('all replicas show newly found ads after the shared store has lost the last ads of a dataset', async () => {
    const service = new AdService(4);
    const { replicas } = fleet.createTenant(service.respond);
    const [one, other] = replicas;
    const [before, lostId, after] = service.ads.map(({ id }) => id);
    const readAd = (replica: Replica, adId: string | undefined) => replica.call('get_ad', { adId });
    await readAd(one, before);
    const restore = server.saveItemsCopy();
    await readAd(one, lostId);
    expect(await readIds(one)).toHaveLength(2);
    restore();
    await readAd(other, after);
    expect(await readIds(one)).toEqual([before, lostId, after].toSorted());
    expect(await readIds(other)).toEqual([before, after].toSorted());
  });
});
