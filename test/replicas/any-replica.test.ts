import { afterAll, expect, test } from 'vitest';
import { createJpeg } from '../pictures/sample-pictures.ts';
import { AdService } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import {
  createCreditHeaders,
  createCreditStatus,
  createUsageLimit,
  respondAsDocumented,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { createGate } from '../support/gate.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { startReplicasBeforeAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';

const gather = { filters: { query: 'tea' }, maxCredits: 100 };
const countAds = { sql: 'SELECT count(*) AS ads FROM ads' };
const host = await startPictureHost();
afterAll(() => host.close());

describeEveryServer('Replicas with a shared store', (server) => {
  // All tests in this file run with two replica clocks that are wrong by an hour.
  const args = ['--media-hosts', `${host.host.host}:${host.host.port}`];
  const fleet = startReplicasBeforeAll({ count: 3, server, args, clockAdvanceMinutes: [60, -60, 0] });

  function startService(ads: number) {
    const service = new AdService(ads);
    return { service, ...fleet.createTenant(service.respond) };
  }

  test('a replica can query and export ads that another replica gathered and stored', async () => {
    const { service, replicas } = startService(250);
    const [one, other, third] = replicas;
    expect((await one.call('gather_ads', gather)).data).toMatchObject({ read: 250, complete: true });
    const charged = service.chargedCredits;
    for (const replica of replicas) {
      expect((await replica.call('query_ads', countAds)).data.rows).toEqual([[250]]);
      const secondGathering = await replica.call('gather_ads', { ...gather, maxCredits: 0 });
      expect(secondGathering.data).toMatchObject({ read: 250, complete: true, receipt: { charged: 0, calls: 0 } });
    }
    const adId = service.ads[7]?.id;
    expect((await third.call('get_ad', { adId, seen: true })).data).toMatchObject({ ad: { id: adId } });
    const { data } = await other.call('export_ads', { format: 'csv' });
    expect(data).toMatchObject({ rows: 250 });
    const path = new URL(String(data.link)).pathname;
    for (const replica of replicas)
      for (const text of [await replica.read(String(data.uri)), (await replica.get(path)).text])
        expect(service.ads.filter(({ id }) => !text.includes(id))).toEqual([]);
    expect(service.chargedCredits).toBe(charged);
  });

  test('a replica can continue a gather_ads run that another replica started and did not finish', async () => {
    const { service, replicas } = startService(250);
    const [fast, slow, right] = replicas;
    expect((await fast.call('gather_ads', { ...gather, maxCredits: 12 })).data).toMatchObject({ complete: false });
    expect((await slow.call('gather_ads', gather)).data).toMatchObject({ read: 250, complete: true });
    expect(service.chargedCredits).toBe(25);
    for (const [time, asking] of [slow, fast, right, slow].entries()) {
      service.ads = service.ads.map((ad) => ({ ...ad, headline: `Changed ${time}` }));
      await asking.call('search_ads', { limit: 1, fresh: true });
      for (const replica of replicas) {
        const { ad } = (await replica.call('get_ad', { adId: service.ads[0]?.id, seen: true })).data;
        expect(ad.headline).toBe(`Changed ${time}`);
      }
    }
    const versions = "select json ->> 'headline' from ad_versions";
    expect((await fast.call('query_ads', { sql: versions })).data.rows).toEqual(
      ['Offer 0', 'Changed 0', 'Changed 1', 'Changed 2'].map((headline) => [headline]),
    );
    const freshGathering = await right.call('gather_ads', { ...gather, fresh: true });
    expect(freshGathering.data).toMatchObject({ complete: true, receipt: { charged: 25 } });
    const [now] = (await right.call('query_ads', { sql: 'select max(gatheredAt) from ads' })).data.rows as [[string]];
    expect(Math.abs(Date.parse(now[0]) - Date.now())).toBeLessThan(10 * 60_000);
  });

  test('a restarted replica can rewrite a report that another replica wrote', async () => {
    const { service, replicas, call } = startService(3);
    const media = [{ type: 'IMAGE', url: host.serve(await createJpeg()), nr: 0 }];
    service.ads = service.ads.map((ad) => ({ ...ad, media }));
    const before = host.requests.length;
    await replicas[0].call('gather_ads', gather);
    const sections = [
      { heading: 'How many', text: 'Few.', ...countAds },
      { heading: 'All', adIds: service.ads.map(({ id }) => id) },
    ];
    await replicas[1].call('write_report', { title: 'Tea', name: 'tea', sections });
    await fleet.restartReplica(1);
    expect(host.requests.length - before).toBe(1);
    for (const _ of replicas) {
      expect((await call('query_ads', { sql: 'SELECT count(picture) FROM ads' })).data.rows).toEqual([[3]]);
      expect((await call('list_watches')).data.reports).toMatchObject([{ name: 'tea', sections: 2 }]);
      const { data, text } = await call('write_report', { again: 'tea' });
      expect(data.sections, text).toMatchObject([{ first: [[3]] }, { ads: 3 }]);
    }
  });

  test('replicas that run the same gather_ads call at the same time pay only once for each page', async () => {
    const { service, replicas } = startService(300);
    const results = await Promise.all(replicas.map((replica) => replica.call('gather_ads', gather)));
    for (const { data, text } of results) expect(data, text).toMatchObject({ read: 300, complete: true });
    expect(results.reduce((sum, { data }) => sum + data.receipt.charged, 0)).toBe(30);
    expect(service.chargedCredits).toBe(30);
  });

  test('all replicas refuse an API key that the API rejected until one replica sees that the API accepts it again', async () => {
    const { service, replicas } = startService(30);
    const [one, other, third] = replicas;
    await one.call('gather_ads', gather);
    await one.call('search_ads', { limit: 3 });
    const { uri } = (await one.call('export_ads')).data;
    const { chargedCredits } = service;
    service.interceptRequest = () => respondWithError(401);
    expect((await other.call('whoami')).error).toMatchObject({ kind: 'unauthorized' });
    for (const replica of replicas) {
      for (const [name, args] of [
        ['query_ads', countAds],
        ['search_ads', { limit: 3 }],
        ['gather_ads', gather],
      ] as const)
        expect((await replica.call(name, args)).error, name).toMatchObject({ kind: 'unauthorized' });
      await expect(replica.read(String(uri))).rejects.toThrow();
    }
    service.interceptRequest = () => undefined;
    await third.call('whoami');
    for (const replica of replicas) {
      expect((await replica.read(String(uri))).length).toBeGreaterThan(100);
      expect((await replica.call('query_ads', countAds)).data.rows).toEqual([[30]]);
      expect((await replica.call('search_ads', { limit: 3 })).data.receipt).toMatchObject({ cached: true });
    }
    expect(service.chargedCredits).toBe(chargedCredits);
  });

  test('paid calls stop on all replicas when one replica learns that the usage limit is reached', async () => {
    const { upstream, replicas } = fleet.createTenant(respondWithError(429));
    upstream.credits = respondWithJson(
      createCreditStatus({ ...createUsageLimit(400), isLimitReached: true, limitType: 'hourly' }),
    );
    const [one, other] = replicas;
    expect((await one.call('get_ad', { adId: deriveUuid('a') })).error).toMatchObject({ kind: 'usage_limit' });
    const requestCount = upstream.requests.length;
    const { error, text } = await other.call('get_ad', { adId: deriveUuid('b') });
    expect(error).toMatchObject({ kind: 'usage_limit' });
    expect(text).toContain('Nothing was sent');
    expect(upstream.requests).toHaveLength(requestCount);
  });

  test('each page of a list is paid for only once if several replicas read the list', async () => {
    const { service, call } = startService(100);
    for (let walk = 0; walk < 2; walk++) {
      let cursor: string | null | undefined;
      for (let page = 0; page < 10; page++) {
        const { data, text } = await call('search_ads', { limit: 10, ...(cursor && { cursor }) });
        expect(data.items, text).toHaveLength(10);
        expect(data.receipt.charged).toBe(1 - walk);
        cursor = data.cursor;
      }
      expect(cursor).toBeNull();
      if (walk === 0) await fleet.restartReplica(2);
    }
    expect(service.chargedCredits).toBe(10);
  });

  test('identical calls that run on several replicas at the same time share one API request', async () => {
    const gate = createGate();
    const { upstream, call } = fleet.createTenant(async (request, response) => {
      await gate.opened;
      respondAsDocumented(request, response);
    });
    const calls = Array.from({ length: 30 }, () => call('get_ad', { adId: deriveUuid('ad') }));
    await upstream.waitForRequests(1);
    gate.open();
    const results = await Promise.all(calls);
    expect(results.map(({ isError }) => isError)).not.toContain(true);
    expect(results.reduce((sum, { data }) => sum + data.receipt.charged, 0)).toBe(1);
    expect(upstream.requests).toHaveLength(1);
  });

  test('all replicas read a collection from the API again after one replica has changed the collection', async () => {
    const gate = createGate();
    let reads = 0;
    const { upstream, replicas } = fleet.createTenant(async (request, response) => {
      if (request.method !== 'GET' || !request.url?.includes('/items')) return respondAsDocumented(request, response);
      const readNumber = ++reads;
      if (readNumber === 1) await gate.opened;
      const list = { itemType: 'ads', items: [{ id: deriveUuid('ad'), headline: `read ${readNumber}` }], cursor: null };
      respondWithJson(
        { collection: { id: deriveUuid('collection') }, ...list, hasMore: false },
        { headers: createCreditHeaders(1) },
      )(request, response);
    });
    const [one, other] = replicas;
    const collection = { collectionId: deriveUuid('collection'), itemType: 'ads' };
    const before = one.call('list_collection_items', collection);
    await upstream.waitForRequests(1);
    await other.call('add_collection_item', { ...collection, itemId: deriveUuid('ad') });
    const after = await other.call('list_collection_items', collection);
    expect(after.data, after.text).toMatchObject({ items: [{ headline: 'read 2' }], receipt: { charged: 1 } });
    gate.open();
    expect((await before).data.items[0]?.headline).toBe('read 1');
    for (const replica of replicas)
      expect((await replica.call('list_collection_items', collection)).data.items[0]?.headline).not.toBe('read 1');
  });

  test('data that is stored for an invalid API key expires from the shared store within one minute', async () => {
    const before = new Set(server.readAllValues().map(({ name }) => name));
    const { call } = fleet.createTenant(respondWithError(401));
    const collectionId = deriveUuid('made up');
    const ofCollection = { collectionId, itemType: 'ads' };
    for (const [name, args] of [
      ['get_ad', { adId: deriveUuid('a') }],
      ['list_collection_items', ofCollection],
      ['add_collection_item', { ...ofCollection, itemId: deriveUuid('a') }],
      ['gather_ads', gather],
    ] as const)
      expect((await call(name, args)).error, name).toMatchObject({ kind: 'unauthorized' });
    const newValues = server.readAllValues().filter(({ name }) => !before.has(name));
    expect(newValues.filter(({ remainingMs }) => remainingMs > 61_000).map(({ name }) => name)).toEqual([]);
  });

  test('the shared store contains only encrypted values that have an expiry time', () => {
    const everything = server.readAllValues();
    expect(everything.length).toBeGreaterThan(50);
    for (const { name, value, remainingMs } of everything) {
      expect(name).toMatch(
        /^ad-library:(2:)?(probe$|\{[\w-]{22}\}(:[\w-]{22}|:[\w-]{36}|:[a-z-]+)+( [\w-]+(:\d+)?)?$)/,
      );
      expect(`${name} ${value}`).not.toMatch(/svc_live|6a1f7e0c|headline|Offer|Try it/);
      expect(remainingMs, name).toBeGreaterThan(0);
    }
  });
});
