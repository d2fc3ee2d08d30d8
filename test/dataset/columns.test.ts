import fc from 'fast-check';
import { expect, test } from 'vitest';
import { adRows, languageText } from '../../src/dataset/ad-rows.ts';
import { pageRow } from '../../src/dataset/snapshot.ts';
import { columnsOf, tables } from '../../src/dataset/tables.ts';

const gatheredAt = Date.UTC(2026, 10, 20, 12);

const ad = {
  id: '02dbad1d-1996-5523-ac12-e5be98677589',
  pageId: 'page-1',
  page: { pageName: 'Trail House', adsAmount: 12 },
  headline: 'Boots that last',
  body: 'Walk more.\nBuy less.',
  offerLink: 'https://www.trail-house.example/boots?utm_source=x',
  startedAt: '2026-10-01T07:00:00.000Z',
  lastSeenAt: '2026-11-19T07:00:00+02:00',
  endDate: null,
  duplicates: 3,
  ctaType: 'SHOP_NOW',
  displayFormat: 'CAROUSEL',
  countries: ['DE', 'AT', 'DE'],
  publisherPlatform: ['FACEBOOK'],
  cards: [
    { title: 'Red', body: 'Walk more.\nBuy less.', link_url: 'https://trail-house.example/red' },
    { title: '', body: 'Blue boots' },
  ],
  media: [
    { type: 'CARD_THUMB', nr: 0, url: 'a' },
    { type: 'CARD_VID', nr: 1, url: 'b' },
    { type: 'CARD_THUMB', nr: 1, url: 'c' },
    { type: 'PA_PP', nr: null, url: 'd' },
  ],
};

test('an ad fills every column of the contract', () => {
  const { ad: row, countries, platforms, cards } = adRows(ad, { gatheredAt, language: 'en', variant: 'v' });
  expect(Object.keys(row)).toEqual(columnsOf('ads'));
  expect(row).toMatchObject({
    pageName: 'Trail House',
    startedAt: '2026-10-01T07:00:00.000Z',
    lastSeenAt: '2026-11-19T05:00:00.000Z',
    endDate: null,
    landingDomain: 'trail-house.example',
    daysRunning: 49,
    active: 1,
    firstLine: 'Walk more.',
    startedMonth: '2026-10',
    text: 'Boots that last\nWalk more.\nBuy less.\nRed\nBlue boots',
    cardCount: 2,
    videoCount: 1,
    imageCount: 1,
    firstGatheredAt: '2026-11-20T12:00:00.000Z',
    gatheredAt: '2026-11-20T12:00:00.000Z',
  });
  expect(JSON.parse(row.json ?? '')).toEqual(ad);
  expect(countries).toEqual([
    { id: ad.id, country: 'DE' },
    { id: ad.id, country: 'AT' },
  ]);
  expect(platforms).toEqual([{ id: ad.id, platform: 'FACEBOOK' }]);
  expect(cards).toEqual([
    { id: ad.id, number: 1, title: 'Red', body: 'Walk more.\nBuy less.', url: 'https://trail-house.example/red' },
    { id: ad.id, number: 2, title: null, body: 'Blue boots', url: null },
  ]);
});

test('the time of gathering, not of asking, says whether an ad ran', () => {
  const ended = { ...ad, endDate: '2026-11-10' };
  expect(adRows(ended, { gatheredAt }).ad).toMatchObject({ active: 0, daysRunning: 40 });
  expect(adRows(ad, { gatheredAt: Date.UTC(2027, 1, 1) }).ad).toMatchObject({ active: null, daysRunning: 49 });
  expect(adRows(ad, { gatheredAt, firstGatheredAt: 0 }).ad.firstGatheredAt).toBe('1970-01-01T00:00:00.000Z');
});

test('a template says nothing: neither the first line nor the language comes from it', () => {
  const template = { id: 'a', headline: '{{product.name}}', body: '{{product.brand}} for you', cards: ad.cards };
  expect(adRows(template, { gatheredAt }).ad.firstLine).toBe('Walk more.');
  expect(languageText(template)).toBe('Red\nWalk more.\nBuy less.\nBlue boots');
  expect(languageText({ id: 'a', headline: '{{product.name}}' })).toBeNull();
});

test.each([
  [{ type: 'VID', nr: 0 }, { type: 'THUMB', nr: 0 }, 1, 0],
  [{ type: 'THUMB', nr: 0 }, { type: 'THUMB', nr: 0 }, 0, 1],
  [{ type: 'PA_PP' }, { type: 7 }, null, null],
])('of %j and %j there are %s videos and %s images', (first, second, videoCount, imageCount) => {
  expect(adRows({ media: [first, second] }, { gatheredAt }).ad).toMatchObject({ cardCount: 0, videoCount, imageCount });
});

test('a page fills every column, lists as JSON', () => {
  const row = pageRow(
    { pageId: 7, pageName: ' ', adsAmount: 3, detailsEstimated: false, countries: ['DE', '', 4, 'AT'], languages: [] },
    { at: gatheredAt, firstAt: gatheredAt },
    '',
  );
  expect(Object.keys(row)).toEqual(columnsOf('pages'));
  expect(row).toMatchObject({ pageId: '7', pageName: null, adsAmount: 3, detailsEstimated: 0, languages: null });
  expect(row.countries).toBe('["DE","AT"]');
});

test('whatever the service sends, a cell is a filled text, a finite number or null of its column', () => {
  const names = fc.constantFrom(...Object.keys(ad), ...columnsOf('ads'), ...columnsOf('pages'));
  const fields = fc.dictionary(
    names,
    fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.string({ unit: 'binary' })),
  );
  fc.assert(
    fc.property(fields, (object) => {
      const { ad: row, cards, countries, platforms } = adRows(object, { gatheredAt });
      for (const [name, cell] of Object.entries(row)) {
        if (name === 'id' || cell === null) continue;
        expect(typeof cell).toBe(tables.ads[name as keyof typeof tables.ads] === 'text' ? 'string' : 'number');
        expect(cell).not.toBe('');
        expect(cell).not.toBe(Number.POSITIVE_INFINITY);
      }
      for (const card of cards) expect(card.body).not.toBe('');
      expect(countries.length + platforms.length).toBeLessThan(1000);
      expect(Object.keys(pageRow(object, { at: gatheredAt, firstAt: gatheredAt }, ''))).toEqual(columnsOf('pages'));
    }),
  );
});
