import { hash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { Ad, Page } from '../../src/api/schemas.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { makeDemoData } from '../../src/library/demo/make-demo-data.ts';
import { advertisers } from '../../src/library/demo/market/market.ts';
import { type DemoData, packDemoData, readDemoData } from '../../src/library/demo/packed-demo-data.ts';
import { readHeader } from '../../src/pictures/fetch-picture.ts';
import { waitUntil } from '../support/deadline.ts';
import { startHttp } from '../support/http.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { testStartTime } from './support/served-library.ts';

const base = 'https://library.demo.example';
const advertiserOf = (ad: Ad) => advertisers.find(({ domain }) => domain === ad.displayUrl);
const brandOf = (ad: Ad) => `${ad.displayUrl?.replace('.example', '')}`;

type Demo = Awaited<ReturnType<typeof openDemoLibrary>>;

async function ask({ apiKey, library }: Demo, path: string, body?: unknown) {
  const headers = { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' };
  const init = { headers, ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }) };
  return JSON.parse(await (await library.fetch(new Request(new URL(path, base), init))).text());
}

/** Every ad or advertiser. */
async function all<Item>(of: Demo, kind: 'ads' | 'pages'): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | undefined | null; cursor !== null; ) {
    const found = await ask(of, `/v1/${kind}/search`, { limit: 100, cursor });
    items.push(...found.items);
    cursor = found.cursor;
  }
  return items;
}

const folder = pathToFileURL(`${createTemporaryFolder()}/`);
const demo = await openDemoLibrary({ now: () => testStartTime });
afterAll(() => demo.library.close());
const ads = await all<Ad>(demo, 'ads');
const pages = await all<Page>(demo, 'pages');

