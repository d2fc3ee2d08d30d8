import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { adFields } from '../../src/views/fields.ts';
import { createAd, type ServedAd, serveAds } from '../support/ad-service.ts';
import { tenantUpstreamTest } from '../support/fixtures.ts';
import type { Result } from '../support/server.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const test = tenantUpstreamTest({ now: () => now });

const toDay = (daysAgo: number) => new Date(now - daysAgo * 86_400_000).toISOString().slice(0, 10);

interface Coverage {
  partial?: { note: string }[];
  notes?: string[];
}
const readCoverage = ({ data }: Result) => data.coverage as Coverage;
const readNotes = (result: Result) => readCoverage(result).notes ?? [];

/** Creates ads that have all fields used in these tests. Each ad starts after the previous one. */
const createAds = (count: number, fields: (index: number) => object = () => ({})): ServedAd[] =>
  Array.from({ length: count }, (_, index) =>
    createAd(index, {
      pageId: 'p',
      page: { pageName: 'Acme' },
      startedAt: `${toDay(400 - index)}T00:00:00Z`,
      lastSeenAt: `${toDay(0)}T06:00:00Z`,
      duplicates: 1 + ((index * 37) % 101),
      countries: ['DE'],
      ...fields(index),
    }),
  );

describe('Notes on searches that gather_ads read only in part', () => {
  const orders: [name: string, sort: (ads: ServedAd[]) => ServedAd[], sentence: RegExp][] = [
    [
      'newest first',
      (ads) => ads.toReversed(),
      /^Read 40 of 200 ads, newest first: (\d{4}-\d\d-\d\d) to \d{4}-\d\d-\d\d\. The missing ads are from \1 or earlier, or have no date\. Reading the rest costs between 8 and 20 credits\.$/,
    ],
    [
      'oldest first',
      (ads) => ads,
      /^Read 40 of 200 ads, oldest first: \S+ to (\S+)\. The missing ads are from \1 or later, or have no date\./,
    ],
    [
      'by duplicates',
      (ads) => ads.toSorted((left, right) => Number(right.duplicates) - Number(left.duplicates)),
      /^Read 40 of 200 ads, by duplicates, highest first: 82 to 101\. The missing ads have at most 82, or no duplicates\./,
    ],
    [
      'in no order',
      (ads) => ads.map((_, index) => ads[(index * 37) % ads.length] ?? createAd(index)),
      /^Read 40 of 200 ads, in no order that the fields show\. The missing ads may differ from these\./,
    ],
  ];

  test.for(orders)(
    'query_ads says which ads are missing if gather_ads has read a search only in part (order of the list: %s)',
    async ([, sort, sentence], { upstream, tenant }) => {
      const service = serveAds(upstream, 0);
      service.ads = sort(createAds(200));
      const gathered = await tenant.call('gather_ads', { filters: { some: 'ads' }, maxAds: 40, maxCredits: 100 });
      const [firstLine = ''] = gathered.text.split('\n');
      expect(firstLine).toMatch(/^Gathering g\w+ is not complete, stopped: maxAds\. Read 40 of 200 ads/);
      expect(gathered.data.incomplete).toMatch(sentence);
      const { data, text } = await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
      const [note = ''] = (data.coverage as Coverage).partial?.map(({ note }) => note) ?? [];
      expect(note).toMatch(sentence);
      expect(text).toContain(note);
      expect(firstLine).toContain(note);
      const reported = await tenant.call('write_report', {
        title: 'Ads',
        sections: [{ heading: 'All', sql: 'SELECT count(*) FROM ads' }],
      });
      expect(readCoverage(reported).partial?.[0]?.note).toBe(note);
      expect((await tenant.readResource(String(reported.data.uri))).text).toContain(note);
      expect(readCoverage(await tenant.call('export_ads', {})).partial?.[0]?.note).toBe(note);
    },
  );

  const requestedOrders: [sort: string, fields: (index: number) => object, sentence: RegExp][] = [
    [
      'endDate',
      (index) => (index < 60 ? { endDate: `${toDay(index)}T00:00:00Z` } : {}),
      /^Read 40 of 200 ads, the latest end first: (\S+) to \S+\. The missing ads end on \1 or earlier, or have no date\./,
    ],
    [
      'endDate',
      (index) => (index < 20 ? { endDate: `${toDay(index)}T00:00:00Z` } : {}),
      /^Read 40 of 200 ads, the latest end first: .* The missing ads have no endDate\./,
    ],
    [
      'lastSeenAt',
      () => ({ startedAt: null }),
      /^Read 40 of 200 ads, the most recently seen first: 2026-11-20\. The missing ads were last seen on 2026-11-20 or earlier, or have no date\./,
    ],
    [
      'audienceReach',
      (index) => (index < 60 ? { audienceReach: 1000 - index } : {}),
      /^Read 40 of 200 ads, by audienceReach, highest first: 961 to 1,000\. The missing ads have at most 961, or no audienceReach\./,
    ],
  ];

  test.for(requestedOrders)(
    'for a partly read search with the sort field %s, query_ads shows the sort order and which ads are missing',
    async ([sort, fields, sentence], { upstream, tenant }) => {
      const service = serveAds(upstream, 0);
      const ads = createAds(200);
      // Shuffle the start dates, so that only the requested sort order explains the order of the ads.
      service.ads = ads.map((ad, index) => ({
        ...ad,
        startedAt: ads[(index * 37) % ads.length]?.startedAt,
        ...fields(index),
      }));
      await tenant.call('gather_ads', { filters: { sort, order: 'desc' }, maxAds: 40, maxCredits: 100 });
      const { data } = await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
      expect((data.coverage as Coverage).partial?.[0]?.note).toMatch(sentence);
    },
  );

  test('gather_ads says that it stopped because of maxCredits and what reading the remaining ads costs', async ({
    upstream,
    tenant,
  }) => {
    const service = serveAds(upstream, 0);
    service.ads = createAds(300).toReversed();
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 0 });
    const { text, data } = await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 25 });
    expect(data.stopped).toBe('maxCredits');
    const [firstLine = ''] = text.split('\n');
    expect(firstLine).toMatch(
      /stopped: maxCredits\. Read \d+ of 300 ads, newest first: .* The missing ads are from \S+ or earlier, or have no date\. Reading the rest costs \d+ credits\.$/,
    );
    const { atLeast, atMost } = data.estimate as { atLeast: number; atMost: number };
    expect(atLeast).toBe(atMost);
    expect(firstLine).toContain(`costs ${atMost} credits.`);
  });

  test('an empty SQL result begins with the number of missing ads if gather_ads has read the search only in part', async ({
    upstream,
    tenant,
  }) => {
    serveAds(upstream, 0).ads = createAds(200).toReversed();
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxAds: 40, maxCredits: 100 });
    for (const sql of [
      "SELECT id FROM ads WHERE pageName = 'Other'",
      "SELECT count(*), max(body) FROM ads WHERE pageName = 'Other'",
    ])
      expect((await tenant.call('query_ads', { sql })).text).toMatch(/^Read 40 of 200 ads, newest first: /);
    expect((await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' })).text).toMatch(/^1 row:/);
    const exported = await tenant.call('export_ads', { sql: 'SELECT id FROM ads WHERE 0' });
    expect(exported.text).toMatch(/^Read 40 of 200 ads/);
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    const complete = await tenant.call('query_ads', { sql: "SELECT id FROM ads WHERE pageName = 'Other'" });
    expect(complete.text).toMatch(/^0 rows:/);
    expect(complete.text).not.toContain('missing');
  });

  test('query_ads names each search in a split gather_ads call that was not read completely', async ({
    upstream,
    tenant,
  }) => {
    const service = serveAds(upstream, 0);
    const ads = createAds(90).toReversed();
    service.selectAds = ({ country }) =>
      ads.filter((_, index) => index % 3 === ['DE', 'FR', 'IT'].indexOf(String(country)));
    const split = ['DE', 'FR', 'IT'].map((country) => ({ country }));
    await tenant.call('gather_ads', { split, maxAds: 40, maxCredits: 100 });
    const result = await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
    expect(readCoverage(result).partial?.[0]?.note).toMatch(
      /^Read 40 of 60 found in 2 of 3 parts\. Not complete: "\{'country':'FR'\}" 10 of 30 ads; "\{'country':'IT'\}" not begun\./,
    );
  });

  test('the date range stated for missing ads covers every partly read search of a split gather_ads call', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 0);
    const ads = createAds(90);
    const readCounts: Record<string, number> = { DE: 40, FR: 20 };
    const selectNewestFirst = (country: unknown) =>
      ads.filter((_, index) => index % 2 === ['DE', 'FR'].indexOf(String(country))).toReversed();
    service.selectAds = ({ country }) => selectNewestFirst(country);
    // The service returns the same page again and again, so that each part ends early.
    service.modifyResponse = (responseBody, { filters: { country } }) => ({
      ...responseBody,
      items: selectNewestFirst(country).slice(0, readCounts[String(country)]),
      cursor: 'same',
      hasMore: true,
    });
    const lastDay = String(selectNewestFirst('FR')[19]?.startedAt).slice(0, 10);
    for (const split of [
      [{ country: 'DE' }, { country: 'FR' }],
      [{ country: 'FR' }, { country: 'DE' }],
    ]) {
      await server.call('gather_ads', { split, maxCredits: 100 });
      const result = await server.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
      const notes = (readCoverage(result).partial ?? []).map(({ note }) => note);
      expect(notes.at(-1)).toContain(`The missing ads are from ${lastDay} or earlier, or have no date.`);
    }
  });

  test('the statement about missing ads stays the same if a later search returns a different value for a listed ad', async ({
    upstream,
    start,
  }) => {
    const server = await start({ cacheSeconds: 0 }, { now: () => now });
    const service = serveAds(upstream, 0);
    const ads = createAds(200).toSorted((left, right) => Number(right.duplicates) - Number(left.duplicates));
    service.ads = ads;
    await server.call('gather_ads', { filters: { some: 'ads' }, maxAds: 40, maxCredits: 100 });
    const readNote = async () =>
      readCoverage(await server.call('query_ads', { sql: 'SELECT count(*) FROM ads' })).partial?.[0]?.note;
    expect(await readNote()).toContain('The missing ads have at most 82, or no duplicates.');
    service.ads = ads.slice(39, 40).map((ad) => ({ ...ad, duplicates: 1 }));
    await server.call('search_ads', {});
    expect(await readNote()).toContain('The missing ads have at most 82, or no duplicates.');
  });

  test('query_ads states the date range of the ads of a split search only if it covers all ads that were read', async ({
    upstream,
    tenant,
  }) => {
    const service = serveAds(upstream, 0);
    const ads = createAds(350);
    service.selectAds = ({ country }) => (country === 'DE' ? ads.slice(0, 50) : ads.slice(50)).toReversed();
    await tenant.call('gather_ads', { split: [{ country: 'DE' }, { country: 'FR' }], maxAds: 100, maxCredits: 100 });
    const result = await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
    expect(readCoverage(result).partial?.[0]?.note).toMatch(
      /^Read 100 of 350 ads\. The missing ads are from \S+ or earlier, or have no date\./,
    );
  });

  test('query_ads says that a search is complete even if the search found no ads', async ({ upstream, tenant }) => {
    serveAds(upstream, 0);
    const readCoverageText = async () => (await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' })).text;
    expect(await readCoverageText()).toContain('Coverage: 0 ads: nothing is gathered yet.');
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    expect(await readCoverageText()).toContain('Coverage: 0 ads; every gathering is complete.');
  });

  test('an empty SQL result does not begin with the number of missing ads if an earlier run has read the whole search', async ({
    upstream,
    start,
  }) => {
    const time = { now };
    const server = await start({ cacheSeconds: 0 }, { now: () => time.now++ });
    serveAds(upstream, 0).ads = createAds(200).toReversed();
    const filters = { some: 'ads' };
    await server.call('gather_ads', { filters, maxCredits: 100 });
    await server.call('gather_ads', { filters, fresh: true, maxAds: 40, maxCredits: 100 });
    const result = await server.call('query_ads', { sql: "SELECT id FROM ads WHERE pageName = 'Other'" });
    expect(result.text).toMatch(/^0 rows:/);
    expect(readCoverage(result).partial?.[0]?.note).toContain('An earlier gathering, of 2026-11-20, is complete.');
  });
});

