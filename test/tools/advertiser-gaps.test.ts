import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createAd, type ServedAd, serveAds } from '../support/ad-service.ts';
import { tenantUpstreamTest } from '../support/fixtures.ts';
import type { Result, TestClient } from '../support/server.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const test = tenantUpstreamTest({ now: () => now });

const readNotes = ({ data }: Result) => (data.coverage as { notes?: string[] }).notes ?? [];
const queryNotes = async (client: TestClient, sql: string) => readNotes(await client.call('query_ads', { sql }));
const queryGaps = async (client: TestClient, sql: string) =>
  (await queryNotes(client, sql)).filter((note) => note.startsWith('Known'));

interface Owner {
  name: string;
  ads: number;
  withCountry: number;
}

/** Creates ads of several advertisers. Only `withCountry` ads of each advertiser have a country. */
const createOwnedAds = (owners: readonly Owner[], fields: object = {}): ServedAd[] =>
  owners.flatMap(({ name, ads, withCountry }, owner) =>
    Array.from({ length: ads }, (_, index) =>
      createAd(1000 * owner + index, {
        ...{ pageId: `page ${owner}`, page: { pageName: name }, ...fields },
        ...(index < withCountry && { countries: ['DE'] }),
      }),
    ),
  );

const [complete, partial, empty]: Owner[] = [
  { name: 'Complete', ads: 900, withCountry: 900 },
  { name: "Partial's", ads: 60, withCountry: 20 },
  { name: 'Empty', ads: 240, withCountry: 0 },
] as const;
const countries = 'country, count(*) FROM ads LEFT JOIN ad_countries USING (id)';

describe('Notes on ads of an advertiser that lack a field', () => {
  // The tests of this group only read the dataset of the server, so gather its ads once.
  test.beforeAll(async ({ upstream, server }) => {
    serveAds(upstream, 0).ads = createOwnedAds([complete, partial, empty].filter((one) => one !== undefined));
    await server.call('gather_ads', { filters: { some: 'ads' }, maxAds: 5000, maxCredits: 1000 });
  });

  for (const condition of [
    "pageName = 'Partial''s'",
    "lower(pageName) = 'partial''s'",
    "pageId = 'page 1'",
    "pageId IN ('page 1', 'page of nobody')",
    "pageName LIKE 'partial%'",
    "ads.pageName IS 'PARTIAL''S' -- 'Complete'",
    "pageName = 'Partial''s' AND pageId <> 'page 0'",
  ])
    test(`a query_ads result for one advertiser (${condition}) says which fields some of this advertiser's ads lack`, async ({
      server,
    }) => {
      expect(await queryGaps(server, `SELECT ${countries} WHERE ${condition}\nGROUP BY 1`)).toEqual([
        'Known for some of the 60 ads of "Partial\'s" only: country (20).',
      ]);
    });

  test('a query_ads result for an advertiser with complete data does not mention missing data of other advertisers', async ({
    server,
  }) => {
    for (const condition of ["pageName = 'Complete'", "pageName LIKE '%omplet%'", "pageId IN ('page 0')"])
      expect(await queryGaps(server, `SELECT ${countries} WHERE ${condition} GROUP BY 1`)).toEqual([]);
  });

  test('a query_ads result for several advertisers names the advertiser whose ads most often lack the queried field', async ({
    server,
  }) => {
    expect(
      await queryGaps(
        server,
        `SELECT ${countries} WHERE pageName IN ('Complete', 'Empty') AND country = 'DE' GROUP BY 1`,
      ),
    ).toEqual(['Known for some of the 1,140 ads of "Complete" and "Empty" only: country (900; 0 of 240 of "Empty").']);
  });

  test('a query_ads result about all advertisers shows how many ads lack a field, and which advertisers lack it most', async ({
    server,
  }) => {
    const sentence =
      'Known for some of the 1,200 ads only: country (920; 0 of 240 of "Empty", 20 of 60 of "Partial\'s").';
    for (const sql of [
      `SELECT ${countries} GROUP BY 1`,
      `SELECT ${countries} WHERE pageName <> 'Complete' GROUP BY 1`,
      `SELECT ${countries} WHERE pageName NOT IN ('Complete') GROUP BY 1`,
      `SELECT ${countries} WHERE body LIKE '%complete%' OR pageName IS NULL GROUP BY 1`,
      // The join drops the advertiser that has no country at all.
      'SELECT pageName, count(*) FROM ads JOIN ad_countries USING (id) GROUP BY 1',
    ])
      expect(await queryGaps(server, sql)).toEqual([sentence]);
  });

  test('reports and exports say which fields are missing for some ads of the advertisers that their SQL selects', async ({
    server,
  }) => {
    const sql = `SELECT ${countries} WHERE pageName = 'Empty' GROUP BY 1`;
    const sentence = 'Known for some of the 240 ads of "Empty" only: country (0).';
    expect(readNotes(await server.call('export_ads', { sql }))).toEqual([sentence]);
    const sections = [{ heading: 'Countries', sql, chart: 'bar' }];
    const report = await server.call('write_report', { title: 'Countries', sections });
    expect(readNotes(report)).toEqual([sentence]);
    expect((await server.readResource(String(report.data.uri))).text).toContain(
      'Known for some of the 240 ads of 1 advertiser only: country (0).',
    );
  });
});