describe('the market', () => {
  test('a demo that is opened a day later has the same ads, with dates a day later', async () => {
    const later = await openDemoLibrary({ now: () => testStartTime + 86_400_000 });
    const undated = (some: Ad[]) => JSON.stringify(some).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');
    const laterAds = await all<Ad>(later, 'ads');
    expect(undated(laterAds) === undated(ads)).toBe(true);
    const lastDay = (some: Ad[]) =>
      some
        .map(({ lastSeenAt }) => lastSeenAt)
        .sort()
        .at(-1);
    expect([lastDay(ads), lastDay(laterAds)]).toEqual(['2026-03-15T00:00:00.000Z', '2026-03-16T00:00:00.000Z']);
    later.library.close();
  });

  test('is wide: advertisers, languages, scripts, countries, industries, formats', () => {
    const differing = (key: 'name' | 'domain' | 'language' | 'industry') =>
      new Set(advertisers.map((advertiser) => advertiser[key])).size;
    expect([differing('name'), differing('domain')]).toEqual([advertisers.length, advertisers.length]);
    expect(advertisers.length).toBeGreaterThanOrEqual(36);
    expect(differing('language')).toBeGreaterThanOrEqual(15);
    expect(differing('industry')).toBeGreaterThanOrEqual(10);
    expect(ads.length).toBeGreaterThan(1800);
    const formats = new Set(ads.map(({ displayFormat }) => displayFormat));
    expect([...formats].sort()).toEqual(['CAROUSEL', 'DCO', 'IMAGE', 'VIDEO']);
    for (const script of ['Hangul', 'Hiragana', 'Arabic', 'Devanagari', 'Thai', 'Han'])
      expect(ads.some(({ body }) => new RegExp(`\\p{Script=${script}}`, 'u').test(body ?? ''))).toBe(true);
  });

  test('fits the schemas, stays in .example, and its dates and ranges make sense, in whole units of money', () => {
    for (const page of pages) {
      Page.parse(page);
      const own = ads.filter(({ pageId }) => pageId === page.pageId);
      expect(page.adsAmount).toBe(own.length);
      for (const ad of own) {
        Ad.parse(ad);
        const text = JSON.stringify(ad);
        expect(text).not.toMatch(/\{(brand|product|percent|days|thousands|tries)\}|undefined|NaN/);
        for (const [, host] of text.matchAll(/https?:\/\/([^/"]+)/g)) expect(host).toMatch(/\.example$/);
        const { startedAt = '', lastSeenAt = '', endDate } = ad as Record<string, string>;
        expect(startedAt <= lastSeenAt && Date.parse(lastSeenAt) <= testStartTime).toBe(true);
        if (endDate) expect(endDate).toBe(lastSeenAt);
        const { adSpendMin = 0, adSpendMax = 0, revenueMin = 0, revenueMax = 0 } = ad as Record<string, number>;
        const amounts = [adSpendMin, adSpendMax, revenueMin, revenueMax];
        expect(amounts.every((amount) => Number.isInteger(amount) && amount > 0)).toBe(true);
        expect(adSpendMin <= adSpendMax && revenueMin <= revenueMax).toBe(true);
      }
    }
  });
});

test('the data of the demo has the same bytes each time that it is made, and after it was packed', async () => {
  const made = await makeDemoData();
  for (const [file, bytes] of Object.entries(packDemoData(made))) writeFileSync(new URL(file, folder), bytes);
  const hashed = ({ database, ...rest }: DemoData) => ({ ...rest, database: hash('sha256', database) });
  expect(hashed(await makeDemoData())).toEqual(hashed(made));
  expect(hashed(await readDemoData(folder))).toEqual(hashed(made));
});

describe('the demo library', () => {
  test('leaves no file behind, even while it is open', async () => {
    const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith('ad-library-demo-'));
    const before = left();
    const opened = await openDemoLibrary({ now: () => testStartTime });
    expect(await ask(opened, '/v1/credits')).toMatchObject({ credits: 10_000 });
    // Tests that run at the same time may just be opening another demo.
    if (process.platform !== 'win32') await waitUntil(() => left().every((name) => before.includes(name)));
    opened.library.close();
  });

  test('answers with its key from the first request on, is generous, and has the same key each time', async () => {
    const again = await openDemoLibrary({ now: () => testStartTime });
    expect(await ask(again, '/v1/credits')).toMatchObject({ credits: 10_000, creditsMax: 10_000 });
    again.library.close();
    expect(again.apiKey).toBe(demo.apiKey);
    // Before it was asked for anything.
    (await openDemoLibrary({ now: () => testStartTime })).library.close();
  });

  test('has collections of its own and of a colleague, with items', async () => {
    const { items } = await ask(demo, '/v1/collections');
    expect(items.length).toBeGreaterThanOrEqual(5);
    expect(items.some(({ isOwner }: { isOwner: boolean }) => !isOwner)).toBe(true);
    const team = items.find(({ adCount }: { adCount: number }) => adCount > 50);
    const page = await ask(demo, `/v1/collections/${team.id}/items?itemType=ads`);
    expect(page).toMatchObject({ hasMore: true });
    expect(page.items).toHaveLength(50);
  });
});

const files = readdirSync(new URL('../../src/library/demo/pictures/', import.meta.url));

describe('its pictures', () => {
  async function shown(address: string): Promise<Uint8Array> {
    const response = await demo.library.fetch(new Request(address));
    expect([address, response.status, response.headers.get('content-type')]).toEqual([address, 200, 'image/webp']);
    return new Uint8Array(await response.arrayBuffer());
  }

  test('are at every address of an ad, of the recorded size', async () => {
    const sizes = new Map<string, object>();
    for (const ad of ads) {
      for (const { url = '', width, height } of ad.media ?? []) {
        expect(url).toContain(`${base}/media/demo/${brandOf(ad)}-`);
        if (!sizes.has(url)) sizes.set(url, readHeader(await shown(url)));
        expect([url, { format: 'webp', width, height }]).toEqual([url, sizes.get(url)]);
      }
      for (const { image_url } of ad.cards ?? []) expect(sizes.has(String(image_url))).toBe(true);
    }
    expect(sizes.size).toBeGreaterThan(0.95 * files.length);
  });

  test('show each ad’s own product, a sticker where its copy has a discount and only there, a video as a tall still', () => {
    const kinds = new Set<string>();
    for (const ad of ads.filter(({ displayFormat }) => displayFormat === 'IMAGE' || displayFormat === 'VIDEO')) {
      const { products = [], points = [] } = advertiserOf(ad) ?? {};
      const nr = products.findIndex(({ name }) => name.slice(1) === ad.productTitle?.slice(1));
      const [, kind = ''] = ad.media?.[0]?.url?.split(`/demo/${brandOf(ad)}-${nr + 1}-`) ?? [];
      const copy = points.reduce((text, point) => text.replaceAll(point, ''), `${ad.headline} ${ad.body}`);
      if (ad.displayFormat === 'VIDEO') expect(kind).toBe('tall.webp');
      else expect([copy, kind === 'offer.webp']).toEqual([copy, copy.includes('%') || copy.includes('play free')]);
      kinds.add(kind);
    }
    expect([...kinds].sort()).toEqual(['meet.webp', 'offer.webp', 'tall.webp']);
  });
});

test('in demo mode, http serves the pictures of its ads, and nothing else of the library', async () => {
  const { origin, close } = await startHttp({ demo: true });
  const picture = `${origin}/media/demo/${files[0]}`;
  const answer = await fetch(picture);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/webp']);
  const onDisk = ['mossgate.webp', '..%2findustries.json', '%2e%2e%2fdemo.ts', 'mossgate-logo.webp%00', ''];
  for (const path of [...onDisk.map((name) => `/media/demo/${name}`), '/media/%2e%2e/v1/credits', '/filters.json'])
    expect([path, (await fetch(`${origin}${path}`)).status]).toEqual([path, 404]);
  expect((await fetch(picture, { headers: { Origin: 'https://elsewhere.example' } })).status).toBe(403);
  await close();
});
