import { describe, expect, test } from 'vitest';
import { AdView, formatAd, formatAdList, viewAd } from '../../src/views/ad.ts';
import { formatPageList, viewPage } from '../../src/views/page.ts';
import { countFittingItems as leading } from '../../src/views/tokens.ts';
import { everyFact, now, somePage } from './sample-ads.ts';

const brief = (ad: object) => viewAd(ad, { detail: 'brief', now });
const withoutNulls = (value: object): object => JSON.parse(JSON.stringify(value), (_, item) => item ?? undefined);
const standard = (ad: object) => viewAd(ad, { detail: 'standard', now });

test('an ad in a list keeps the names and values of the API, and adds what is derived', () => {
  const view = brief(everyFact);
  const { id, pageId, headline, startedAt, duplicates, adSpendMin, displayFormat } = everyFact;
  const sent = { id, pageId, headline, startedAt, duplicates, adSpendMin, displayFormat };
  const derived = { pageName: 'Serra Boots', lastSeen: '2026-11-20', daysRunning: 80, stillRunning: true };
  expect(view).toMatchObject({ ...sent, ...derived, creative: '15 s', landingDomain: 'serra.example' });
  expect(AdView.parse(view)).toEqual(view);
  // No nulls, no empty values and no media addresses.
  const json = JSON.stringify(brief({ ...everyFact, cards: [], countries: [], headline: '' }));
  expect(json).not.toMatch(/null|\[\]|\{\}|""|media\.example/);
});

const body =
  'Hand-welted in Porto by people who have done it for forty years, and resoled there forever, for anyone who walks.';
const copyOf = (ad: object) =>
  formatAdList({ items: [brief(ad)] })
    .split('\n')
    .at(-1);

test('the copy in a list tells a headline and a body apart, even where only one of them is there', () => {
  expect(copyOf({ id: 'a', headline: 'Boots', body: 'Welted' })).toBe('"Boots": "Welted"');
  expect(copyOf({ id: 'a', headline: 'Boots' })).toBe('"Boots":');
  expect(copyOf({ id: 'a', body: 'Boots' })).toBe(': "Boots"');
});

