import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Ad, Page } from '../../src/api/schemas.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { advertisers, makeMarket, seededRandom } from '../../src/library/demo/market.ts';
import { startOfTests } from './support/served-library.ts';

const now = () => startOfTests;
const day = 86_400_000;
const market = (seed: number, at = startOfTests) => [...makeMarket(seededRandom(seed), at)];
const base = 'https://library.demo.example';
let demo: Awaited<ReturnType<typeof openDemoLibrary>>;

beforeAll(async () => {
  demo = await openDemoLibrary({ now, bases: { media: 'https://media.demo.example' } });
});
afterAll(() => demo.library.close());

async function ask(path: string, body?: unknown) {
  const response = await demo.library.fetch(
    new Request(new URL(path, base), {
      method: body ? 'POST' : 'GET',
      headers: { Authorization: `Bearer ${demo.apiKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
  const type = response.headers.get('content-type') ?? '';
  return { status: response.status, type, body: type.includes('json') ? JSON.parse(await response.text()) : undefined };
}

describe('the market', () => {
  test('is the same for the same seed and day, and another for another', () => {
    expect(market(1)).toEqual(market(1, startOfTests + 60_000));
    expect(market(2)).not.toEqual(market(1));
    const [first] = market(1);
    const [later] = market(1, startOfTests + day);
    expect(later?.ads.map(({ id }) => id)).toEqual(first?.ads.map(({ id }) => id));
  });

  test('is wide: advertisers, languages, scripts, countries, industries, formats', () => {
    const ads = market(1).flatMap((page) => page.ads);
    expect(advertisers.length).toBeGreaterThanOrEqual(36);
    for (const key of ['name', 'domain'] as const)
      expect(new Set(advertisers.map((advertiser) => advertiser[key])).size).toBe(advertisers.length);
    expect(new Set(advertisers.map(({ language }) => language)).size).toBeGreaterThanOrEqual(15);
    expect(new Set(advertisers.map(({ industry }) => industry)).size).toBeGreaterThanOrEqual(10);
    expect(ads.length).toBeGreaterThan(1800);
    expect(new Set(ads.map(({ displayFormat }) => displayFormat))).toEqual(
      new Set(['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO']),
    );
    for (const script of ['Hangul', 'Hiragana', 'Arabic', 'Devanagari', 'Thai', 'Han']) {
      expect(ads.some(({ body }) => new RegExp(`\\p{Script=${script}}`, 'u').test(body ?? ''))).toBe(true);
    }
  });

  test('fits the schemas, stays in .example, and its dates and ranges make sense', () => {
    for (const { page, ads } of market(3)) {
      Page.parse(page);
      expect(page.adsAmount).toBe(ads.length);
      for (const ad of ads) {
        Ad.parse(ad);
        const text = JSON.stringify(ad);
        expect(text).not.toMatch(/\{(brand|product|percent|days|thousands|tries)\}|undefined|NaN/);
        for (const [, host] of text.matchAll(/https?:\/\/([^/"]+)/g)) expect(host).toMatch(/\.example$/);
        const { startedAt = '', lastSeenAt = '', endDate } = ad as Record<string, string>;
        expect(startedAt <= lastSeenAt).toBe(true);
        expect(Date.parse(lastSeenAt)).toBeLessThanOrEqual(startOfTests);
        if (endDate) expect(endDate).toBe(lastSeenAt);
        expect(ad.adSpendMin).toBeLessThanOrEqual(ad.adSpendMax ?? 0);
        expect(ad.revenueMin).toBeLessThanOrEqual(ad.revenueMax ?? 0);
      }
    }
  });

  test('begins, newest first, with many advertisers, several days and formats, and money in whole units', () => {
    const ads = market(1).flatMap((page) => page.ads);
    const newest = ads.sort((a, b) => String(b.startedAt).localeCompare(String(a.startedAt))).slice(0, 20);
    expect(new Set(newest.map(({ pageId }) => pageId)).size).toBeGreaterThanOrEqual(8);
    expect(new Set(newest.map(({ startedAt }) => startedAt)).size).toBeGreaterThanOrEqual(3);
    expect(new Set(newest.map(({ displayFormat }) => displayFormat)).size).toBeGreaterThanOrEqual(3);
    for (const ad of ads) {
      for (const amount of [ad.adSpendMin, ad.adSpendMax, ad.revenueMin, ad.revenueMax]) {
        expect(Number.isInteger(amount) && Number(amount) > 0).toBe(true);
      }
    }
  });

  test('says what fits the trade, in sentences that begin with a capital and merge no article', () => {
    const wrong =
      /\b(de|à) les? |\b(de|a) el |\b(de|em|por) [oa] [A-Z]|\b(di|a|su|da|in) l[ae] [A-Z]|[.!?] (the|le|la|el|o|de|il) /;
    for (const { page, ads } of market(1)) {
      const { industry } = advertisers.find(({ name }) => name === page.pageName) ?? {};
      for (const ad of ads) {
        const said = `${ad.headline}\n${ad.body}`;
        if (['en', 'fr', 'es', 'pt', 'it'].includes(page.languages?.[0] ?? '')) expect(said).not.toMatch(wrong);
        if (ad.productPrice === 0) expect(said).not.toMatch(/% off|in stock/i);
        if (/free shipping|envío gratis|frete grátis|versand|무료 배송|全館免運|मुफ़्त डिलीवरी/i.test(said)) {
          expect(['beauty', 'fashion', 'food', 'home', 'fitness', 'pets']).toContain(industry);
        }
      }
    }
  });
});

describe('the demo library', () => {
  test('answers with its key from the first request on, and is generous', async () => {
    const { body } = await ask('/v1/credits');
    expect(body).toMatchObject({ credits: 10_000, creditsMax: 10_000 });
    expect((await ask('/v1/ads/search', {})).body.totalHits).toBeGreaterThan(1800);
  });

  test('has the same key and ids for the same seed', async () => {
    const again = await openDemoLibrary({ now });
    expect(again.apiKey).toBe(demo.apiKey);
    again.library.close();
  });

  test('can be closed before its data is made', async () => {
    const { library } = await openDemoLibrary({ now });
    library.close();
    await new Promise((resolve) => setTimeout(resolve, 20));
  });

  test('has collections of its own and of a colleague, with items', async () => {
    const { items } = (await ask('/v1/collections')).body;
    expect(items.length).toBeGreaterThanOrEqual(5);
    expect(items.some(({ isOwner }: { isOwner: boolean }) => !isOwner)).toBe(true);
    const team = items.find(({ adCount }: { adCount: number }) => adCount > 50);
    const { body } = await ask(`/v1/collections/${team.id}/items?itemType=ads`);
    expect(body).toMatchObject({ hasMore: true });
    expect(body.items).toHaveLength(50);
  });
});
