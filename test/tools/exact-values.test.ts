import fc from 'fast-check';
import { expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { respondWithBytes, type Upstream } from '../support/faulty-upstream.ts';
import { freshUpstreamTest, type StartServer } from '../support/fixtures.ts';

/** These tests verify that values from the API are the same in texts, data and SQL results. */
const test = freshUpstreamTest();

interface StatementInput {
  start: StartServer;
  upstream: Upstream;
  fields: readonly object[];
  sql: string;
}

/** Searches for ads with these fields and runs a statement over them. Returns both results as text and data. */
async function runStatement({ start, upstream, fields, sql }: StatementInput) {
  const server = await start({ resultTokens: 100_000 });
  serveAds(upstream, 0).ads = fields.map((some, index) => createAd(index, some));
  const { data: list, text: listed } = await server.call('search_ads', { limit: 100 });
  const { data, text } = await server.call('query_ads', { sql, limit: 1000, cell: 20_000 });
  const rows = data.rows as (string | number | null)[][];
  const lines = text.split('\n').slice(2, 2 + rows.length);
  const { data: last } = await server.call('get_ad', { adId: createAd(fields.length - 1).id, seen: true });
  await server.stopApp();
  return { items: list.items, listed, last: last.ad, rows, lines, cells: lines.map((line) => line.split(' | ')) };
}

const longLists = <Value>(value: fc.Arbitrary<Value>) => fc.array(value, { minLength: 90, maxLength: 90 });
/** Limits the runs, because each run starts a server. */
const fewRuns = { numRuns: 2, endOnFailure: true };
const inOrder = 'ORDER BY rowid';

/** A value as an API may write it, and what it means. `meaning` is undefined for an invalid value. */
interface WrittenValue<Meaning> {
  written: unknown;
  meaning: Meaning | undefined;
}

const numbers = fc
  .oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: 1e12, max: Number.MAX_SAFE_INTEGER }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  )
  .map((value) => value + 0)
  // Skip larger whole numbers, which SQL stores as text. Another test covers them.
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 2 ** 63);
const ids = fc.oneof(fc.bigInt({ min: 10n ** 11n, max: 10n ** 25n }).map(String), fc.uuid());

/** Times in common notations. A time without an offset is in UTC. */
const times: fc.Arbitrary<WrittenValue<number>> = fc.constantFrom(
  { written: '2025-06-01', meaning: Date.UTC(2025, 5, 1) },
  { written: '2025-06-01T00:30', meaning: Date.UTC(2025, 5, 1, 0, 30) },
  { written: '2025-06-01 00:30:15', meaning: Date.UTC(2025, 5, 1, 0, 30, 15) },
  { written: '2025-06-01T00:30:15.250', meaning: Date.UTC(2025, 5, 1, 0, 30, 15, 250) },
  { written: '2025-06-01T00:30:15Z', meaning: Date.UTC(2025, 5, 1, 0, 30, 15) },
  { written: '2025-06-01 00:30:15.250Z', meaning: Date.UTC(2025, 5, 1, 0, 30, 15, 250) },
  { written: '2025-06-01T00:30:15+14:00', meaning: Date.UTC(2025, 4, 31, 10, 30, 15) },
  { written: '2025-06-01T00:30-0330', meaning: Date.UTC(2025, 5, 1, 4, 0) },
  { written: '2059-12-31 23:59:59-02', meaning: Date.UTC(2060, 0, 1, 1, 59, 59) },
);
const invalidTimes: fc.Arbitrary<WrittenValue<number>> = fc
  .oneof(fc.jsonValue(), fc.string(), fc.constantFrom('soon', '+012025-01-01T00:00:00Z', '0', '99'))
  .map((written) => ({ written, meaning: undefined }));

/** URLs that a browser accepts, with parts that would mislead a simpler parser. */
const urls: fc.Arbitrary<WrittenValue<URL>> = fc
  .record({
    scheme: fc.constantFrom('https:', 'HTTP:', ' \u0001https:', 'ht\ttps:'),
    slashes: fc.constantFrom('', '/', '//', '///', '\\', '\\\\', '/\\', '\n//'),
    user: fc.constantFrom('', 'paypal.com@', 'user:secret@'),
    host: fc.constantFrom('evil.example', 'WWW.Ev\til.example', 'evil.example.', 'bücher.example', '192.0.2.7'),
    port: fc.constantFrom('', ':8443', ':443'),
    rest: fc.constantFrom('', '/', '\\@paypal.com/in', '/@paypal.com', '?@paypal.com', '#@paypal.com', '/a b/%5C%2f'),
  })
  .map(({ scheme, slashes, user, host, port, rest }) => {
    const written = `${scheme}${slashes}${user}${host}${port}${rest}`;
    return { written, meaning: new URL(written) };
  });
