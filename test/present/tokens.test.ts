import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { noSamples, realSamples } from '../../bench/samples.ts';
import {
  clampLines,
  estimateTokens,
  fitsWithin,
  fit as leading,
  lengthWithin,
  truncate,
} from '../../src/present/tokens.ts';
import languages from './languages.json' with { type: 'json' };

const actual = (text: string) => countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });
const between = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((code) => String.fromCodePoint(code));
const oneOf = (letters: string) => fc.constantFrom(...letters);

const lower = 'abcdefghijklmnopqrstuvwxyz';
const base64Letters = `${lower}${lower.toUpperCase()}0123456789+/`;
const basicPlane = [between(0x21, 0x2ff), between(0x370, 0xd7ff), between(0xe000, 0xfffd)];

const hostile: Record<string, fc.Arbitrary<string>> = {
  'random letters': oneOf(lower),
  'random words': oneOf(`${lower}     `),
  'random ASCII': between(0x21, 0x7e),
  base64: oneOf(base64Letters),
  'hex, as in ids': oneOf('0123456789abcdef-'),
  digits: oneOf('0123456789'),
  punctuation: oneOf('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'),
  'any of the basic plane': fc.oneof(...basicPlane),
  'any character at all': fc.oneof(...basicPlane, between(0x10000, 0x10ffff)),
  'Han, rare and common': between(0x4e00, 0x9fff),
  'Hangul, rare and common': between(0xac00, 0xd7a3),
  emoji: fc.oneof(between(0x1f300, 0x1f64f), between(0x1f900, 0x1faff), fc.constant('\u200d'), fc.constant('\ufe0f')),
  flags: between(0x1f1e6, 0x1f1ff),
  'towers of marks': fc
    .tuple(oneOf(lower), fc.array(between(0x300, 0x36f), { maxLength: 8 }))
    .map(([a, b]) => a + b.join('')),
  'letters in disguise': between(0x1d400, 0x1d7ff),
  symbols: between(0x2010, 0x2bff),
};

describe('the estimate of tokens', () => {
  test.each(Object.entries(hostile))('is not below the truth for %s', (_, character) => {
    fc.assert(
      fc.property(fc.array(character, { minLength: 600, maxLength: 900 }), (characters) => {
        const text = characters.join('');
        expect(estimateTokens(text)).toBeGreaterThanOrEqual(Math.floor(actual(text) * 0.97));
      }),
      { numRuns: 25, endOnFailure: true },
    );
  });

  test.each(Object.entries(languages))('is near the truth for %s', (_, { text }) => {
    const ratio = estimateTokens(text) / actual(text);
    expect(ratio).toBeGreaterThanOrEqual(0.98);
    expect(ratio).toBeLessThan(1.5);
  });

  test('is not below the truth for any page of real ads, and near it', ({ skip }) => {
    const samples = realSamples() ?? skip(noSamples);
    const copy = samples.ads.map((ad) => `${ad.headline ?? ''}\n${ad.body ?? ''}`);
    for (let i = 0; i < copy.length; i += 10) {
      const text = copy.slice(i, i + 10).join('\n');
      expect(estimateTokens(text) / actual(text)).toBeGreaterThanOrEqual(1);
      expect(estimateTokens(text) / actual(text)).toBeLessThan(1.5);
    }
  });

  test('tells how long a start of the text fits', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 60 }), (text, tokens) => {
        const length = lengthWithin(text, tokens);
        expect(estimateTokens(text.slice(0, length))).toBeLessThanOrEqual(tokens);
        if (estimateTokens(text) <= tokens) expect(length).toBe(text.length);
      }),
    );
  });

  test('says whether a text fits, without all of it being looked at', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 1 }),
      fc.constantFrom('\ud800', 'A', 'q', '7', '😀', '漢'),
    );
    const text = fc.array(unit, { maxLength: 40 }).map((units) => units.join(''));
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 90 }), (text, tokens) => {
        expect(fitsWithin(text, tokens)).toBe(estimateTokens(text) <= tokens);
      }),
    );
  });
});

const cutSuffix = /^(.*)… \(\+(\d+) chars\)$/s;

describe('a text too long', () => {
  test('ends on a word and says how much is missing', () => {
    const text = 'Summer sale on everything you love, while it lasts. '.repeat(10).trim();
    const [, kept = '', missing = '0'] = cutSuffix.exec(truncate(text, 20)) ?? [];
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
        const [, kept = ''] = cutSuffix.exec(truncate(piece.repeat(200), tokens)) ?? [];
        expect(kept.length % piece.length, `${piece} at ${tokens}`).toBe(0);
      }
    }
  });

  test('is a start of the text within its tokens, with the rest counted', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.integer({ min: 8, max: 80 }), (text, tokens) => {
        const result = truncate(text, tokens);
        expect(estimateTokens(result)).toBeLessThanOrEqual(tokens + 1);
        if (estimateTokens(text) <= tokens) expect(result).toBe(text);
        if (result === text) return;
        const [, kept = '', missing = '0'] = cutSuffix.exec(result) ?? [];
        expect(text.startsWith(kept)).toBe(true);
        expect(kept.length + Number(missing)).toBe(text.length);
      }),
    );
  });
});

const render = (items: readonly string[]) => items.join('\n');

describe('a list larger than its budget', () => {
  test('shows as many leading items as fit, and no more', () => {
    fc.assert(
      fc.property(fc.array(fc.lorem(), { maxLength: 60 }), fc.integer({ min: 1, max: 400 }), (items, budget) => {
        const count = leading({ items, budget, render });
        const cost = (n: number) => estimateTokens(render(items.slice(0, n)));
        expect(count).toBeGreaterThanOrEqual(Math.min(1, items.length));
        if (count > 1) expect(cost(count)).toBeLessThanOrEqual(budget);
        if (count < items.length) expect(cost(count + 1)).toBeGreaterThan(budget);
      }),
    );
  });

  test('is rendered four times at most where its items are about as long, however many there are', () => {
    const length = fc.integer({ min: 20, max: 200 });
    const lists = length.chain((usual) =>
      fc.array(fc.integer({ min: usual, max: Math.ceil(1.2 * usual) }), { minLength: 2, maxLength: 400 }),
    );
    fc.assert(
      fc.property(lists, fc.integer({ min: 50, max: 4000 }), (lengths, budget) => {
        let renders = 0;
        const items = lengths.map((words) => 'word '.repeat(words / 5));
        const counted = (some: readonly string[]) => {
          renders++;
          return `${some.length} items:\n${render(some)}`;
        };
        leading({ items, budget, render: counted });
        expect(renders).toBeLessThanOrEqual(4);
      }),
    );
  });

  test.each([
    ['at a line', 'line number 7\n'.repeat(100), /line number 7\n\(cut to fit: \d+ more characters\)$/],
    ['within the line', 'words '.repeat(4000), /^words .*… \(\+\d+ chars\)\n\(cut to fit: \d+ more characters\)$/],
  ])('is cut %s, and says so, when even one item is too much', (_, text, form) => {
    const cut = clampLines(text, 100);
    expect(estimateTokens(cut)).toBeLessThanOrEqual(110);
    expect(cut).toMatch(form);
  });
});
