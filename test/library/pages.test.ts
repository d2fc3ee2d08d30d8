import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import type { Browser } from 'playwright-core';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openLibrary } from '../../src/library/open.ts';
import { findViolations } from '../support/board/axe.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { launchChromium } from '../support/board/launch-chromium.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { runLibraryCommand, serveDatabase } from './support/command.ts';
import { serveOnLoopback, testStartTime } from './support/library-server.ts';

/** Markup that would run a script if a page did not escape it. */
const hostileText = '"><script>window.broken = true</script><img src=x onerror="window.broken = true">';
const formats = ['IMAGE', 'VIDEO', 'DCO'];
const ads = Array.from({ length: 70 }, (_, number) => ({
  id: deriveUuid(`page ${number}`),
  pageId: 'shop/1 %?#',
  page: { pageName: number === 5 ? 'متجر الجوارب' : `Shop ${hostileText}` },
  headline: number === 0 ? hostileText : `Socks ${number} \u202e\u{e0041}`,
  body: number < 60 ? `${hostileText}\n\n</style>${'W'.repeat(number * 100)}` : 'The same words in ten ads',
  startedAt: `2026-0${1 + (number % 3)}-01T00:00:00.000Z`,
  lastSeenAt: number === 1 ? '2026-01-01T00:00:00.000Z' : '2026-03-14T00:00:00.000Z',
  displayFormat: formats[number % 3],
  countries: number < 40 ? ['DE'] : ['US', 'XX<'],
  languages: ['de'],
  offerLink: 'https://shop.example/?a=1&b=<2>',
  ...{ adSpendMin: 10, adSpendMax: 2000, ctaType: 'LEARN_MORE' },
  cards: [{ title: hostileText, body: 'Second', link_url: 'https://shop.example/?a=1' }],
  media: [{ type: 'IMAGE', url: 'https://cdn.example/picture.jpg' }],
}));
/** The URL path of the advertiser page. The page id contains characters that must be escaped. */
const advertiserPath = '/pages/shop%2F1%20%25%3F%23';

const folder = createTemporaryFolder();

async function serve(name: string, args: string[] = []) {
  const { origin, close, readStderr } = await serveDatabase(join(folder, name), args);
  /** The base path of the pages: `/p/` and a random word. */
  const home = new URL(/(?<=pages at )\S+(?=\/\n)/.exec(readStderr())?.[0] ?? origin).pathname.replace(/\/$/, '');
  const get = async (path: string, { headers = {}, basePath = home } = {}) => {
    const { statusCode, body } = await request(origin + basePath + path, { headers });
    return { status: statusCode, text: await body.text() };
  };
  return { origin, home, get, close };
}

const input = ads.map((ad) => JSON.stringify(ad)).join('\n');
await runLibraryCommand(['import', '-', '--database', join(folder, 'ads.db')], { input });
const library = await serve('ads.db');
afterAll(() => library.close());

const getPath = (ad: { id: string } | undefined) => `/ads/${ad?.id}`;

/** Returns the visible text of a page without the JSON record. Replaces each tag with a vertical bar. */
const extractText = (text: string) =>
  text
    .replace(/<(style|pre)>.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, '|')
    .replace(/\|+/g, '|');

