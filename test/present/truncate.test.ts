import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { estimateTokens, truncate } from '../../src/present/tokens.ts';

const SUFFIX = /^(.*)… \(\+(\d+) chars\)$/s;

describe('a text too long', () => {
  test('stays whole when it fits', () => {
    expect(truncate('Short and sweet', 40)).toBe('Short and sweet');
  });

  test('ends on a word and says how much is missing', () => {
    const text = 'Summer sale on everything you love, while it lasts. '.repeat(10).trim();
    const [, kept = '', missing = '0'] = SUFFIX.exec(truncate(text, 20)) ?? [];
    expect(text.startsWith(kept)).toBe(true);
    expect(text[kept.length]).toBe(' ');
    expect(kept.length + Number(missing)).toBe(text.length);
  });

  test('shows some of a word that never ends', () => {
    for (const word of ['a', 'Ab', 'QX', '한', '🔥', '7', 'ß'])
      expect(truncate(word.repeat(100_000), 30), word).toMatch(/^[^…]{6,}… \(\+\d+ chars\)$/);
  });

  test('never ends inside a flag, a family or an accent', () => {
    for (const piece of ['🇩🇪', '👩‍👩‍👧‍👦', '👍🏽', 'e\u0301', '한', '❤️']) {
      for (let tokens = 8; tokens < 240; tokens += 7) {
        const [, kept = ''] = SUFFIX.exec(truncate(piece.repeat(200), tokens)) ?? [];
        expect(kept.length % piece.length, `${piece} at ${tokens}`).toBe(0);
      }
    }
  });

  test('is a start of the text within its tokens, with the rest counted', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.integer({ min: 8, max: 80 }), (text, tokens) => {
        const result = truncate(text, tokens);
        expect(estimateTokens(result)).toBeLessThanOrEqual(tokens + 1);
        if (result === text) return;
        const [, kept = '', missing = '0'] = SUFFIX.exec(result) ?? [];
        expect(text.startsWith(kept)).toBe(true);
        expect(kept.length + Number(missing)).toBe(text.length);
      }),
    );
  });
});
