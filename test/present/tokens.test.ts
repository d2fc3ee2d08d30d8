import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { noSamples, realSamples } from '../../bench/samples.ts';
import { commonPairs, estimateTokens, fitsWithin, lengthWithin } from '../../src/present/tokens.ts';
import { languages } from './languages.ts';

const actual = (text: string) => countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });
const between = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((code) => String.fromCodePoint(code));
const oneOf = (letters: string) => fc.constantFrom(...letters);

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const BASE64 = `${LOWER}${LOWER.toUpperCase()}0123456789+/`;
const BASIC = [between(0x21, 0x2ff), between(0x370, 0xd7ff), between(0xe000, 0xfffd)];

const hostile: Record<string, fc.Arbitrary<string>> = {
  'random letters': oneOf(LOWER),
  'random words': oneOf(`${LOWER}     `),
  'random ASCII': between(0x21, 0x7e),
  base64: oneOf(BASE64),
  'hex, as in ids': oneOf('0123456789abcdef-'),
  digits: oneOf('0123456789'),
  punctuation: oneOf('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'),
  'any of the basic plane': fc.oneof(...BASIC),
  'any character at all': fc.oneof(...BASIC, between(0x10000, 0x10ffff)),
  'Han, rare and common': between(0x4e00, 0x9fff),
  'Hangul, rare and common': between(0xac00, 0xd7a3),
  emoji: fc.oneof(between(0x1f300, 0x1f64f), between(0x1f900, 0x1faff), fc.constant('\u200d'), fc.constant('\ufe0f')),
  flags: between(0x1f1e6, 0x1f1ff),
  'towers of marks': fc
    .tuple(oneOf(LOWER), fc.array(between(0x300, 0x36f), { maxLength: 8 }))
    .map(([a, b]) => a + b.join('')),
  'letters in disguise': between(0x1d400, 0x1d7ff),
  symbols: between(0x2010, 0x2bff),
};

describe('the estimate of tokens', () => {
  for (const [name, character] of Object.entries(hostile)) {
    test(`is not below the truth for ${name}`, () => {
      fc.assert(
        fc.property(fc.array(character, { minLength: 600, maxLength: 900 }), (characters) => {
          const text = characters.join('');
          expect(estimateTokens(text)).toBeGreaterThanOrEqual(Math.floor(actual(text) * 0.97));
        }),
        { numRuns: 25, endOnFailure: true },
      );
    });
  }

  for (const [name, text] of Object.entries(languages)) {
    test(`is near the truth for ${name}`, () => {
      const ratio = estimateTokens(text) / actual(text);
      expect(ratio).toBeGreaterThanOrEqual(0.98);
      expect(ratio).toBeLessThan(1.5);
    });
  }

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

  test('tells whether a text fits as the estimate has it', () => {
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

  test('is off by two at most for invented words that look like real ones', () => {
    const rows = commonPairs.split(' ');
    const following = (letter: string) => rows[letter.charCodeAt(0) - 97] || LOWER;
    const word = fc.array(fc.nat(), { minLength: 2, maxLength: 60 }).map((picks) => {
      let text = 'a';
      for (const pick of picks) text += following(text.at(-1) ?? 'a')[pick % following(text.at(-1) ?? 'a').length];
      return text;
    });
    fc.assert(
      fc.property(fc.array(word, { minLength: 60, maxLength: 80 }), (words) => {
        const text = words.join(' ');
        expect(estimateTokens(text) * 2).toBeGreaterThanOrEqual(actual(text));
      }),
    );
  });
});