test("the library's web page about an ad shows dates, countries and amounts in readable form", async () => {
  const { text } = await library.get(getPath(ads[2]));
  const visibleText = extractText(text);
  for (const expectedText of [
    'Socks 2',
    '|13 days, running| · since 1\u00a0Mar\u00a02026',
    'No picture: it is not kept in this library',
    ...['|Button|Learn more|', '|Countries|Germany|', '|Languages|German|', '|Ad spend|10 to 2,000|'],
  ])
    expect(visibleText).toContain(expectedText);
  expect(visibleText).not.toMatch(/[a-z][A-Z]|\d{4}-\d\d-\d\d|\b0 days|adSpend/);
  expect(text).toMatch(/<textarea name="address" readonly>https:\/\/shop\.example\/\?a=1[^"<]*</i);
  expect(text).toContain(`href="${library.home}${advertiserPath}"`);
  expect(extractText((await library.get(getPath(ads[1]))).text)).toContain('last seen 1\u00a0Jan\u00a02026');
});

test("the library's web page about an advertiser begins with charts of ad launches, formats and texts", async () => {
  const { text } = await library.get(advertiserPath);
  const visibleText = extractText(text);
  expect(visibleText.indexOf('Launches by month')).toBeLessThan(visibleText.indexOf('Socks 68'));
  expect(text).toContain('aria-label="Jan 2026: 24, Feb 2026: 23, Mar 2026, so far: 23"');
  expect(visibleText).toContain('|Formats|Image|24|Dynamic creative|23|Video|23|');
  expect(visibleText).toMatch(/\|Messages in most ads\|Socks 59 ?\|60\|Socks 68 ?\|10\|/);
  expect(visibleText).toMatch(/\|Longest runs\|days\|[^|]+\|72\|/);
});

test("the library's web pages combine ads with the same text into one card that shows the number of ads", async () => {
  const { text } = await library.get('/?query=same');
  expect(extractText(text)).toMatch(/\|10 ads\|.*\|×10\|.*\|9 more ads with this message\|/);
  expect(text.match(/<li class="card/g)).toHaveLength(1);
});

test.each<[query: string, hits: number, filterLink?: string]>([
  ['displayFormat=VIDEO', 23],
  ['active=true', 69],
  ['active=false', 0],
  ['countries=DE', 40, 'Country: |Germany| ✕'],
  ['language=de&countries=US', 30, 'Language: |German| ✕'],
  ['advertiser=shop', 69, 'Advertiser: |shop| ✕'],
  ['startedAtFrom=2026-03-01', 23, 'Started from: |1 Mar 2026| ✕'],
  ['startedAtTo=2026-01-31', 24, 'Started until: |31 Jan 2026| ✕'],
  ['type=pages&query=shop', 1],
])(
  "the library's list page with the query %s shows %i records and a link to remove each filter",
  async (query, hits, filterLink) => {
    const { text } = await library.get(`/?${query}`);
    const visibleText = extractText(text);
    expect(visibleText).toMatch(new RegExp(`\\|${hits} (ads?|advertisers?)\\|`));
    if (filterLink === undefined) return;
    expect(visibleText).toContain(filterLink);
    const removalLinks = [...text.matchAll(/href="(\?[^"]*)"[^>]*>[^<]*<bdi>/g)].map(([, link]) =>
      link?.replaceAll('&amp;', '&'),
    );
    expect(removalLinks.length).toBe(query.split('&').length);
    for (const link of removalLinks) expect(new URLSearchParams(link).size).toBe(query.split('&').length);
  },
);

test("a user can search and sort ads on the library's list page and go to the next result page", async () => {
  expect((await library.get('/?query=socks+17')).text).toMatch(/1 ad<.*Socks 17/s);
  expect((await library.get('/?query=nothing+of+this')).text).toContain('Nothing matches.');
  const firstPage = (await library.get('/?sort=daysRunning')).text;
  const nextLink = /href="(\?[^"]*cursor[^"]*)"/.exec(firstPage)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const listAdIds = (text: string) => [...text.matchAll(/href="[^"]*\/ads\/([^"]+)"/g)].map(([, id]) => id);
  const secondPage = (await library.get(`/${nextLink}`)).text;
  expect(new Set([...listAdIds(firstPage), ...listAdIds(secondPage)]).size).toBe(70);
});

test("the library's list page shows the default order if the requested sort order does not exist", async () => {
  const listAds = async (path: string) => [...(await library.get(path)).text.matchAll(/\/ads\/[\w-]+/g)].flat();
  const adsInDefaultOrder = await listAds('/');
  expect(adsInDefaultOrder).not.toEqual([]);
  for (const sort of ['toString', '__proto__', 'constructor', 'price'])
    expect(await listAds(`/?sort=${sort}`)).toEqual(adsInDefaultOrder);
});

test("the library's list page shows an error message if the search is invalid", async () => {
  for (const query of ['query=%21%21', 'startedAtFrom=soon', 'displayFormat=%20&cursor=x'])
    expect((await library.get(`/?${query}`)).text).toContain('role="alert"');
  for (const path of ['/ads/nope', '/pages/nope', '/ads/%E0%A4%A'])
    expect(await library.get(path)).toMatchObject({ status: 404 });
});

test("the library's web pages are served only under a random path", async () => {
  expect(library.home).toMatch(/^\/p\/[\w-]{16}$/);
  for (const path of ['/', getPath(ads[0]), advertiserPath, '/p/', '/p/guess/', `/p/guess${getPath(ads[0])}`])
    for (const headers of [{}, { host: '127.0.0.1' }]) {
      const { status, text } = await library.get(path, { headers, basePath: '' });
      expect([path, status, text.includes('Socks')]).toEqual([path, 404, false]);
    }
  const { port } = new URL(library.origin);
  expect((await library.get('/', { headers: { host: `library.example:${port}` } })).status).toBe(403);
  const secondLibrary = await serve('again.db');
  expect(secondLibrary.home).not.toBe(library.home);
  await runLibraryCommand(['import', '-', '--database', join(folder, 'again.db')], { input });
  const keyCreation = await runLibraryCommand(['key', 'create', '--unmetered', '--database', join(folder, 'again.db')]);
  const { body } = await request(`${secondLibrary.origin}/v1/ads/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keyCreation.out.trim()}`, 'content-type': 'application/json' },
    body: '{"limit":1}',
  });
  const { items } = (await body.json()) as { items: { appUrl: string }[] };
  expect(items[0]?.appUrl).toMatch(`${secondLibrary.origin}${secondLibrary.home}/ads/`);
  await secondLibrary.close();
  const publicLibrary = await serve('open.db', ['--host', '0.0.0.0', '--allowed-hosts', '127.0.0.1,0.0.0.0']);
  expect([publicLibrary.home, (await publicLibrary.get('/')).status]).toEqual(['', 404]);
  await publicLibrary.close();
});

test("the library's web page about an ad says why a picture is missing", async () => {
  const database = join(folder, 'odd.db');
  const urls = [
    '{media_url}/größe.jpg',
    '{media_url}/demo/../../x',
    '{media_url}',
    '{app_url}//x',
    'http://127.0.0.1//x.jpg',
  ];
  const adsWithOddUrls = urls.map((url, index) => ({
    ...ads[0],
    id: deriveUuid(`odd ${index}`),
    body: url,
    media: [{ type: 'THUMB', url }],
  }));
  const lines = adsWithOddUrls.map((ad) => JSON.stringify(ad)).join('\n');
  expect(await runLibraryCommand(['import', '-', '--database', database], { input: lines })).toMatchObject({ code: 0 });
  const served = await serve('odd.db');
  const readPage = async (path: string) => {
    const { status, text } = await served.get(path);
    expect([path, status]).toEqual([path, 200]);
    return text;
  };
  for (const ad of adsWithOddUrls) {
    const { origin } = new URL(served.origin);
    // This URL is on the library's own host, but its path starts with two slashes.
    const adWithLocalUrl = { ...ad, media: [{ type: 'THUMB', url: `${origin}//x.jpg` }] };
    await runLibraryCommand(['import', '-', '--database', database], { input: JSON.stringify(adWithLocalUrl) });
    expect(extractText(await readPage(getPath(ad)))).toContain('No picture: it is not kept in this library');
  }
  await readPage('/');
  await readPage(advertiserPath);
  await served.close();
});

test("the library's web page opens without an error for every imported ad", async () => {
  const word = fc.oneof(
    fc.constantFrom(
      '',
      ' ',
      '\0',
      '\ud800',
      '../..',
      '{media_url}',
      '{app_url}/ads/x',
      'javascript:x',
      '//x',
      'ß\u202e',
    ),
    fc.string({ unit: 'binary', maxLength: 6 }),
  );
  const start = fc.constantFrom('{media_url}/demo/', '{media_url}/kept/', '{media_url}/', 'https://', 'data:', '');
  const url = fc.tuple(start, word).map((parts) => parts.join(''));
  const text = fc.oneof(word, url);
  const number = fc.oneof(fc.nat(), fc.double({ noNaN: true, min: 0, noDefaultInfinity: true }), fc.constant(null));
  const day = fc.constantFrom('2026-01-01', '2026-06-30T23:59:59.999Z', '9999-12-31T23:59:59Z', '1969-07-20T12:00:00Z');
  const asset = fc.record({ type: fc.constantFrom('THUMB', 'VID', 'PA_PP', 'CARD_THUMB', ''), url, nr: number });
  const media = fc.array(asset, { maxLength: 3 });
  const card = fc.record({ title: text, link_url: url, image_url: url }, { requiredKeys: [] });
  const ad = fc.record(
    {
      ...{ pageId: text, headline: text, body: text, offerLink: url, displayUrl: text, displayFormat: text },
      ...{ startedAt: day, lastSeenAt: day, endDate: day, duplicates: number, adSpendMin: number, adSpendMax: number },
      ...{ media, cards: fc.array(card, { maxLength: 2 }), page: fc.record({ pageName: text, adsAmount: number }) },
      ...{ website: fc.record({ siteDomain: text }), countries: fc.array(text, { maxLength: 2 }), appUrl: text },
      ...{ languages: fc.array(text, { maxLength: 2 }), bylines: text, __proto__: text },
    },
    { requiredKeys: [] },
  );
  const errors: unknown[] = [];
  const anyAdsLibrary = await openLibrary({
    ...{ database: ':memory:', now: () => testStartTime, htmlPagesPath: '/p/word' },
    onError: (error) => errors.push(error),
  });
  const { url: baseUrl, close } = await serveOnLoopback(anyAdsLibrary.fetch);
  let nextId = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(ad, { minLength: 1, maxLength: 5 }), async (importedAds) => {
      const records = importedAds.map((record) => ({ ...record, id: deriveUuid(`any ${nextId++}`) }));
      await anyAdsLibrary.import(Readable.from(records.map((record) => `${JSON.stringify(record)}\n`)));
      const paths = records.flatMap(({ id, pageId }) => [
        `/ads/${id}`,
        ...(pageId ? [`/pages/${encodeURIComponent(pageId.toWellFormed())}`] : []),
      ]);
      for (const path of ['/', '/?type=pages', ...paths]) {
        const { status } = await fetch(`${baseUrl}/p/word${path}`);
        // 404 is correct for an ad that the import rejected and for a page id that cannot be part of a path.
        expect([path, [200, 404].includes(status)]).toEqual([path, true]);
      }
    }),
    { numRuns: 20 },
  );
  expect(errors).toEqual([]);
  expect(anyAdsLibrary.countRecords().ads).toBeGreaterThan(30);
  await close();
  anyAdsLibrary.close();
});

