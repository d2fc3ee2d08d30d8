import fc from 'fast-check';
import { expect } from 'vitest';
import { createAd, type ServedAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { Result } from '../support/server.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

const dayMs = 86_400_000;
const calls = { maxCredits: 1000 };

interface CheckView {
  changed: string[];
  counters?: Record<string, { rose: number; fell: number }>;
}
const checkIn = ({ data }: Result) => (data.watches as CheckView[])[0];

const card = (title: string, fields: object = {}) => ({
  title,
  body: `Body of ${title}`,
  cta_type: 'SHOP_NOW',
  link_url: `https://shop.example/${title}?utm_source=x`,
  resized_image_url: `https://cdn1.example/${title}.jpg?oh=1`,
  ...fields,
});

const ad: ServedAd = createAd(1, {
  page: { pageName: 'Acme', adsAmount: 10 },
  linkDescription: 'Free shipping',
  offerLink: 'https://www.shop.example/boots/?utm_campaign=a&size=9',
  ctaType: 'SHOP_NOW',
  countries: ['DE', 'AT', 'CH'],
  publisherPlatform: ['FACEBOOK', 'INSTAGRAM'],
  startedAt: '2026-10-01T00:00:00.000Z',
  lastSeenAt: '2026-11-16T05:00:00Z',
  endDate: '2026-12-01T00:00:00.000Z',
  media: [
    { type: 'VID', nr: 0, url: 'https://video-1.cdn.example/v/first.mp4?oh=1' },
    { type: 'CARD_THUMB', nr: 0, url: 'https://video-1.cdn.example/v/card.jpg?oh=1' },
  ],
  cards: [card('red'), card('blue')],
  duplicates: 5,
  audienceReach: 1000,
  adSpendMin: 100,
  adSpendMax: 199,
  revenueMin: 500,
  revenueMax: 900,
  trendPublic: 40,
  performancePublic: 60,
});

const media = ad.media as { url: string }[];
const withMediaUrl = (url: string) => [{ ...media[0], url }, media[1]];

/** Differences between two responses that do not count as a change of the ad. */
const unchanged: Record<string, object> = {
  'more duplicates': { duplicates: 9 },
  'less reach': { audienceReach: 900 },
  'another range of spend': { adSpendMin: 200, adSpendMax: 299 },
  'another range of revenue': { revenueMin: 700, revenueMax: 1100 },
  'another trend': { trendPublic: 50 },
  'another performance': { performancePublic: 10 },
  'more ads of the advertiser': { page: { pageName: 'Acme', adsAmount: 14 } },
  'a counter that the document does not name': { impressionsRank: 7 },
  'a later day on which it was seen': { lastSeenAt: '2026-11-23T05:00:00Z' },
  'another link into the application': { appUrl: 'https://app.example/ads/1?session=2' },
  'another order of countries': { countries: ['CH', 'DE', 'AT'] },
  'another order of platforms': { publisherPlatform: ['INSTAGRAM', 'FACEBOOK'] },
  'another order of cards': { cards: [card('blue'), card('red')] },
  'another order of media': { media: media.toReversed() },
  'another spelling of the end': { endDate: '2026-12-01' },
  'another spelling of the start': { startedAt: '2026-10-01 00:00' },
  'spaces after the headline': { headline: `${ad.headline}  ` },
  'an invisible character in the body': { body: `${ad.body}\u200b\r\n` },
  'a signature of another day': { media: withMediaUrl('https://video-1.cdn.example/v/first.mp4?oh=2') },
  'another host of the media': { media: withMediaUrl('https://video-7.cdn.example/v/first.mp4?oh=2') },
  'another tracking parameter': { offerLink: 'https://shop.example/boots?size=9&utm_campaign=b&fbclid=1' },
  'null for a field that was missing': { displayUrl: null, productTitle: null },
};

/** Differences that are visible in the ad, so they count as a change. */
const changed: Record<string, object> = {
  'another headline': { headline: 'Other boots' },
  'another body': { body: 'Other words' },
  'another description': { linkDescription: 'Free returns' },
  'another product': { productTitle: 'Trail boots' },
  'another destination': { offerLink: 'https://shop.example/shoes?size=9' },
  'another product of the same page': { offerLink: 'https://shop.example/boots?size=10' },
  'another call to action': { ctaType: 'LEARN_MORE' },
  'another format': { displayFormat: 'CAROUSEL' },
  'another country': { countries: ['DE', 'AT'] },
  'an earlier end': { endDate: '2026-11-20' },
  'no end': { endDate: null },
  'another video': { media: withMediaUrl('https://video-1.cdn.example/v/second.mp4?oh=1') },
  'another card': { cards: [card('red'), card('green')] },
  'another text on a card': { cards: [card('red', { body: 'New' }), card('blue')] },
  'another link of a card': { cards: [card('red', { link_url: 'https://other.example/red' }), card('blue')] },
  'another picture of a card': {
    cards: [card('red', { resized_image_url: 'https://cdn1.example/new.jpg' }), card('blue')],
  },
};

test('check_watches reports an ad as changed only if the content of the ad changed', async ({ upstream, start }) => {
  const [unchangedNames, changedNames] = [Object.keys(unchanged), Object.keys(changed)];
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 0);
  const names = new Map([...unchangedNames, ...changedNames].map((name, index) => [createAd(100 + index).id, name]));
  const show = (fieldsOf: (name: string) => object) => {
    service.ads = [...names].map(([id, name]): ServedAd => ({ ...ad, ...fieldsOf(name), id }));
  };
  const namesOf = (ids: readonly unknown[]) => ids.map((id) => names.get(String(id)));
  show(() => ({}));
  await server.call('watch_ads', { name: 'a', filters: { q: 'a' }, maxCredits: 50 });
  await server.call('check_watches', calls);
  await server.call('gather_ads', { filters: { q: 'b' }, maxCredits: 50 });
  clock += 7 * dayMs;
  show((name) => unchanged[name] ?? changed[name] ?? {});
  const gathered = await server.call('gather_ads', { filters: { q: 'b' }, maxCredits: 50, fresh: true });
  expect(gathered.data).toMatchObject({ updated: changedNames.length, sinceLast: { updated: changedNames.length } });
  const check = checkIn(await server.call('check_watches', calls));
  expect(namesOf(check?.changed ?? []).sort()).toEqual(changedNames.toSorted());
  const versions = await server.queryRows('SELECT id FROM ad_versions');
  expect(namesOf(versions.flat()).sort()).toEqual(changedNames.toSorted());
});