const invalidUrls: fc.Arbitrary<WrittenValue<URL>> = fc
  .constantFrom(
    ...['intent://evil.example/#Intent;scheme=https;end', 'javascript:open("//evil.example")//paypal.com'],
    ...['https://evil.example:99999/', 'https://evil example/', 'evil', 'mailto:a@evil.example'],
  )
  .map((written) => ({ written, meaning: undefined }));

const media = fc.array(fc.constantFrom('VID', 'THUMB', 'PA_PP', 'CARD_THUMB'), { maxLength: 2 });
const adValues = fc.record({
  ...{ number: numbers, id: ids },
  time: fc.oneof(times, invalidTimes),
  address: fc.oneof(urls, invalidUrls),
  media: fc.option(media, { nil: undefined }),
});
type Ad = typeof adValues extends fc.Arbitrary<infer Value> ? Value : never;

test('numbers, ids, dates and URLs of an ad are the same in the result text, the result data and SQL', async ({
  start,
  upstream,
}) => {
  const { TZ } = process.env;
  const zones = ['Asia/Tokyo', 'America/Los_Angeles', 'Asia/Kolkata', 'UTC'];
  const all = fc.tuple(longLists(adValues), urls).map(([some, address]) => [...some, { ...some[0], address }] as Ad[]);
  try {
    await fc.assert(
      fc.asyncProperty(all, async (ads) => {
        process.env.TZ = zones.shift();
        const fields = ads.map(({ number, id, time, address, media }, index) => ({
          ...{ audienceReach: number, pageId: id, startedAt: time.written, offerLink: address.written },
          // In other columns, a time is ordinary text.
          ...(time.meaning !== undefined && { lastSeenAt: time.written, page: { pageName: time.written } }),
          ...(address.meaning === undefined && { displayUrl: 'PAYPAL.COM', ctaType: 'LOGIN' }),
          media:
            index === ads.length - 1
              ? [{ type: 'THUMB', url: address.written }]
              : media?.map((type, nr) => ({ type, nr, url: `https://m.example/${nr}` })),
        }));
        const sql = `SELECT audienceReach, pageId, startedAt, startedMonth, daysRunning, landingDomain, videoCount, imageCount
          FROM ads ${inOrder}`;
        const { rows, cells, items, listed, last } = await runStatement({ start, upstream, fields, sql });
        for (const [index, { number, id, time, address, media = [] }] of ads.entries()) {
          const [reach, pageId, startedAt, month, days, domain, videos, images] = rows[index] ?? [];
          expect([reach, pageId, Number(cells[index]?.[0]), cells[index]?.[1]]).toEqual([number, id, number, id]);
          if (Number.isSafeInteger(number)) expect(cells[index]?.[0]).toMatch(/^-?\d+$/);

          const utc = time.meaning === undefined ? undefined : new Date(time.meaning).toISOString();
          const isTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/);
          if (utc === undefined) expect(startedAt ?? '2026-01-01T00:00:00.000Z').toEqual(isTime);
          else {
            // An ad that has not started yet has no running days.
            const ran = Date.parse(utc) <= Date.now();
            expect([startedAt, month, days]).toEqual([utc, utc.slice(0, 7), ran ? 0 : null]);
            expect(items[index]?.startedAt).toBe(time.written);
            expect(listed).toContain(`${utc.slice(0, 10)}–${utc.slice(0, 10)} (${ran ? '0 days' : 'running'}`);
          }

          const opened = address.meaning?.hostname.replace(/^www\.|\.$/g, '');
          expect([domain, items[index]?.landingDomain]).toEqual([opened ?? null, opened]);
          if (index === ads.length - 1) break;
          const came = media.some((type) => type !== 'PA_PP');
          expect([videos !== null, images !== null]).toEqual([came, came]);
          if (came) expect(videos).toBe(media.filter((type) => type === 'VID').length);
        }
        const { landingUrl, mediaLinks = [] } = last as { landingUrl?: string; mediaLinks?: { url: string }[] };
        const { written, meaning } = (ads.at(-1) as Ad).address;
        const { host, href, username } = meaning as URL;
        expect(new URL(landingUrl ?? '').host).toBe(host);
        const isOmitted = username !== '' || String(written).includes('\\');
        expect(mediaLinks.map(({ url }) => url)).toEqual(isOmitted ? [] : [href]);
      }),
      { ...fewRuns, numRuns: 4 },
    );
  } finally {
    process.env.TZ = TZ;
    if (TZ === undefined) delete process.env.TZ;
  }
});

test('all texts in a column of an SQL result are quoted if one of the texts needs quotes', async ({
  start,
  upstream,
}) => {
  const names = ['Praktika', 'EWA: Learn Languages', 'null', '7', 'Wispr Flow'];
  const fields = names.map((pageName) => ({ page: { pageName } }));
  const sql = `SELECT pageName, NULL, 1, displayFormat FROM ads ${inOrder}`;
  const { lines } = await runStatement({ start, upstream, fields, sql });
  expect(lines).toEqual(names.map((name, at) => `"${name}" | null | 1 | ${at % 2 === 0 ? 'VIDEO' : 'IMAGE'}`));
});