describe('Notes on the days when ads were last seen', () => {
  test('for SQL about dates, query_ads names an advertiser if most ads of the advertiser were last seen on the same day', async ({
    upstream,
    start,
  }) => {
    const server = await start({ cacheSeconds: 0 }, { now: () => now });
    const service = serveAds(upstream, 0);
    const advertiser = fc.record({
      ads: fc.integer({ min: 1, max: 40 }),
      shared: fc.double({ min: 0.6, max: 1, noNaN: true }),
      daysAgo: fc.constantFrom(0, 1, 2, 3, 4, 90),
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(advertiser, { minLength: 1, maxLength: 3 }), async (advertisers) => {
        round++;
        service.ads = advertisers.flatMap(({ ads, shared, daysAgo }, owner) =>
          Array.from({ length: ads }, (_, index) =>
            createAd(10_000 * round + 100 * owner + index, {
              pageId: `p${round}-${owner}`,
              page: { pageName: `Name ${round}-${owner}` },
              startedAt: toDay(300),
              // All other ads have different days.
              lastSeenAt: `${toDay(index < Math.round(shared * ads) ? daysAgo : 100 + index)}T01:00:00Z`,
            }),
          ),
        );
        await server.call('gather_ads', { filters: { round }, maxCredits: 100 });
        const expected = advertisers.flatMap(({ ads, shared, daysAgo }, owner) => {
          const onDay = Math.round(shared * ads);
          return daysAgo > 2 && onDay >= 10 && onDay >= 0.8 * ads
            ? [`${onDay} of ${ads} ads of "Name ${round}-${owner}" on ${toDay(daysAgo)}`]
            : [];
        });
        const sql = `SELECT pageName, max(daysRunning) FROM ads WHERE pageId LIKE 'p${round}-%' GROUP BY 1`;
        const notes = readNotes(await server.call('query_ads', { sql })).filter((note) => note.startsWith('Last seen'));
        expect(notes).toHaveLength(expected.length > 0 ? 1 : 0);
        for (const phrase of expected) expect(notes[0]).toContain(phrase);
        expect(notes.join().match(/ on \d{4}-/g) ?? []).toHaveLength(expected.length);
        const otherStatement = `SELECT pageName, count(*) FROM ads WHERE pageId LIKE 'p${round}-%' GROUP BY 1`;
        expect(readNotes(await server.call('query_ads', { sql: otherStatement })).join()).not.toContain('Last seen');
      }),
      { numRuns: 20 },
    );
  });

  test('query_ads gives no warning about ads that were all last seen on one day if their end dates are known', async ({
    upstream,
    tenant,
  }) => {
    serveAds(upstream, 0).ads = createAds(30, (index) => ({ lastSeenAt: toDay(60), endDate: toDay(100 + index) }));
    const { text } = await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    expect(text).toContain('30 ended');
    expect(text).not.toContain('Last seen on one day');
  });

  test('reports and exports about dates name an advertiser whose ads were all last seen on the same day', async ({
    upstream,
    tenant,
  }) => {
    serveAds(upstream, 0).ads = createAds(30, () => ({ lastSeenAt: toDay(60) }));
    const sentence = `Last seen on one day: 30 of 30 ads of "Acme" on ${toDay(60)}. Their days running are their age on that day. Ads that ended earlier may be missing, so counts by start count survivors.`;
    const { text } = await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    expect(text).toContain(sentence);
    const sql = 'SELECT startedMonth, count(*) FROM ads GROUP BY 1';
    const report = await tenant.call('write_report', {
      title: 'Ads',
      sections: [{ heading: 'Starts', sql, chart: 'bar' }],
    });
    expect(report.text).toContain(sentence);
    const { text: html } = await tenant.readResource(String(report.data.uri));
    expect(html).toContain('Nearly all ads of 1 advertiser were last seen on');
    expect((await tenant.call('export_ads', { sql })).text).toContain(sentence);
    expect((await tenant.call('export_ads', { sql: 'SELECT id FROM ads' })).text).not.toContain('Last seen');
  });
});

