import { describe, expect, test } from 'vitest';
import { buildAdView, formatAd, formatAdList, getAdViewSchema } from '../../src/views/ad.ts';
import { buildPageView, formatPageList } from '../../src/views/page.ts';
import { countFittingItems as leading } from '../../src/views/tokens.ts';
import { everyFact, now, somePage } from './sample-ads.ts';

const brief = (ad: object) => buildAdView(ad, { detail: 'brief', now });
const withoutNulls = (value: object): object => JSON.parse(JSON.stringify(value), (_, item) => item ?? undefined);
const standard = (ad: object) => buildAdView(ad, { detail: 'standard', now });

test('an ad in a list has the field names of the API and additional computed fields', () => {
  const view = brief(everyFact);
  const { id, pageId, headline, startedAt, duplicates, adSpendMin, displayFormat } = everyFact;
  const sentFields = { id, pageId, headline, startedAt, duplicates, adSpendMin, displayFormat };
  const derived = { pageName: 'Serra Boots', lastSeen: '2026-11-20', daysRunning: 80, stillRunning: true };
  expect(view).toMatchObject({ ...sentFields, ...derived, creative: '15 s', landingDomain: 'serra.example' });
  expect(getAdViewSchema().parse(view)).toEqual(view);
  // The brief view omits nulls, empty values and media URLs.
  const json = JSON.stringify(brief({ ...everyFact, cards: [], countries: [], headline: '' }));
  expect(json).not.toMatch(/null|\[\]|\{\}|""|media\.example/);
});

const body =
  'Hand-welted in Porto by people who have done it for forty years, and resoled there forever, for anyone who walks.';
const getLastLine = (ad: object) =>
  formatAdList({ items: [brief(ad)] })
    .split('\n')
    .at(-1);

test('if an ad in a list has only one text, the position of a colon shows whether the text is the headline or the body', () => {
  expect(getLastLine({ id: 'a', headline: 'Boots', body: 'Welted' })).toBe('"Boots": "Welted"');
  expect(getLastLine({ id: 'a', headline: 'Boots' })).toBe('"Boots":');
  expect(getLastLine({ id: 'a', body: 'Boots' })).toBe(': "Boots"');
});

