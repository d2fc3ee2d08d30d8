import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { Ad, Page } from '../../src/api/schemas.ts';
import { type DemoData, readDemoData, writeDemoData } from '../../src/library/demo/built-demo-data.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { makeDemoData } from '../../src/library/demo/make-demo-data.ts';
import {
  advertisers,
  createSeededRandom,
  makeAdvertiser,
  makeCampaignAds,
  movePageDates,
  planCampaigns,
} from '../../src/library/demo/market/market.ts';
import { createDemoLibrary } from '../../src/library/open.ts';
import { readPictureHeader } from '../../src/pictures/fetch-picture.ts';
import { dayMs } from '../../src/views/durations.ts';
import { waitUntil } from '../support/deadline.ts';
import { startHttp } from '../support/http.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { testStartTime } from './support/library-server.ts';

const baseUrl = 'https://library.demo.example';
const findAdvertiser = (ad: Ad) => advertisers.find(({ domain }) => domain === ad.displayUrl);
const getBrand = (ad: Ad) => `${ad.displayUrl?.replace('.example', '')}`;

type Demo = Awaited<ReturnType<typeof openDemoLibrary>>;

/** Sends a request to the demo library and returns the body of the response. */
async function request({ apiKey, library }: Demo, path: string, body?: unknown) {
  const headers = { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' };
  const init = { headers, ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }) };
  return JSON.parse(await (await library.fetch(new Request(new URL(path, baseUrl), init))).text());
}

/** Reads all ads or all pages of a demo library. */
async function readAll<Item>(source: Demo, kind: 'ads' | 'pages'): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | undefined | null; cursor !== null; ) {
    const page = await request(source, `/v1/${kind}/search`, { limit: 100, cursor });
    items.push(...page.items);
    cursor = page.cursor;
  }
  return items;
}

const builtDataFolder = pathToFileURL(`${createTemporaryFolder()}/`);
const demo = await openDemoLibrary({ now: () => testStartTime });
afterAll(() => demo.library.close());
const ads = await readAll<Ad>(demo, 'ads');
const pages = await readAll<Page>(demo, 'pages');