test('an ad list shows the correct page name above each ad even if ads of the same page have different page names', async ({
  start,
  upstream,
}) => {
  const namedPages = fc.record({
    pageId: fc.constantFrom('p1', 'p2'),
    pageName: fc.constantFrom('Acme', 'Beta', 'Gamma'),
  });
  await fc.assert(
    fc.asyncProperty(longLists(namedPages), async (all) => {
      const fields = all.map(({ pageId, pageName }) => ({ pageId, page: { pageName }, headline: null }));
      const { listed } = await runStatement({ start, upstream, fields, sql: 'SELECT 1' });
      const heads = new Map<number, string>();
      let head = '';
      for (const line of listed.split('\n')) {
        const [, number] = /^(\d+)\. /.exec(line) ?? [];
        const [, first] = /^As (\d+):/.exec(line) ?? [];
        if (number !== undefined) heads.set(Number(number), head);
        else if (first !== undefined) head = heads.get(Number(first)) ?? '';
        else if (/^"(?:Acme|Beta|Gamma)" p\d/.test(line)) head = line.slice(0, line.indexOf(' p') + 3);
      }
      expect([...heads.values()]).toEqual(all.map(({ pageId, pageName }) => `"${pageName}" ${pageId}`));
    }),
    fewRuns,
  );
});

/** Whole numbers beyond the range that JavaScript represents exactly. */
const digits = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String);
const near = fc.bigInt({ min: 2n ** 53n - 50n, max: 2n ** 53n + 50n }).map(String);
const text = fc.oneof(
  fc.string(),
  fc.tuple(fc.string(), digits, fc.string()).map((parts) => parts.join(',')),
);
const other = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.boolean());
const fields = fc.array(
  fc.record({ id: fc.oneof(digits, near), list: fc.array(fc.oneof(digits, near), { maxLength: 3 }), text, other }),
  { minLength: 20, maxLength: 20 },
);

test('whole numbers beyond 2^53 keep all of their digits', async ({ start, upstream }) => {
  await fc.assert(
    fc.asyncProperty(fields, fc.constantFrom('', ' ', '\n\t'), async (all, space) => {
      const ads = all.map(({ id, list, text, other }, index) => {
        const plain = JSON.stringify({ ...createAd(index), some: text, other }).slice(0, -1);
        return `${plain},"pageId":${space}${id},"deep":{"list":[${list.join(`,${space}`)}]}}`;
      });
      upstream.respondWith(
        respondWithBytes(`{"items":[${ads.join(',')}],"cursor":null,"hasMore":false,"totalHits":${all.length}}`),
      );
      const server = await start({ resultTokens: 100_000 });
      const listed = await server.call('search_ads', { limit: 100, detail: 'full' });
      const rows = (await server.queryRows(`SELECT pageId, json FROM ads ${inOrder}`)) as [string, string][];
      for (const [index, { id, list, text, other }] of all.entries()) {
        const item = listed.data.items[index];
        const shownAd = item?.deep as { list?: unknown[] } | undefined;
        expect(String(item?.pageId)).toBe(String(BigInt(id)));
        expect((shownAd?.list ?? []).map(String)).toEqual(list.map((one) => String(BigInt(one))));
        const [pageId, json] = rows[index] ?? ['', ''];
        expect(pageId).toBe(String(BigInt(id)));
        expect(JSON.parse(json)).toMatchObject({ some: text, other: other === 0 ? 0 : other });
        for (const one of [id, ...list]) expect(json).toContain(one);
      }
      await server.stopApp();
    }),
    { numRuns: 3, endOnFailure: true },
  );
});

test('a long series of digits inside a text value of an API response is not treated as a number', async ({
  start,
  upstream,
}) => {
  const server = await start();
  const headline = 'a "quoted\\", 12345678901234567890, -12345678901234567890 and [12345678901234567890';
  const plain = JSON.stringify({ ...createAd(0), headline }).slice(0, -1);
  const manyDigits = '1'.repeat(60);
  for (const escapes of ['\\n'.repeat(3.9 * 2 ** 20), '\\"\\\\'.repeat(1.9 * 2 ** 20)]) {
    upstream.respondWith(
      respondWithBytes(
        `${plain},"note":"${escapes}","pageId":-${manyDigits},"n":[1e${manyDigits.slice(58)},${manyDigits}.5]}`,
      ),
    );
    const { data } = await server.call('get_ad', { adId: createAd(0).id, fresh: true });
    expect(data.ad).toMatchObject({ headline, pageId: `-${manyDigits}` });
  }
});
