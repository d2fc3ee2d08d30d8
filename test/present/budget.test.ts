import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { adListText, adText, viewAd } from '../../src/present/ad.ts';
import { pageListText, pageText, viewPage } from '../../src/present/page.ts';
import { fit as leading } from '../../src/present/tokens.ts';
import { everyFact, now, somePage } from './sample-ads.ts';

const maxTokens = 8000;
const tokens = (text: string) => countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

const noise = fc.constantFrom(' ', '\n', ...'🔥 \u0301 Ѭ 龘 뷁 xq " \\ 😶‍🌫️ \u{1d400} 0 ẞ ￼ \u{10ffff}'.split(' '));
const long = fc
  .tuple(fc.array(noise, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 800 }))
  .map(([parts, times]) => parts.join('').repeat(times));
const words = fc.array(long, { maxLength: 40 });
const hostileAd = fc.record({
  id: long,
  pageId: long,
  page: fc.record({ pageName: long }),
  headline: long,
  body: long,
  linkDescription: long,
  productTitle: long,
  ctaType: long,
  displayFormat: long,
  displayUrl: long,
  offerLink: long,
  startedAt: long,
  appUrl: long,
  countries: words,
  publisherPlatform: words,
  cards: fc.array(fc.dictionary(long, long, { maxKeys: 4 }), { maxLength: 60 }),
  media: fc.array(fc.record({ type: long, url: long }), { maxLength: 30 }),
  website: fc.record({ siteDomain: long }),
  changes: fc.dictionary(long, long, { maxKeys: 30 }),
});
/** Such ads take long to shrink, and the first is telling enough. */
const few = { numRuns: 15, endOnFailure: true, verbose: 0 } as const;

describe('however hostile the ads, a result keeps its budget', () => {
  test('as a brief list of fifty', () => {
    fc.assert(
      fc.property(hostileAd, (ad) => {
        const items = Array.from({ length: 50 }, (_, i) =>
          viewAd({ ...ad, id: `${i}${ad.id}`, pageId: `${i}${ad.pageId}` }, { detail: 'brief', now }),
        );
        const render = (some: typeof items | readonly (typeof items)[0][]) =>
          adListText({ items: some, of: 50, cursor: 'x', hasMore: true });
        const shown = leading({ items, budget: maxTokens, render });
        expect(shown).toBeGreaterThan(9);
        expect(tokens(render(items.slice(0, shown)))).toBeLessThanOrEqual(1.5 * maxTokens);
      }),
      few,
    );
  });

  test('as one ad, standard or full', () => {
    fc.assert(
      fc.property(hostileAd, fc.constantFrom('standard', 'full'), (ad, detail) => {
        const view = viewAd(ad, { detail, now });
        expect(tokens(adText(view, detail))).toBeLessThanOrEqual(1.5 * maxTokens);
        expect(tokens(JSON.stringify(view))).toBeLessThanOrEqual(3 * maxTokens);
      }),
      few,
    );
  });

  test('as pages', () => {
    const hostilePage = fc.record({
      pageId: long,
      pageName: long,
      countries: words,
      languages: words,
      technologySlugs: words,
      appUrl: long,
    });
    fc.assert(
      fc.property(hostilePage, fc.constantFrom('brief', 'standard', 'full'), (page, detail) => {
        const view = viewPage(page, { detail });
        expect(tokens(pageText(view, detail))).toBeLessThanOrEqual(1.5 * maxTokens);
        expect(tokens(pageListText({ items: [view], detail }))).toBeLessThanOrEqual(1.5 * maxTokens);
      }),
      few,
    );
  });
});

describe('fifty ordinary ads with every fact', () => {
  test('are shown in full', () => {
    const items = Array.from({ length: 50 }, (_, i) =>
      viewAd({ ...everyFact, pageId: `${i}${everyFact.pageId}`, duplicates: i }, { detail: 'brief', now }),
    );
    expect(leading({ items, budget: maxTokens, render: (some) => adListText({ items: some }) })).toBe(50);
    const pages = Array.from({ length: 100 }, () => viewPage(somePage, { detail: 'brief' }));
    expect(leading({ items: pages, budget: maxTokens * 2, render: (some) => pageListText({ items: some }) })).toBe(100);
  });
});