test('check_watches says for how many ads a counter from the API, such as spend, rose or fell', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 0);
  service.ads = Array.from({ length: 10 }, (_, index): ServedAd => ({ ...ad, id: createAd(index).id }));
  await server.call('watch_ads', { name: 'a', filters: {}, maxCredits: 50 });
  await server.call('check_watches', calls);
  clock += 7 * dayMs;
  service.ads = service.ads.map((one, index) => ({
    ...one,
    duplicates: index < 6 ? 8 : index === 6 ? 1 : 5,
    adSpendMax: index === 0 ? 499 : 199,
    ...(index === 9 && { audienceReach: null }),
  }));
  const result = await server.call('check_watches', calls);
  const counters = { duplicates: { rose: 6, fell: 1 }, spend: { rose: 1, fell: 0 } };
  expect(checkIn(result)).toMatchObject({ changed: [], counters });
  expect(result.text).toContain('0 new, 0 changed, 0 no longer listed');
  const line = "The service's counters: duplicates rose for 6 and fell for 1; spend rose for 1.";
  expect(result.text.split('\n')).toContain(line);
  const gathered = await server.call('gather_ads', { filters: {}, maxCredits: 50 });
  expect(gathered.text).toContain(line);
  expect(gathered.data.sinceLast).toMatchObject({ counters });
});

test('check_watches still reports a changed ad after the counters of the ad have changed many times', async ({
  upstream,
  start,
}) => {
  const body = fc.constantFrom('Old', 'Old', 'Old', 'Old', 'New');
  const reading = fc.record({ body, duplicates: fc.nat(1000) });
  const readingsOfAd = fc.array(reading, { minLength: 15, maxLength: 15 });
  await fc.assert(
    fc.asyncProperty(fc.array(readingsOfAd, { minLength: 20, maxLength: 20 }), async (ads) => {
      let clock = Date.parse('2026-11-16T09:00:00Z');
      const server = await start({}, { now: () => clock++ });
      const service = serveAds(upstream, 0);
      service.ads = ads.map((_, index) => createAd(index, { body: 'Old', duplicates: 1 }));
      await server.call('watch_ads', { name: 'a', filters: { q: 'a' }, maxCredits: 50 });
      await server.call('check_watches', calls);
      for (let at = 0; at < 15; at++) {
        service.ads = ads.map((readings, index) => createAd(index, readings[at]));
        await server.call('search_ads', { filters: { q: 'other' }, limit: 20, fresh: true });
      }
      clock += 7 * dayMs;
      const { changed = [] } = checkIn(await server.call('check_watches', calls)) ?? {};
      const rows = await server.queryRows('SELECT id, count(*) FROM ad_versions GROUP BY 1');
      const versions = new Map(rows as [string, number][]);
      for (const [index, readings] of ads.entries()) {
        const { id } = createAd(index);
        const changes = readings.filter(({ body }, at) => body !== (readings[at - 1]?.body ?? 'Old')).length;
        expect(versions.get(id) ?? 0).toBe(Math.min(10, changes));
        // If an ad changed more often than versions are stored, either result is accepted.
        const isNew = readings.at(-1)?.body === 'New';
        if (isNew || changes <= 10) expect(changed.includes(id)).toBe(isNew);
      }
      await server.close();
    }),
    { numRuns: 4 },
  );
}, 120_000);

test('check_watches shows the words that changed in a Japanese ad', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 1);
  const body = (day: string) =>
    `今年の夏は、軽くて涼しい新作スニーカーで街を歩こう。今なら送料無料でお届けします。期間限定セールは${day}まで。`;
  service.ads = [createAd(1, { body: body('金曜日') })];
  await server.call('watch_ads', { name: 'a', filters: {}, maxCredits: 50 });
  await server.call('check_watches', calls);
  clock += 7 * dayMs;
  service.ads = [createAd(1, { body: body('日曜日') })];
  const { text } = await server.call('check_watches', calls);
  expect(text).toMatch(/body "….*金曜日まで。" → "….*日曜日まで。"/);
});
