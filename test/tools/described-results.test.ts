import { afterAll, beforeAll, expect, test } from 'vitest';
import { noSamples, realSamples } from '../../bench/samples.ts';
import { AdService, adOf } from '../support/ad-service.ts';
import { type ClientKind, connectHttp } from '../support/clients.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { argsOf } from '../support/every-tool.ts';
import { type Behaviour, documented, json } from '../support/faulty-upstream.ts';
import { httpTest } from '../support/fixtures.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ config: { demo: true }, now: () => Date.UTC(2026, 0, 15, 12) });
});
afterAll(() => server.close());

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

const schemas = async () =>
  new Map((await server.client.listTools()).tools.map(({ name, outputSchema }) => [name, outputSchema as Schema]));

/** Fields of a value that its schema does not name. An object that names none is open. */
function unnamed(value: unknown, { properties, items }: Schema, path: string): string[] {
  if (Array.isArray(value)) return items ? value.flatMap((one) => unnamed(one, items, `${path}[]`)) : [];
  if (typeof value !== 'object' || value === null || properties === undefined) return [];
  return Object.entries(value).flatMap(([name, one]) =>
    properties[name] ? unnamed(one, properties[name], `${path}.${name}`) : [`${path}.${name}`],
  );
}

test('results hold what the list names, with those types, and nothing else', async () => {
  const called = await makeDemoCalls(server.call);
  const ids = called[0]?.result.data.items.map(({ id }) => id) ?? [];
  const question = { filters: { countries: ['GB'] } };
  const more: [string, Record<string, unknown>][] = [
    ['gather_ads', { filters: { countries: ['DE'] }, maxCredits: 0 }],
    ['gather_ads', { filters: { countries: ['NZ'] }, maxCredits: 50 }],
    ['gather_ads', { filters: { countries: ['NZ'] }, maxCredits: 50, fresh: true }],
    ['gather_ads', { ...question, split: [{ displayFormat: ['VIDEO'] }], maxCredits: 1 }],
    ['count_ads', { ...question, by: 'active' }],
    ['count_ads', { ...question, split: [{ displayFormat: ['DCO'] }, { displayFormat: ['IMAGE'] }], maxCredits: 1 }],
    ['query_ads', { sql: 'SELECT pageName, count(*) FROM ads GROUP BY 1', chart: 'bar' }],
    ['search_ads', { limit: 40 }],
    ['get_ad', { adId: ids[0], seen: true }],
    ['export_ads', { format: 'xlsx' }],
    ['view_ads', { adIds: [ids[0], '11111111-1111-4111-8111-111111111111'] }],
    ['watch_ads', { name: 'Parts', split: [{ displayFormat: ['VIDEO'] }], maxAds: 10, maxCredits: 5 }],
    ['check_watches', { maxCredits: 30 }],
    ['check_watches', { maxCredits: 1 }],
    ['label_ads', { labels: [{ adId: '11111111-1111-4111-8111-111111111111', label: 'hook' }] }],
    ['write_report', { title: 'Report', sections: [{ heading: 'A', sql: 'SELECT nothing' }] }],
  ];
  const results = called.map(({ name, result }) => ({ name, result }));
  // The client itself rejects a result of other types.
  for (const [name, args] of more) results.push({ name, result: await server.call(name, args) });
  const listed = await schemas();
  const wrong = results.flatMap(({ name, result: { isError, text, data } }) =>
    isError ? [`${name}: ${text}`] : unnamed(data, listed.get(name) ?? {}, name),
  );
  expect([...new Set(wrong)]).toEqual([]);
});

