import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdService, createAd } from '../support/ad-service.ts';
import { type ClientKind, connectHttp } from '../support/clients.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { getExampleArguments } from '../support/every-tool.ts';
import { respondWithJson } from '../support/faulty-upstream.ts';
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

const readSchemas = async () =>
  new Map((await server.client.listTools()).tools.map(({ name, outputSchema }) => [name, outputSchema as Schema]));

/** Returns the fields of a value that are missing in its schema. Ignores object schemas without named fields. */
function findUnnamedFields(value: unknown, { properties, items }: Schema, path: string): string[] {
  if (Array.isArray(value)) return items ? value.flatMap((one) => findUnnamedFields(one, items, `${path}[]`)) : [];
  if (typeof value !== 'object' || value === null || properties === undefined) return [];
  return Object.entries(value).flatMap(([name, one]) =>
    properties[name] ? findUnnamedFields(one, properties[name], `${path}.${name}`) : [`${path}.${name}`],
  );
}

test('the result of every tool contains only fields that its output schema names', async () => {
  const called = await makeDemoCalls(server.call);
  const ids = called[0]?.result.data.items.map(({ id }) => id) ?? [];
  const question = { filters: { countries: ['GB'] } };
  const moreCalls: [string, Record<string, unknown>][] = [
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
  // The client throws if a result does not match the output schema.
  for (const [name, args] of moreCalls) results.push({ name, result: await server.call(name, args) });
  const schemaByTool = await readSchemas();
  const unnamedFields = results.flatMap(({ name, result: { isError, text, data } }) =>
    isError ? [`${name}: ${text}`] : findUnnamedFields(data, schemaByTool.get(name) ?? {}, name),
  );
  expect([...new Set(unnamedFields)]).toEqual([]);
});

test('the tool list with all output schemas is smaller than 96 KB', async () => {
  expect(Buffer.byteLength(JSON.stringify(await server.client.listTools()))).toBeLessThan(96 * 1024);
});

/** Ads whose fields have other types than the documented ones. */
const adsWithOddTypes = [
  { pageLikes: 'many', headline: 5, duplicates: 'many', countries: 'DE', cards: {}, page: 'x', daysRunning: 'long' },
  { startedAt: 17e11, endDate: [], media: 'none', website: [1], stillRunning: 'yes', cardViews: [{ card: 'a' }] },
].map((fields, index) => ({ ...createAd(index), otherTypes: 3, ...fields }));

httpTest.for<ClientKind>(['v1', 'v2 pinned to 2026-07-28'])(
  'ad fields with unexpected types appear under otherTypes, so that the client (SDK version %s) accepts the result',
  async (kind, { serve }) => {
    const service = new AdService(0);
    service.ads = adsWithOddTypes;
    const page = { collection: { id: 'c' }, itemType: 'ads', items: adsWithOddTypes, cursor: null, hasMore: false };
    service.interceptRequest = (path) => (path.includes('/collections') ? respondWithJson(page) : undefined);
    const { server } = await serve(service.respond);
    const client = await connectHttp(kind, server.url, 'svc_live_reader');
    // After `listTools`, the client checks every result against the listed output schema.
    await client.listTools();
    for (const detail of ['brief', 'full'])
      for (const [tool, args] of [
        ['search_ads', {}],
        ['list_collection_items', getExampleArguments('list_collection_items')],
        ...adsWithOddTypes.map(({ id }) => ['get_ad', { adId: id }] as const),
      ] as const)
        expect(await client.call(tool, { ...args, detail })).toMatchObject({ isError: false });
    const { data, text } = await client.call('get_ad', { adId: adsWithOddTypes[0]?.id, detail: 'full' });
    const { countries, daysRunning, duplicates, headline, otherTypes } = adsWithOddTypes[0] as never;
    expect(data.ad.otherTypes).toEqual({ countries, daysRunning, duplicates, headline, otherTypes });
    for (const shown of ['"headline":5', '"duplicates":"many"']) expect(text).toContain(shown);
    await client.close();
  },
);
