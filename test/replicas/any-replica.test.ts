import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { AdService, adOf } from '../support/ad-service.ts';
import { delays, refusal, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { goodHeaders, keepAlive } from '../support/http.ts';
import { type Replica, type ReplicasOptions, startReplicas } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';

const gather = { filters: { query: 'tea' }, maxCredits: 100 };
const countAds = { sql: 'SELECT count(*) AS ads FROM ads' };

/** Reads a resource as a host does. */
async function readResource({ origin }: Replica, uri: string): Promise<string> {
  const { send, close } = keepAlive(origin);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } });
  const { json } = await send({ headers: goodHeaders(), body });
  close();
  return json.result.contents[0].text;
}

describeEveryServer('any replica', (server) => {
  let upstream: Upstream;
  // What is known of one service says nothing about another.
  beforeEach(async () => {
    upstream = await startUpstream();
    onTestFinished(upstream.close);
  });

  async function between(ads: number, options: Partial<ReplicasOptions> = {}) {
    const service = new AdService(ads);
    upstream.does(service.behaviour);
    const { all } = await startReplicas({ count: 3, baseUrl: upstream.baseUrl, server, ...options });
    return { service, replicas: all as [Replica, Replica, Replica] };
  }

  test('queries, counts and exports what one of them gathered, and reads what another exported', async () => {
    const { service, replicas } = await between(250);
    const [one, other, third] = replicas;
    expect((await one.call('gather_ads', gather)).data).toMatchObject({ read: 250, complete: true });
    const charged = service.charged;
    for (const replica of replicas) {
      expect((await replica.call('query_ads', countAds)).data.rows).toEqual([[250]]);
      const again = await replica.call('gather_ads', { ...gather, maxCredits: 0 });
      expect(again.data).toMatchObject({ read: 250, complete: true, receipt: { charged: 0, calls: 0 } });
    }
    const adId = service.ads[7]?.id;
    expect((await third.call('get_ad', { adId, seen: true })).data).toMatchObject({ ad: { id: adId } });
    const { data } = await other.call('export_ads', { format: 'csv' });
    expect(data).toMatchObject({ rows: 250 });
    for (const replica of replicas) {
      const text = await readResource(replica, String(data.uri));
      expect(service.ads.filter(({ id }) => !text.includes(id))).toEqual([]);
    }
    expect(service.charged).toBe(charged);
  });

  test('checks what another one watches, goes on with the check of one that died, and tells its news', async () => {
    const { service, replicas } = await between(20);
    const [one, other, third] = replicas;
    for (const q of ['a', 'b']) await one.call('watch_ads', { name: q, filters: { q }, maxCredits: 20 });
    const check = { maxCredits: 99 };
    expect((await other.call('check_watches', check)).data.watches).toMatchObject([{ new: null }, { new: null }]);
    const [gone, ...others] = service.ads;
    service.ads = [adOf(500), ...others];
    const before = service.charged;
    service.instead = ({ filters }) => (filters.q === 'b' ? delays.hangs : undefined);
    void one.call('check_watches', check).catch(() => {});
    await expect.poll(() => service.charged, { timeout: 10_000 }).toBeGreaterThan(before);
    await expect.poll(() => service.searches.at(-1)?.filters.q, { timeout: 10_000 }).toBe('b');
    await one.kill();
    service.instead = () => undefined;
    const results = await Promise.all([other, third].map((replica) => replica.call('check_watches', check)));
    const news = { new: [adOf(500).id], changed: [], gone: [gone?.id], complete: true };
    for (const { data } of results) expect(data.watches).toMatchObject([news, {}]);
    expect(service.charged - before).toBeLessThanOrEqual(4);
    // Whoever finds out that a paid call was lost with its replica says so, and does not send it again.
    const next = await third.call('check_watches', check);
    const checks = [...results, next].flatMap(({ data }) => data.watches as { name: string; new: unknown }[]);
    expect(checks.filter(({ name }) => name === 'b')).toContainEqual(expect.objectContaining(news));
  }, 60_000);

  test('keeps the labels that two of them write at once, for all of them', async () => {
    const { service, replicas } = await between(50);
    const [one, other, third] = replicas;
    await one.call('gather_ads', gather);
    const label = (replica: Replica, label: string) =>
      replica.call('label_ads', { labels: service.ads.map(({ id: adId }) => ({ adId, label, value: 'x' })) });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const results = await Promise.all(names.map((name, at) => label(at % 2 ? one : other, name)));
    for (const { data, text } of results) expect(data, text).toMatchObject({ labelled: 50, unknown: [] });
    expect(results[0]?.text).not.toContain('process');
    const sql = 'SELECT label, count(*) FROM labels JOIN ads ON adId = id GROUP BY 1 ORDER BY 1';
    expect((await third.call('query_ads', { sql })).data.rows).toEqual(names.map((name) => [name, 50]));
  });

  test('goes on with a gathering whose replica was killed, and pays no page twice that was saved', async () => {
    const { service, replicas } = await between(450, { args: ['--timeout-ms', '60000'] });
    const [one, other] = replicas;
    service.instead = ({ number }) => (number > 2 ? delays.hangs : undefined);
    const lost = one.call('gather_ads', gather).catch(() => undefined);
    await expect.poll(() => service.searches.length, { timeout: 15_000 }).toBe(3);
    const reads = await other.call('query_ads', countAds);
    expect(reads.data.rows).toEqual([[200]]);
    await one.kill();
    await lost;
    service.instead = () => undefined;
    const { error, data } = await other.call('gather_ads', gather);
    // The page that was under way may have been charged: nobody asks for it again unless told to.
    const rest = error || !data.complete ? (await other.call('gather_ads', gather)).data : data;
    expect(rest).toMatchObject({ read: 450, complete: true });
    expect((await replicas[2].call('query_ads', countAds)).data.rows).toEqual([[450]]);
    expect(service.charged).toBe(45);
  });

  test('takes turns with the others over one question, so that each page is paid once', async () => {
    const { service, replicas } = await between(300);
    const results = await Promise.all(replicas.map((replica) => replica.call('gather_ads', gather)));
    for (const { data, text } of results) expect(data, text).toMatchObject({ read: 300, complete: true });
    expect(results.reduce((sum, { data }) => sum + data.receipt.charged, 0)).toBe(30);
    expect(service.charged).toBe(30);
  });

  test('knows the cursors of the others, also those whose filters are left out', async () => {
    const { service, replicas } = await between(100);
    const [one, other, third] = replicas;
    service.change = (answer) => ({ ...answer, cursor: answer.cursor?.padStart(3000, '0') ?? null });
    const { data } = await one.call('search_ads', { filters: { query: 'tea' }, limit: 20 });
    const next = await other.call('search_ads', { cursor: data.cursor });
    expect(next.data.items.map(({ id }) => id)).toEqual(service.ads.slice(20, 40).map(({ id }) => id));
    expect(service.searches.at(-1)).toMatchObject({ filters: { query: 'tea' } });
    const last = await third.call('search_ads', { cursor: next.data.cursor, filters: { query: 'tea' } });
    expect(last.data.items.map(({ id }) => id)).toEqual(service.ads.slice(40, 60).map(({ id }) => id));
  });

  test('does all that although the clocks of two are an hour wrong', async () => {
    const { service, replicas } = await between(250, { minutesFast: [60, -60, 0] });
    const [fast, slow, right] = replicas;
    expect((await fast.call('gather_ads', { ...gather, maxCredits: 12 })).data).toMatchObject({ complete: false });
    expect((await slow.call('gather_ads', gather)).data).toMatchObject({ read: 250, complete: true });
    expect((await right.call('gather_ads', { ...gather, maxCredits: 0 })).data).toMatchObject({ complete: true });
    expect(service.charged).toBe(25);
    const { data } = await fast.call('search_ads', { limit: 10 });
    for (const replica of [slow, right]) {
      expect((await replica.call('search_ads', { limit: 10 })).data.receipt).toMatchObject({
        charged: 0,
        cached: true,
      });
      expect((await replica.call('search_ads', { cursor: data.cursor })).isError).toBe(false);
    }
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
    const again = await right.call('gather_ads', { ...gather, fresh: true });
    expect(again.data).toMatchObject({ complete: true, receipt: { charged: 25 } });
    const [now] = (await right.call('query_ads', { sql: 'select max(gatheredAt) from ads' })).data.rows as [[string]];
    expect(Math.abs(Date.parse(now[0]) - Date.now())).toBeLessThan(60_000);
    const exported = await slow.call('export_ads');
    for (const replica of replicas)
      expect((await readResource(replica, String(exported.data.uri))).length).toBeGreaterThan(1000);
  });

  test('serves nothing to a key that any of them saw rejected, until any of them sees it accepted', async () => {
    const { service, replicas } = await between(30);
    const [one, other, third] = replicas;
    await one.call('gather_ads', gather);
    await one.call('search_ads', { limit: 3 });
    const { uri } = (await one.call('export_ads')).data;
    const { charged } = service;
    service.before = () => refusal(401);
    expect((await other.call('whoami')).error).toMatchObject({ kind: 'unauthorized' });
    for (const replica of replicas) {
      for (const [name, args] of [
        ['query_ads', countAds],
        ['search_ads', { limit: 3 }],
        ['gather_ads', gather],
      ] as const)
        expect((await replica.call(name, args)).error, name).toMatchObject({ kind: 'unauthorized' });
      await expect(readResource(replica, String(uri))).rejects.toThrow();
    }
    service.before = () => undefined;
    await third.call('whoami');
    for (const replica of replicas) {
      expect((await readResource(replica, String(uri))).length).toBeGreaterThan(100);
      expect((await replica.call('query_ads', countAds)).data.rows).toEqual([[30]]);
      expect((await replica.call('search_ads', { limit: 3 })).data.receipt).toMatchObject({ cached: true });
    }
    expect(service.charged).toBe(charged);
  });

  test('says that a dataset is unavailable while the store is gone, never that it is empty, and then has it back', async () => {
    const { service, replicas } = await between(100);
    const [one, other] = replicas;
    await one.call('gather_ads', gather);
    expect((await other.call('query_ads', countAds)).data.rows).toEqual([[100]]);
    await server.kill();
    onTestFinished(server.restart);
    for (const [name, args] of [
      ['query_ads', countAds],
      ['export_ads', {}],
      ['gather_ads', gather],
      ['get_ad', { adId: service.ads[0]?.id, seen: true }],
    ] as const) {
      const { error } = await other.call(name, args);
      expect(error, name).toMatchObject({ kind: 'unavailable', retryable: true });
    }
    await server.restart();
    // Each replica finds the store again on its own.
    for (const replica of [other, one])
      await expect
        .poll(async () => (await replica.call('query_ads', countAds)).data.rows, { timeout: 10_000 })
        .toEqual([[100]]);
    expect(service.charged).toBe(10);
  });
});