test('query_ads names an advertiser whose ads often lack a field even if few ads of other advertisers lack the field', async ({
  upstream,
  tenant,
}) => {
  serveAds(upstream, 0).ads = createOwnedAds([
    { name: 'Complete', ads: 900, withCountry: 900 },
    { name: 'Partial', ads: 30, withCountry: 10 },
    { name: 'Small', ads: 5, withCountry: 0 },
  ]);
  await tenant.call('gather_ads', { filters: { some: 'ads' }, maxAds: 5000, maxCredits: 1000 });
  expect(await queryGaps(tenant, `SELECT pageName, ${countries} GROUP BY 1, 2`)).toEqual([
    'Known for some of the 935 ads only: country (910; 10 of 30 of "Partial").',
  ]);
  expect(await queryGaps(tenant, `SELECT ${countries} GROUP BY 1`)).toEqual([]);
});

test("if ads of an advertiser lack a field, query_ads shows the correct number of the advertiser's ads with this field", async ({
  upstream,
  connect,
}) => {
  const service = serveAds(upstream, 0);
  const owner = fc.record({ ads: fc.integer({ min: 1, max: 30 }), shared: fc.double({ min: 0, max: 1, noNaN: true }) });
  await fc.assert(
    fc.asyncProperty(fc.array(owner, { minLength: 1, maxLength: 4 }), async (list) => {
      // Connect with a new API key in each run, so that the dataset is empty.
      const tenant = await connect();
      const owners = list.map(({ ads, shared }, index) => ({
        name: `Owner ${index}`,
        ads,
        withCountry: Math.round(shared * ads),
      }));
      service.ads = createOwnedAds(owners);
      await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
      for (const { name, ads, withCountry } of owners) {
        const noun = ads === 1 ? '1 ad' : `${ads} ads`;
        const expected = `Known for some of the ${noun} of "${name}" only: country (${withCountry}).`;
        expect(await queryGaps(tenant, `SELECT ${countries} WHERE pageName = '${name}' GROUP BY 1`)).toEqual(
          withCountry < 0.95 * ads ? [expected] : [],
        );
      }
    }),
    { numRuns: 10 },
  );
});

describe('Advertisers whose ads were all last seen on one day', () => {
  test.beforeEach(async ({ upstream, tenant }) => {
    serveAds(upstream, 0).ads = [
      ...createOwnedAds([{ name: 'Once', ads: 20, withCountry: 20 }], { lastSeenAt: '2026-08-01T00:00:00Z' }),
      ...createOwnedAds([{ name: 'Daily', ads: 20, withCountry: 20 }], { lastSeenAt: '2026-11-20T00:00:00Z' }).map(
        (ad, index) => ({ ...ad, id: createAd(5000 + index).id, pageId: 'daily' }),
      ),
    ];
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 1000 });
  });
  const queryDays = async (client: TestClient, sql: string) =>
    (await queryNotes(client, sql)).filter((note) => note.startsWith('Last seen on one day: 20 of 20 ads of "Once"'));

  test('query_ads warns of ads that were all last seen on one day even if the SQL changes names or returns no rows', async ({
    tenant,
  }) => {
    for (const sql of [
      'SELECT upper(pageName) AS pageName, max(lastSeenAt) FROM ads GROUP BY 1',
      "SELECT pageName || '!' AS pageName, max(lastSeenAt) FROM ads GROUP BY 1",
      "SELECT pageName FROM ads WHERE lastSeenAt > '2030'",
      "SELECT max(json_extract(json, '$.lastSeenAt')) FROM ads",
      "SELECT max(json ->> 'lastSeenAt') FROM current_ads",
    ])
      expect(await queryDays(tenant, sql)).toHaveLength(1);
  });

  test('query_ads does not warn of ads that were all last seen on one day if the SQL is about another advertiser', async ({
    tenant,
  }) => {
    for (const sql of [
      "SELECT max(lastSeenAt) FROM ads WHERE pageName = 'Daily'",
      "SELECT upper(pageName) AS pageName, max(lastSeenAt) FROM ads WHERE pageId = 'daily' GROUP BY 1",
    ])
      expect(await queryDays(tenant, sql)).toEqual([]);
  });
});