inChromium("The library's web pages in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  test("the library's web pages never run scripts from hostile ad texts", async () => {
    for (const [width, colorScheme] of [
      [360, 'light'],
      [1100, 'dark'],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const requestsToOtherHosts: string[] = [];
      page.on('request', (pageRequest) => {
        if (!pageRequest.url().startsWith(library.origin)) requestsToOtherHosts.push(pageRequest.url());
      });
      for (const [path, isNewKind] of [
        ['/', true],
        ['/?type=pages', true],
        ['/?countries=US', false],
        [getPath(ads[0]), true],
        [getPath(ads[29]), false],
        [advertiserPath, true],
      ] as const) {
        await page.goto(library.origin + library.home + path);
        expect(await page.evaluate("'broken' in window"), path).toBe(false);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBe(0);
        // The accessibility checker takes longer than all other steps, so check each kind of page only once.
        if (isNewKind) expect(await findViolations(page.locator('html')), path).toEqual([]);
        expect(await page.content()).not.toMatch(/[\u202e\u{e0041}]/u);
      }
      expect(requestsToOtherHosts).toEqual([]);
      await page.close();
    }
  });

  test("a user can search and open an ad on the library's web pages using only the keyboard", async () => {
    const page = await browser.newPage();
    await page.goto(`${library.origin}${library.home}/`);
    await page.getByRole('searchbox').focus();
    await page.keyboard.type('socks 17');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: '1 ad', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Socks 17' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**${getPath(ads[17])}`);
    await page.getByRole('link', { name: 'Shop' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/pages/**');
    await page.close();
  });
});