describe('Notes on fields that some ads lack', () => {
  const fields = ['headline', 'ctaType', 'audienceReach', 'endDate', 'productTitle', 'trendPublic', 'country'] as const;
  type Field = (typeof fields)[number];
  const values: Record<Field, object> = {
    headline: { headline: 'Warm boots' },
    ctaType: { ctaType: 'SHOP_NOW' },
    audienceReach: { audienceReach: 10 },
    endDate: { endDate: '2027-01-01T00:00:00Z' },
    productTitle: { productTitle: 'Boots' },
    trendPublic: { trendPublic: 3 },
    country: { countries: ['DE', 'AT'] },
  };
  /** Computes the sentence on missing fields that the result must contain for these ads and fields. */
  function expectSentence(ads: readonly ServedAd[], statementFields: readonly Field[]): string | undefined {
    const countAds = (field: Field) => {
      const [name = ''] = Object.keys(values[field]);
      return ads.filter((ad) => ad[name] != null).length;
    };
    const gaps = statementFields
      .map((field) => ({ field, count: countAds(field) }))
      .filter(({ count }) => count < 0.95 * ads.length)
      .sort((left, right) => left.count - right.count || (left.field < right.field ? -1 : 1));
    const named = gaps.slice(0, 5).map(({ field, count }) => `${field} (${count})`);
    const more = gaps.length - named.length;
    if (more > 0) named.push(`${more} more field${more === 1 ? '' : 's'}`);
    const list = [named.slice(0, -1).join(', '), named.at(-1)].filter(Boolean).join(' and ');
    const noun = ads.length === 1 ? '1 ad' : `${ads.length} ads`;
    return gaps.length === 0 ? undefined : `Known for some of the ${noun} only: ${list}.`;
  }

  /** Returns several SQL statements that read exactly these fields. */
  function listStatements(statementFields: readonly Field[]): string[] {
    const columns = statementFields.filter((field) => field !== 'country');
    const join = statementFields.includes('country') ? ' LEFT JOIN ad_countries c ON c.id = a.id' : '';
    const list = [...columns.map((column) => `a.${column}`), ...(join ? ['c.country'] : [])];
    if (list.length === 0) return ['SELECT count(*) FROM ads'];
    return [
      `SELECT ${list.join(', ')} FROM ads a${join}`,
      `SELECT count(*) FROM ads AS a${join} WHERE ${list.map((column) => `${column} IS NOT NULL`).join(' OR ')}`,
      `WITH x AS (SELECT ${list.map((column, index) => `upper(${column}) AS x${index}`).join(', ')} FROM ads a${join}) SELECT count(x0) AS "endDate" FROM x`,
    ];
  }

  test('an SQL result says how many ads have each field that the SQL statement reads', async ({
    upstream,
    connect,
  }) => {
    const service = serveAds(upstream, 0);
    const presence = fc.array(fc.array(fc.constantFrom(...fields)), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(presence, fc.subarray([...fields]), async (adFields, statementFields) => {
        // Connect with a new API key in each run, so that the dataset is empty.
        const tenant = await connect();
        service.ads = adFields.map((present, index) =>
          createAd(index, Object.assign({ headline: null }, ...present.map((field) => values[field]))),
        );
        await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
        const expected = expectSentence(service.ads, statementFields);
        for (const sql of listStatements(statementFields)) {
          const result = await tenant.call('query_ads', { sql });
          expect(readNotes(result).filter((note) => note.startsWith('Known'))).toEqual(expected ? [expected] : []);
          if (expected) expect(result.text).toContain(expected);
        }
        expect(readNotes(await tenant.call('query_ads', { sql: 'SELECT count(*) FROM ads' }))).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  test('the statement about missing fields counts only ads in the view current_ads if the SQL reads this view', async ({
    upstream,
    tenant,
  }) => {
    const service = serveAds(upstream, 0);
    service.ads = createAds(20, (index) => ({ ctaType: index < 15 ? 'SHOP_NOW' : null }));
    await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    service.ads = Array.from({ length: 20 }, (_, index) => createAd(100 + index));
    await tenant.call('search_ads', {});
    const readOne = async (sql: string) => readNotes(await tenant.call('query_ads', { sql }));
    expect(await readOne('SELECT ctaType FROM current_ads')).toEqual([
      'Known for some of the 20 ads only: ctaType (15).',
    ]);
    expect(await readOne('SELECT ctaType FROM ads')).toEqual(['Known for some of the 40 ads only: ctaType (15).']);
    expect(await readOne('SELECT country FROM ad_countries')).toEqual([
      'Known for some of the 40 ads only: country (20).',
    ]);
    expect(await readOne('SELECT count(*) FROM ad_countries')).toEqual([
      'Known for some of the 40 ads only: country (20).',
    ]);
    expect(await readOne('WITH current_ads AS (SELECT ctaType FROM ads) SELECT * FROM current_ads')).toEqual([
      'Known for some of the 40 ads only: ctaType (15).',
    ]);
    expect(await readOne('WITH ads AS (SELECT 1 AS ctaType) SELECT ctaType FROM ads')).toEqual([]);
    expect(await readOne('SELECT filters FROM gatherings')).toEqual([]);
  });

  test('an SQL result mentions no missing data if all searches and fields are complete', async ({
    upstream,
    tenant,
  }) => {
    serveAds(upstream, 0).ads = createAds(40);
    const gathered = await tenant.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
    expect(gathered.data.incomplete).toBeUndefined();
    const sql =
      'SELECT pageName, startedMonth, country, count(*) AS ads, max(daysRunning) FROM ads JOIN ad_countries USING (id) GROUP BY 1, 2, 3';
    for (const result of [
      await tenant.call('query_ads', { sql }),
      await tenant.call('export_ads', { sql }),
      await tenant.call('write_report', { title: 'Ads', sections: [{ heading: 'All', sql }] }),
    ]) {
      expect(readCoverage(result)).toEqual({
        ads: 40,
        gatherings: 1,
        current: { ads: 40, firstDay: '2026-11-20', lastDay: '2026-11-20' },
      });
      expect(result.text).toContain(
        'Coverage: 40 ads; every gathering is complete. current_ads: 40 ads that the newest complete gathering of each question listed, read on 2026-11-20.\n',
      );
    }
  });
});

describe('Notes on amounts in several currencies', () => {
  const sum = 'SELECT sum(adSpendMax) FROM ads';
  const currencyNote = /^The ads have amounts in several currencies: EUR, USD and "a sentence"\. /;

  test.for<[statement: string, hasNote: boolean]>([
    [sum, true],
    [`${sum} WHERE pageName IN ('Acme', 'Other')`, true],
    ["SELECT sum(json ->> '$.adSpendMax') FROM ads", true],
    // Ads of this advertiser have one currency only.
    [`${sum} WHERE pageName = 'Other'`, false],
    // These statements can tell the currencies apart, or read no amount.
    [`${sum} WHERE currency = 'EUR'`, false],
    [`${sum} GROUP BY currency`, false],
    ['SELECT sum(productPrice) FROM ads', false],
    ['SELECT count(*) FROM ads', false],
  ])(
    'query_ads warns about amounts in several currencies only if the SQL statement combines such amounts: %s',
    async ([sql, hasNote], { upstream, tenant }) => {
      const service = serveAds(upstream, 0);
      service.ads = createAds(12, (index) => ({
        adSpendMax: 100 + index,
        currency: ['USD', 'EUR', 'a sentence', null][index % 4],
        ...(index % 4 === 0 && { pageId: 'o', page: { pageName: 'Other' } }),
      }));
      await tenant.call('gather_ads', { filters: {}, maxCredits: 100 });
      const { text, ...result } = await tenant.call('query_ads', { sql });
      const notes = readNotes({ text, ...result }).filter((note) => note.includes('currencies'));
      expect(notes).toEqual(hasNote ? [expect.stringMatching(currencyNote)] : []);
      if (hasNote) expect(text).toContain(notes[0]);
    },
  );

  const amountFields = Object.entries(adFields).flatMap(([name, { description }]) =>
    description.endsWith(', in currency.') ? [name] : [],
  );
  test.for(amountFields)(
    'query_ads warns about a sum of %s in several currencies',
    async (name, { upstream, tenant }) => {
      const service = serveAds(upstream, 0);
      service.ads = createAds(2, (index) => ({ [name]: 100, currency: ['USD', 'EUR'][index] }));
      await tenant.call('gather_ads', { filters: {}, maxCredits: 100 });
      const result = await tenant.call('query_ads', { sql: `SELECT sum(${name}) FROM ads` });
      expect(readNotes(result)).toContainEqual(expect.stringContaining('several currencies: EUR and USD'));
    },
  );
});