test('query_ads also warns of missing values in an ad field that the SQL reads through a JSON path', async ({
  upstream,
  tenant,
}) => {
  serveAds(upstream, 0).ads = createOwnedAds([{ name: 'Partial', ads: 40, withCountry: 10 }], { ctaType: null });
  await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
  for (const sql of [
    "SELECT json_extract(json, '$.ctaType', '$.countries[0]') FROM ads",
    "SELECT json ->> '$.ctaType', json -> 'countries' FROM current_ads",
    `SELECT json_extract(json, '$."ctaType"') FROM ads WHERE json_extract(json, '$.countries') IS NOT NULL`,
  ])
    expect(await queryGaps(tenant, sql)).toEqual(['Known for some of the 40 ads only: ctaType (0) and country (10).']);
  expect(await queryGaps(tenant, "SELECT json_extract(json, '$.headline', '$.unknown') FROM ads")).toEqual([]);
  expect(await queryGaps(tenant, "SELECT '$.ctaType' FROM ads")).toEqual([]);
});

test('an SQL result that contains no data about ads does not mention missing ads', async ({ upstream, tenant }) => {
  serveAds(upstream, 0).ads = createOwnedAds([{ name: 'Partial', ads: 40, withCountry: 10 }]);
  await tenant.call('gather_ads', { filters: { some: 'ads' }, maxAds: 20, maxCredits: 100 });
  for (const sql of ['SELECT 1', 'SELECT id FROM gatherings WHERE complete = 1', 'SELECT count(*) FROM months']) {
    const { data, text } = await tenant.call('query_ads', { sql });
    expect(data.coverage).toEqual({ ads: 20, gatherings: 1 });
    expect(text).not.toMatch(/Coverage|Read 20/);
    expect((await tenant.call('export_ads', { sql })).text).not.toMatch(/Coverage|Read 20/);
  }
  for (const sql of ['SELECT count(*) FROM gathered', 'SELECT count(*) FROM gatherings, ads'])
    expect((await tenant.call('query_ads', { sql })).text).toContain('Coverage: 20 ads');
});

test('an empty SQL result says only once that a search was not read completely', async ({ upstream, tenant }) => {
  serveAds(upstream, 0).ads = createOwnedAds([{ name: 'Partial', ads: 40, withCountry: 10 }]);
  await tenant.call('gather_ads', { filters: { some: 'ads' }, maxAds: 20, maxCredits: 100 });
  const sql = "SELECT id FROM ads WHERE pageName = 'Nobody'";
  const sections = [{ heading: 'Nobody', sql }];
  for (const { text } of [
    await tenant.call('query_ads', { sql }),
    await tenant.call('export_ads', { sql }),
    await tenant.call('write_report', { title: 'Nobody', sections }),
  ])
    expect(text.match(/Read 20 of 40 ads/g)).toHaveLength(1);
  const viewed = await tenant.call('view_ads', { sql });
  expect(viewed.isError).toBe(true);
  expect(viewed.text).toMatch(
    /^The call is not valid\.\nThe SELECT gives no id of an ad in the dataset\. It must select the column id\. .*Read 20 of 40 ads, /,
  );
});

test('an SQL statement can define a table named current_ads, like the built-in view, and read the JSON of ads', async ({
  upstream,
  tenant,
}) => {
  serveAds(upstream, 0).ads = createOwnedAds([{ name: 'Partial', ads: 4, withCountry: 4 }]);
  await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
  for (const sql of [
    'WITH current_ads AS (SELECT json FROM ads) SELECT count(json) FROM current_ads',
    "WITH current_ads AS (SELECT json_extract(json, '$.id') AS x FROM ads) SELECT count(x) FROM current_ads",
    'SELECT count(json) FROM current_ads',
    'SELECT count(x) FROM (SELECT json AS x FROM current_ads)',
  ])
    expect((await tenant.call('query_ads', { sql })).data.rows).toEqual([[4]]);
});
