import { describe, expect, test } from 'vitest';
import { buildAdView, formatAd } from '../../src/views/ad.ts';
import { buildFullView } from '../../src/views/full-view.ts';
import { estimateTokens } from '../../src/views/tokens.ts';

describe('A full view that is too large', () => {
  const ad = { id: 'a', body: 'Walk more. ', media: Array.from({ length: 60 }, (_, nr) => ({ nr, url: `m/${nr}` })) };
  const cards = (count: number) => Array.from({ length: count }, (_, nr) => ({ title: `Card ${nr}` }));
  const maxTokens = 900;

  test('a full view of an ad that is cut to fit the token limit says how to get the missing fields', () => {
    const view = buildAdView({ ...ad, cards: cards(40) }, { detail: 'full', now: 0, maxTokens });
    expect(view).toMatchObject({ ...ad, cards: cards(40) });
    expect(view).not.toHaveProperty('…');
    const text = formatAd(view, 'full', maxTokens);
    expect(estimateTokens(text)).toBeLessThanOrEqual(maxTokens);
    expect(text).toMatch(/… \(\+\d+ more\)/);
    expect(text).toMatch(/^…: "Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest"$/m);
    expect(formatAd(view, 'full', 5000)).not.toContain('…');
  });

  test('the full view of an ad counts the missing fields if there is no space for their names', () => {
    const manyFields = Object.fromEntries(Array.from({ length: 600 }, (_, nr) => [`field${nr}`, 'some words to read']));
    const view = buildAdView({ id: 'a', ...manyFields }, { detail: 'full', now: 0, maxTokens });
    const missing = expect.stringMatching(/^\(\+\d+ more fields\)\. Cut to fit: raise/);
    expect(view).toHaveProperty('…', missing);
  });

  test('the full view of an ad says only once how to get the missing fields', () => {
    const view = buildAdView({ ...ad, cards: cards(900) }, { detail: 'full', now: 0, maxTokens });
    expect(estimateTokens(JSON.stringify(view))).toBeLessThanOrEqual(2 * maxTokens);
    expect(view).toHaveProperty('…', 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest');
    expect(formatAd(view, 'full', maxTokens).match(/RESULT_TOKENS/g)).toHaveLength(1);
    expect(formatAd(view, 'full', 5000).match(/RESULT_TOKENS/g)).toHaveLength(1);
  });
});

test('a field whose name has invisible characters cannot replace the field that its name imitates', () => {
  const sentFields = { 'endDate\u200b': 'never', 'body\u200b': 'theirs', body: 'ours', '\u200bbody': 'x', '…': 'note' };
  const shownFields = { endDate: 'never', body: 'ours', '"…"': 'note' };
  expect(buildFullView(sentFields, 500)).toEqual(shownFields);
  expect(buildFullView({ sent: sentFields }, 500)).toEqual({ sent: shownFields });
});
