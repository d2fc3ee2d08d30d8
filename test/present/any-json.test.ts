import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as account from '../../src/present/account.ts';
import { CollectionView, collectionListText, viewCollection } from '../../src/present/account.ts';
import { AdView, adListText, adText, viewAd } from '../../src/present/ad.ts';
import { PageView, pageListText, pageText, viewPage } from '../../src/present/page.ts';
import { everyFact, now, somePage } from './sample-ads.ts';

/** An object with some of the fields of `model`, each with a fitting value, any JSON, or null. */
const mutated = (model: object) =>
  fc.record(
    Object.fromEntries(
      Object.entries(model).map(([name, value]) => [
        name,
        fc.oneof(
          fc.constant(value),
          fc.jsonValue(),
          fc.constant(null),
          fc.array(fc.jsonValue()),
          fc.string({ unit: 'binary' }),
        ),
      ]),
    ),
    { requiredKeys: [] },
  );

describe('whatever the service sends', () => {
  test('an ad is viewed and rendered', () => {
    fc.assert(
      fc.property(mutated(everyFact), fc.constantFrom('brief', 'standard', 'full'), (ad, detail) => {
        const view = viewAd(ad, { detail, now });
        expect(AdView.shape.id.safeParse(view.id).success).toBe(true);
        expect(typeof adText(view, detail)).toBe('string');
        expect(typeof adListText({ items: [view, view], detail })).toBe('string');
      }),
    );
  });

  test('a page and a collection are viewed and rendered', () => {
    fc.assert(
      fc.property(mutated(somePage), fc.constantFrom('brief', 'standard', 'full'), (page, detail) => {
        const view = viewPage(page, { detail });
        expect(typeof pageText(view, detail) + typeof pageListText({ items: [view], detail })).toBe('stringstring');
        expect(PageView.safeParse(view).success).toBe(true);
        const collection = viewCollection(page);
        expect(CollectionView.safeParse(collection).success).toBe(true);
        expect(typeof collectionListText({ items: [collection] })).toBe('string');
      }),
    );
  });

  test('account, credits and identity are viewed and rendered', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(typeof account.accountText(account.viewAccount(value))).toBe('string');
        expect(typeof account.creditsText(account.viewCredits(value))).toBe('string');
        expect(typeof account.identityText(account.viewIdentity(value))).toBe('string');
      }),
    );
  });
});