test('the copy in a list cuts the same body to the same words with the same hash, whatever stands beside it', () => {
  const headlines = [null, 'Boots', 'Boots that outlast the trail, the winter and their owner, made once '.repeat(4)];
  const cuts = headlines.map((headline) => copyOf({ ...everyFact, headline, body })?.split(/(?<=^|"): /)[1]);
  expect(new Set(cuts).size).toBe(1);
  expect(cuts[0]).toMatch(/^"Hand-welted in Porto.*…" \+\d+ #\d{6}$/);
  expect(brief({ ...everyFact, body: `${body} Always.` }).bodyHash).not.toBe(brief({ ...everyFact, body }).bodyHash);
});

test('the copy in a list gives no hash to a body that only ends as if it were cut', () => {
  const forged = 'Sale… (+312 chars)" +312 #482193';
  expect(copyOf({ id: 'a', body: forged })).toBe(`: "Sale… (+312 chars)' +312 #482193"`);
  expect(copyOf({ id: 'a', body: 'Sale… (+312 chars)' })).toBe(': "Sale… (+312 chars)"');
});

test('a list is numbered in the order of the service, names each advertiser once, and says what all share', () => {
  const by = (pageId: string, id: string) => ({ id, pageId, page: { pageName: `Page ${pageId}` }, ctaType: 'BUY' });
  const items = [by('p', 'a'), by('q', 'b'), by('p', 'c'), by('p', 'd')].map((ad) => brief(ad));
  const [first, ...lines] = formatAdList({ items, total: 900 }).split('\n');
  expect(first).toMatch(/^4 ads, 900 found in all\..* All 4 shown: BUY\.$/);
  expect(lines).toEqual(['', '"Page p" p', '1. a', '', '"Page q" q', '2. b', '', 'As 1:', '3. c', '4. d']);
});

describe('an ad with a template for a headline', () => {
  const template = {
    ...everyFact,
    headline: '{{product.name}}',
    body: '{{product.brand}}',
    displayFormat: 'DCO',
    media: [],
    cards: [{ title: 'Tan leather', body: 'Two left in stock', link_url: 'https://serra.example/tan' }],
  };

  test('shows what its first card says', () => {
    expect(brief(template).firstCard).toBe('Tan leather — Two left in stock');
    expect(formatAdList({ items: [brief(template)] })).toContain(
      '"{{product.name}}": "{{product.brand}}" card 1: "Tan leather — Two left in stock"',
    );
  });

  test('shows nothing of a card that is a template itself, and no body where the ad has one', () => {
    const templates = [{ title: '{{product.name}}', body: '{{product.price}}' }];
    expect(brief({ ...template, cards: templates }).firstCard).toBeUndefined();
    expect(brief({ ...template, body: 'Two left in stock' }).firstCard).toBe('Tan leather');
  });

  test('finds cards spelled either way', () => {
    const landingUrl = 'https://serra.example/tan';
    const camel = { ...template, cards: [{ headline: 'Tan leather', linkUrl: landingUrl }] };
    expect(standard(camel).cardViews).toEqual([{ card: 1, title: 'Tan leather', landingUrl }]);
  });
});

describe('one ad', () => {
  test('has its whole copy and a landing address without tracking', () => {
    const view = standard(everyFact);
    expect(view.body).toBe(everyFact.body);
    expect(view.landingUrl).toBe('https://www.serra.example/boots?color=tan');
    expect(view.mediaLinks).toEqual([
      { type: 'VID', url: 'https://media.example/v.mp4' },
      { type: 'THUMB', url: 'https://media.example/t.jpg' },
    ]);
  });

  const film = 'https://media.example/v.mp4';
  const expired = `${film}?expires=1767225600`;
  test.for<[string, object, (string | RegExp)[]]>([
    [
      'has its copy line by line, the addresses of its media, and its link to the application',
      {},
      [
        /\nvideo: ".*v.mp4"\npicture: ".*t.jpg"\nin the app: "https:\/\/app.example\/ads\/6f1c.*"\n/,
        '\nHeadline:\n> Boots that outlast the trail\nBody:\n> Hand-welted in Porto.\n> Free returns for 90 days.',
        'Walk more, buy less.\nLink description:\n> Made once, resoled forever',
      ],
    ],
    [
      'repeats no body as its link description',
      { linkDescription: everyFact.body },
      [/^(?:(?!Hand-welted).)*Hand-welted(?:(?!Hand-welted).)*\nLink description: same as the body$/s],
    ],
    [
      'says until when a signed address works',
      { media: [{ type: 'VID', url: `${film}?expires=1893456000` }] },
      [`\nvideo: "${film}?expires=1893456000" until 2030-01-01\n`],
    ],
    [
      'says of addresses that have expired nothing but that',
      { media: [0, 1].map((nr) => ({ type: 'VID', nr, url: expired })) },
      [/^(?:(?!expired).)*\nlinks expired on 2026-01-01: 2 videos\n(?:(?!expired).)*$/s],
    ],
    ['calls a template one', { headline: '{{product.name}}' }, ['\nHeadline, a template:\n> {{product.name}}\n']],
    ['says a range of one number as that', { adSpendMin: 500, adSpendMax: 500 }, ['spend est. 500,']],
    ['says the currency of money', { currency: 'EUR' }, ['est. 1000–5000 EUR, rev', '3000–9000 EUR', 'at 189.5 EUR']],
    ['quotes a currency that is none', { currency: 'all of it' }, ['at 189.5 "all of it"']],
    ['has no comma between action and domain', {}, [', SHOP_NOW → serra.example,']],
    ['says where it lands without an action', { ctaType: null }, [', lands on serra.example,']],
    ['counts the rest of an endless text', { linkDescription: 'so '.repeat(100_000) }, [/… \(\+29\d{4} chars\)/]],
    [
      'names the fields that only full shows',
      { changes: { body: 2 }, newField: 1 },
      ['Only with detail full: "changes, newField"'],
    ],
  ])('%s', ([, fields, words]) => {
    const text = formatAd(standard({ ...everyFact, ...fields }));
    for (const each of words) expect(text).toMatch(each);
  });
});

test('an ad in full holds every field the service sent, but nulls', () => {
  const view = viewAd({ ...everyFact, odd: { nested: [1, null, ['x', [2]]] } }, { detail: 'full', now });
  expect(view).toMatchObject({ ...withoutNulls(everyFact), odd: { nested: [1, ['x', [2]]] } });
  expect('endDate' in view).toBe(false);
  expect(view.daysRunning).toBe(80);
});

test('fifty ordinary ads with every fact, or a hundred pages, are shown in full', () => {
  const items = Array.from({ length: 50 }, (_, i) =>
    brief({ ...everyFact, pageId: `${i}${everyFact.pageId}`, duplicates: i }),
  );
  expect(leading({ items, budget: 8000, render: (some) => formatAdList({ items: some }) })).toBe(50);
  const pages = Array.from({ length: 100 }, () => viewPage(somePage, { detail: 'brief' }));
  expect(leading({ items: pages, budget: 16_000, render: (some) => formatPageList({ items: some }) })).toBe(100);
});