test('identical ad bodies are cut at the same word and have the same hash in an ad list', () => {
  const headlines = [null, 'Boots', 'Boots that outlast the trail, the winter and their owner, made once '.repeat(4)];
  const cuts = headlines.map((headline) => getLastLine({ ...everyFact, headline, body })?.split(/(?<=^|"): /)[1]);
  expect(new Set(cuts).size).toBe(1);
  expect(cuts[0]).toMatch(/^"Hand-welted in Porto.*…" \+\d+ #\d{6}$/);
  expect(brief({ ...everyFact, body: `${body} Always.` }).bodyHash).not.toBe(brief({ ...everyFact, body }).bodyHash);
});

test('an ad body that imitates the ending of a shortened text is shown without a hash', () => {
  const forged = 'Sale… (+312 chars)" +312 #482193';
  expect(getLastLine({ id: 'a', body: forged })).toBe(`: "Sale… (+312 chars)' +312 #482193"`);
  expect(getLastLine({ id: 'a', body: 'Sale… (+312 chars)' })).toBe(': "Sale… (+312 chars)"');
});

test('an ad list shows a fact only once if all ads in the list share the fact', () => {
  const by = (pageId: string, id: string) => ({ id, pageId, page: { pageName: `Page ${pageId}` }, ctaType: 'BUY' });
  const items = [by('p', 'a'), by('q', 'b'), by('p', 'c'), by('p', 'd')].map((ad) => brief(ad));
  const [first, ...lines] = formatAdList({ items, totalHits: 900 }).split('\n');
  expect(first).toMatch(/^4 ads, 900 found in all\..* All 4 shown: BUY\.$/);
  expect(lines).toEqual(['', '"Page p" p', '1. a', '', '"Page q" q', '2. b', '', 'As 1:', '3. c', '4. d']);
});

describe('An ad with a template placeholder as its headline', () => {
  const template = {
    ...everyFact,
    headline: '{{product.name}}',
    body: '{{product.brand}}',
    displayFormat: 'DCO',
    media: [],
    cards: [{ title: 'Tan leather', body: 'Two left in stock', link_url: 'https://serra.example/tan' }],
  };

  test('an ad whose headline is a placeholder such as {{product.name}} shows the texts of its first carousel card', () => {
    expect(brief(template).firstCard).toBe('Tan leather — Two left in stock');
    expect(formatAdList({ items: [brief(template)] })).toContain(
      '"{{product.name}}": "{{product.brand}}" card 1: "Tan leather — Two left in stock"',
    );
  });

  test.each(['', ' ', '\u200b'])('an ad whose texts are only %j shows the texts of its first carousel card', (text) => {
    expect(brief({ ...template, headline: text, body: text }).firstCard).toBe('Tan leather — Two left in stock');
  });

  test('a list of ads omits a text of the first carousel card if it is only a placeholder such as {{product.name}}', () => {
    const templates = [{ title: '{{product.name}}', body: '{{product.price}}' }];
    expect(brief({ ...template, cards: templates }).firstCard).toBeUndefined();
    expect(brief({ ...template, body: 'Two left in stock' }).firstCard).toBe('Tan leather');
  });

  test('the fields of carousel cards are read in both spellings, such as link_url and linkUrl', () => {
    const landingUrl = 'https://serra.example/tan';
    const camel = { ...template, cards: [{ headline: 'Tan leather', linkUrl: landingUrl }] };
    expect(standard(camel).cardViews).toEqual([{ card: 1, title: 'Tan leather', landingUrl }]);
  });
});

describe('The view of a single ad', () => {
  test('the view of a single ad shows its whole text and its landing URL without tracking parameters', () => {
    const view = standard(everyFact);
    expect(view.body).toBe(everyFact.body);
    expect(view.landingUrl).toBe('https://www.serra.example/boots?color=tan');
    expect(view.mediaLinks).toEqual([
      { type: 'VID', url: 'https://media.example/v.mp4' },
      { type: 'THUMB', url: 'https://media.example/t.jpg' },
    ]);
  });

  const videoUrl = 'https://media.example/v.mp4';
  const expired = `${videoUrl}?expires=1767225600`;
  test.for<[string, object, (string | RegExp)[]]>([
    [
      'a single ad shows its texts line by line, its media URLs and its link into the app',
      {},
      [
        /\nvideo: ".*v.mp4"\npicture: ".*t.jpg"\nin the app: "https:\/\/app.example\/ads\/6f1c.*"\n/,
        '\nHeadline:\n> Boots that outlast the trail\nBody:\n> Hand-welted in Porto.\n> Free returns for 90 days.',
        'Walk more, buy less.\nLink description:\n> Made once, resoled forever',
      ],
    ],
    [
      'a single ad does not repeat its body as the link description',
      { linkDescription: everyFact.body },
      [/^(?:(?!Hand-welted).)*Hand-welted(?:(?!Hand-welted).)*\nLink description: same as the body$/s],
    ],
    [
      'a single ad states when a signed media URL expires',
      { media: [{ type: 'VID', url: `${videoUrl}?expires=1893456000` }] },
      [`\nvideo: "${videoUrl}?expires=1893456000" until 2030-01-01\n`],
    ],
    [
      'a single ad states only the day and the number of expired media URLs',
      { media: [0, 1].map((nr) => ({ type: 'VID', nr, url: expired })) },
      [/^(?:(?!expired).)*\nlinks expired on 2026-01-01: 2 videos\n(?:(?!expired).)*$/s],
    ],
    [
      'a single ad marks a template headline as a template',
      { headline: '{{product.name}}' },
      ['\nHeadline, a template:\n> {{product.name}}\n'],
    ],
    [
      'a single ad shows a range with equal bounds as one number',
      { adSpendMin: 500, adSpendMax: 500 },
      ['spend est. 500,'],
    ],
    [
      'a single ad states the currency of amounts',
      { currency: 'EUR' },
      ['est. 1000–5000 EUR, rev', '3000–9000 EUR', 'at 189.5 EUR'],
    ],
    ['a single ad quotes a currency that is not a currency code', { currency: 'all of it' }, ['at 189.5 "all of it"']],
    ['a single ad joins call to action and domain with an arrow', {}, [', SHOP_NOW → serra.example,']],
    [
      'a single ad without a call to action states its landing domain',
      { ctaType: null },
      [', lands on serra.example,'],
    ],
    [
      'a single ad counts the missing characters of a very long text',
      { linkDescription: 'so '.repeat(100_000) },
      [/… \(\+29\d{4} chars\)/],
    ],
    [
      'a single ad names the fields that only the full view shows',
      { changes: { body: 2 }, newField: 1 },
      ['Only with detail full: "changes, newField"'],
    ],
  ])('the text view of an ad has the expected form: %s', ([, fields, expectedTexts]) => {
    const text = formatAd(standard({ ...everyFact, ...fields }));
    for (const each of expectedTexts) expect(text).toMatch(each);
  });
});

test('the full view of an ad contains all fields from the API except those that are null', () => {
  const view = buildAdView({ ...everyFact, odd: { nested: [1, null, ['x', [2]]] } }, { detail: 'full', now });
  expect(view).toMatchObject({ ...withoutNulls(everyFact), odd: { nested: [1, ['x', [2]]] } });
  expect('endDate' in view).toBe(false);
  expect(view.daysRunning).toBe(80);
});

test('a list of fifty ads that have every field fits into the default token budget', () => {
  const items = Array.from({ length: 50 }, (_, i) =>
    brief({ ...everyFact, pageId: `${i}${everyFact.pageId}`, duplicates: i }),
  );
  expect(leading({ items, maxTokens: 8000, renderItems: (some) => formatAdList({ items: some }) })).toBe(50);
  const pages = Array.from({ length: 100 }, () => buildPageView(somePage, { detail: 'brief' }));
  expect(leading({ items: pages, maxTokens: 16_000, renderItems: (some) => formatPageList({ items: some }) })).toBe(
    100,
  );
});