test('rows are described field by field, all within 60 KB', async () => {
  const listed = await schemas();
  const row = (name: string, list: string) => listed.get(name)?.properties?.[list]?.items?.properties ?? {};
  expect(row('search_ads', 'items')).toMatchObject({
    daysRunning: { type: 'number', description: expect.any(String) },
    duplicates: { type: 'number', description: 'copies, itself included' },
    adSpendMin: { type: 'number', description: expect.stringContaining('estimated range') },
    countries: { type: 'array', items: { type: 'string' } },
  });
  const others = { search_pages: 'items', view_ads: 'tiles', write_report: 'sections', check_watches: 'watches' };
  for (const [name, list] of Object.entries(others)) expect(Object.keys(row(name, list)).length).toBeGreaterThan(3);
  expect(Buffer.byteLength(JSON.stringify(await server.client.listTools()))).toBeLessThan(60_000);
});

const samples = realSamples();

/** Ads whose described fields have other types than the document says. */
const oddAds = [
  {
    pageLikes: 'many',
    headline: 5,
    duplicates: 'many',
    countries: 'DE',
    cards: {},
    page: 'x',
    daysRunning: 'long',
    otherTypes: 3,
  },
  {
    startedAt: 1_700_000_000,
    endDate: [],
    media: 'none',
    website: [1],
    stillRunning: 'yes',
    cardViews: [{ card: 'a' }],
  },
].map((fields, index) => ({ ...adOf(index), ...fields }));

const clients: ClientKind[] = ['v1', 'v2 pinned to 2026-07-28'];

/** Every answer is checked by the client against the listed schema. */
async function readAll(kind: ClientKind, address: string) {
  const client = await connectHttp(kind, address, 'svc_live_reader');
  await client.listTools();
  const lists = [
    ...['brief', 'full'].map((detail) => ['search_ads', { limit: 100, detail }] as const),
    ...['brief', 'full'].map((detail) => ['search_pages', { limit: 100, detail }] as const),
    ['list_collection_items', { ...argsOf('list_collection_items'), limit: 100, detail: 'full' }] as const,
  ];
  const ids = new Set<string>();
  for (const [tool, args] of lists)
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { isError, text, data } = await client.call(tool, { ...args, ...(cursor && { cursor }) });
      expect(isError, text).toBe(false);
      if (tool === 'search_ads') for (const { id } of data.items) ids.add(id);
      cursor = data.cursor;
    }
  const some = [...ids].filter((_, index) => index % 7 === 0);
  for (const adId of some) expect(await client.call('get_ad', { adId })).toMatchObject({ isError: false });
  const full = await client.call('get_ad', { adId: some[0], detail: 'full' });
  await client.close();
  return { ids, full };
}

/** A service that pages through ads, and answers with all pages at once. */
function serviceOf(ads: { id: string }[], pages: object[]): Behaviour {
  const service = new AdService(0);
  service.ads = ads;
  const ofPages = json({ items: pages, cursor: null, hasMore: false });
  const ofCollection = json({ items: ads.slice(0, 50), itemType: 'ads', cursor: null, hasMore: false });
  return (request, response, body) => {
    const path = request.url ?? '';
    const lists = path.includes('/pages') ? ofPages : path.includes('/collections') ? ofCollection : service.behaviour;
    const reply = path.includes('whoami') ? documented : lists;
    reply(request, response, body);
  };
}

httpTest.for(clients)(
  'fields of other types than described come beside the others, and %s takes them',
  async (kind, { serve }) => {
    const { server } = await serve(serviceOf(oddAds, []));
    const { ids, full } = await readAll(kind, server.url);
    expect(ids.size).toBe(2);
    const { countries, daysRunning, duplicates, headline, otherTypes } = oddAds[0] as never;
    expect(full.data.ad.otherTypes).toEqual({ countries, daysRunning, duplicates, headline, otherTypes });
    for (const text of ['"headline":5', '"duplicates":"many"']) expect(full.text).toContain(text);
  },
);

httpTest.skipIf(samples === undefined).for(clients)(
  `real ads and pages fit what the list says, in %s (${samples ? samples.source : noSamples})`,
  async (kind, { serve }) => {
    const { ads = [], pages = [] } = samples ?? {};
    const { server } = await serve(serviceOf(ads as { id: string }[], pages));
    expect((await readAll(kind, server.url)).ids.size).toBe(ads.length);
  },
);