describe('The demo ads', () => {
  test('a day later, the demo has the same ads, and the dates of all ads have moved by one day', async () => {
    const laterDemo = await openDemoLibrary({ now: () => testStartTime + dayMs });
    const stringifyWithoutDates = (someAds: Ad[]) => JSON.stringify(someAds).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');
    const laterAds = await readAll<Ad>(laterDemo, 'ads');
    expect(stringifyWithoutDates(laterAds) === stringifyWithoutDates(ads)).toBe(true);
    const findLastDay = (someAds: Ad[]) =>
      someAds
        .map(({ lastSeenAt }) => lastSeenAt)
        .sort()
        .at(-1);
    expect([findLastDay(ads), findLastDay(laterAds)]).toEqual(['2026-03-15T00:00:00.000Z', '2026-03-16T00:00:00.000Z']);
    laterDemo.library.close();
  });

  test('the demo ads cover many advertisers, languages, industries and formats', () => {
    const countDistinct = (key: 'name' | 'domain' | 'language' | 'industry') =>
      new Set(advertisers.map((advertiser) => advertiser[key])).size;
    expect([countDistinct('name'), countDistinct('domain')]).toEqual([advertisers.length, advertisers.length]);
    expect(advertisers.length).toBeGreaterThanOrEqual(36);
    expect(countDistinct('language')).toBeGreaterThanOrEqual(15);
    expect(countDistinct('industry')).toBeGreaterThanOrEqual(10);
    expect(ads.length).toBeGreaterThan(1800);
    const formats = new Set(ads.map(({ displayFormat }) => displayFormat));
    expect([...formats].sort()).toEqual(['CAROUSEL', 'DCO', 'IMAGE', 'VIDEO']);
    for (const script of ['Hangul', 'Hiragana', 'Arabic', 'Devanagari', 'Thai', 'Han'])
      expect(ads.some(({ body }) => new RegExp(`\\p{Script=${script}}`, 'u').test(body ?? ''))).toBe(true);
  });

  test('every demo ad has plausible links, dates and amounts', () => {
    for (const page of pages) {
      Page.parse(page);
      const adsOfPage = ads.filter(({ pageId }) => pageId === page.pageId);
      expect(page.adsAmount).toBe(adsOfPage.length);
      for (const ad of adsOfPage) {
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

test('an advertiser page whose dates are moved to a later day equals the page that is generated on that day', () => {
  for (const [seed, advertiser] of advertisers.entries()) {
    const { page } = makeAdvertiser(advertiser, createSeededRandom(seed), 0);
    const laterPage = makeAdvertiser(advertiser, createSeededRandom(seed), testStartTime).page;
    expect(movePageDates(page, testStartTime - (testStartTime % dayMs))).toEqual(laterPage);
  }
});

test('the campaigns of an advertiser contain the same ads whether they are generated one by one or together', () => {
  for (const [seed, advertiser] of advertisers.entries()) {
    const { ads: allAds, campaignStarts } = makeAdvertiser(advertiser, createSeededRandom(seed), testStartTime);
    const plan = planCampaigns(advertiser, createSeededRandom(seed), testStartTime);
    // Read the campaigns in reverse order, because users open the ads of a campaign in any order.
    const campaigns = campaignStarts.toReversed().map((start) => makeCampaignAds(plan, start, allAds.length));
    expect(campaigns.toReversed().flat()).toEqual(allAds);
  }
});

test('the demo data is the same each time it is generated, and after it is written to files and read again', async () => {
  const demoData = await makeDemoData();
  await writeDemoData(demoData, builtDataFolder);
  const hashDatabase = async ({ writeDatabase, advertisers: advertiserSources }: DemoData) => {
    const path = fileURLToPath(new URL('copy.db', builtDataFolder));
    await writeDatabase(path);
    return { advertisers: advertiserSources, database: hash('sha256', readFileSync(path)) };
  };
  const expectedHash = await hashDatabase(demoData);
  expect(await hashDatabase(await makeDemoData())).toEqual(expectedHash);
  expect(await hashDatabase(await readDemoData(builtDataFolder))).toEqual(expectedHash);
});

describe('The demo library', () => {
  test('the demo library leaves no files in the temporary folder after it has been opened', async () => {
    const listDemoFolders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('ad-library-demo-'));
    const foldersBefore = listDemoFolders();
    const openedDemo = await openDemoLibrary({ now: () => testStartTime });
    expect(await request(openedDemo, '/v1/credits')).toMatchObject({ credits: 10_000 });
    // Other tests may open a demo library at the same time. Wait until their temporary folders have been deleted.
    if (process.platform !== 'win32')
      await waitUntil(() => listDemoFolders().every((name) => foldersBefore.includes(name)));
    openedDemo.library.close();
  });

  test('a request opens the demo library even if an earlier request failed to open it', async () => {
    let isClockBroken = true;
    const retriedDemo = createDemoLibrary({
      now() {
        if (isClockBroken) throw new Error('The clock is broken.');
        return testStartTime;
      },
    });
    const headers = { Authorization: `Bearer ${retriedDemo.apiKey}` };
    const requestCredits = () => retriedDemo.fetch(new Request(`${baseUrl}/v1/credits`, { headers }));
    await expect(requestCredits()).rejects.toThrow('The clock is broken.');
    isClockBroken = false;
    expect((await requestCredits()).status).toBe(200);
    await retriedDemo.close();
  });

  test('the demo library always has the same API key, with 10,000 credits', async () => {
    const secondDemo = await openDemoLibrary({ now: () => testStartTime });
    expect(await request(secondDemo, '/v1/credits')).toMatchObject({ credits: 10_000, creditsMax: 10_000 });
    secondDemo.library.close();
    expect(secondDemo.apiKey).toBe(demo.apiKey);
    // Closing a demo before its first request must not fail.
    (await openDemoLibrary({ now: () => testStartTime })).library.close();
  });

  test('the demo library contains collections of the user and of a colleague', async () => {
    const { items } = await request(demo, '/v1/collections');
    expect(items.length).toBeGreaterThanOrEqual(5);
    expect(items.some(({ isOwner }: { isOwner: boolean }) => !isOwner)).toBe(true);
    const teamCollection = items.find(({ adCount }: { adCount: number }) => adCount > 50);
    const page = await request(demo, `/v1/collections/${teamCollection.id}/items?itemType=ads`);
    expect(page).toMatchObject({ hasMore: true });
    expect(page.items).toHaveLength(50);
  });
});

const pictureFiles = readdirSync(new URL('../../src/library/demo/pictures/', import.meta.url));

describe('The demo pictures', () => {
  async function fetchPicture(address: string): Promise<Uint8Array> {
    const response = await demo.library.fetch(new Request(address));
    expect([address, response.status, response.headers.get('content-type')]).toEqual([address, 200, 'image/webp']);
    return new Uint8Array(await response.arrayBuffer());
  }

  test('every picture URL of a demo ad returns a picture of the stated size', async () => {
    const sizes = new Map<string, object>();
    for (const ad of ads) {
      for (const { url = '', width, height } of ad.media ?? []) {
        expect(url).toContain(`${baseUrl}/media/demo/${getBrand(ad)}-`);
        if (!sizes.has(url)) sizes.set(url, readPictureHeader(await fetchPicture(url)));
        expect([url, { format: 'webp', width, height }]).toEqual([url, sizes.get(url)]);
      }
      for (const { image_url } of ad.cards ?? []) expect(sizes.has(String(image_url))).toBe(true);
    }
    expect(sizes.size).toBeGreaterThan(0.95 * pictureFiles.length);
  });

  test('the picture of a demo ad matches its product, discount and format', () => {
    const pictureKinds = new Set<string>();
    const stillsAndVideos = ads.filter(({ displayFormat }) => displayFormat === 'IMAGE' || displayFormat === 'VIDEO');
    for (const ad of stillsAndVideos) {
      // Skip ads whose text is a template, because it has a placeholder instead of the product name.
      if (ad.body?.includes('{{')) continue;
      const { products = [], points = [] } = findAdvertiser(ad) ?? {};
      const productNumber = products.findIndex(({ name }) => name.slice(1) === ad.productTitle?.slice(1));
      const [, kind = ''] = ad.media?.[0]?.url?.split(`/demo/${getBrand(ad)}-${productNumber + 1}-`) ?? [];
      const textWithoutPoints = points.reduce((text, point) => text.replaceAll(point, ''), `${ad.headline} ${ad.body}`);
      if (ad.displayFormat === 'VIDEO') expect(kind).toBe('tall.webp');
      else
        expect([textWithoutPoints, kind === 'offer.webp']).toEqual([
          textWithoutPoints,
          /%|play free/.test(textWithoutPoints),
        ]);
      pictureKinds.add(kind);
    }
    expect([...pictureKinds].sort()).toEqual(['meet.webp', 'offer.webp', 'tall.webp']);
  });
});

test('the HTTP server in demo mode serves the pictures of the demo, but not its API or web pages', async () => {
  const { origin, close } = await startHttp({ demo: true });
  const pictureUrl = `${origin}/media/demo/${pictureFiles[0]}`;
  const response = await fetch(pictureUrl);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/webp']);
  const forbiddenNames = ['mossgate.webp', '..%2findustries.json', '%2e%2e%2fdemo.ts', 'mossgate-logo.webp%00', ''];
  for (const path of [
    ...forbiddenNames.map((name) => `/media/demo/${name}`),
    '/media/%2e%2e/v1/credits',
    '/filters.json',
  ])
    expect([path, (await fetch(`${origin}${path}`)).status]).toEqual([path, 404]);
  expect((await fetch(pictureUrl, { headers: { Origin: 'https://elsewhere.example' } })).status).toBe(403);
  await close();
});
