import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adText, viewAd } from '../../src/present/ad.ts';
import { fullView } from '../../src/present/full-view.ts';
import { sanitizeLine } from '../../src/present/safe-text.ts';
import { estimateTokens } from '../../src/present/tokens.ts';

const part = fc.constantFrom('id', 'body', '\u200b', '\u202e', ' ', '\n', '…', ' (2)');
const name = fc.array(part, { maxLength: 3 }).map((parts) => parts.join(''));

describe('a full view too large', () => {
  const ad = { id: 'a', body: 'Walk more. ', media: Array.from({ length: 60 }, (_, nr) => ({ nr, url: `m/${nr}` })) };
  const cards = (count: number) => Array.from({ length: count }, (_, nr) => ({ title: `Card ${nr}` }));
  const budget = 900;

  test('is whole in the data up to twice what the text may hold, and the text says how to get the rest', () => {
    const view = viewAd({ ...ad, cards: cards(40) }, { detail: 'full', now: 0, budget });
    expect(view).toMatchObject({ ...ad, cards: cards(40) });
    expect(view).not.toHaveProperty('…');
    const text = adText(view, 'full', budget);
    expect(estimateTokens(text)).toBeLessThanOrEqual(budget);
    expect(text).toMatch(/… \(\+\d+ more\)/);
    expect(text).toMatch(/^…: "Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest"$/m);
    expect(adText(view, 'full', 5000)).not.toContain('…');
  });

  test('says how many fields are missing where not even their names fit', () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, nr) => [`field${nr}`, 'some words to read']));
    const view = viewAd({ id: 'a', ...many }, { detail: 'full', now: 0, budget });
    const missing = expect.stringMatching(/^\(\+\d+ more fields\)\. Cut to fit: raise/);
    expect(view).toHaveProperty('…', missing);
  });

  test('says so once where the data is cut as well', () => {
    const view = viewAd({ ...ad, cards: cards(900) }, { detail: 'full', now: 0, budget });
    expect(estimateTokens(JSON.stringify(view))).toBeLessThanOrEqual(2 * budget);
    expect(view).toHaveProperty('…', 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest');
    expect(adText(view, 'full', budget).match(/RESULT_TOKENS/g)).toHaveLength(1);
    expect(adText(view, 'full', 5000).match(/RESULT_TOKENS/g)).toHaveLength(1);
  });
});

describe('names in a full view', () => {
  test('that are safe keep their own field, whatever else would read the same', () => {
    expect(
      fullView({ 'endDate\u200b': 'never', body: 'ours', 'body\u200b': 'theirs', '\u200bbody': 'x' }, 500),
    ).toEqual({ endDate: 'never', body: 'ours', 'body (2)': 'theirs', 'body (3)': 'x' });
    fc.assert(
      fc.property(fc.dictionary(name, fc.oneof(fc.integer(), fc.constant(null))), (sent) => {
        for (const view of [fullView(sent, 5000), fullView({ sent }, 5000).sent as Record<string, unknown>]) {
          const kept = Object.entries(sent).filter(([, value]) => value !== null);
          expect(Object.values(view).sort()).toEqual(kept.map(([, value]) => value).sort());
          for (const [own, value] of Object.entries(sent)) {
            if (own === '…' || sanitizeLine(own) !== own) continue;
            expect(view[own]).toBe(value ?? undefined);
          }
        }
      }),
    );
  });
});
