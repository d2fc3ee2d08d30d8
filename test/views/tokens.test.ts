import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { missingSamplesHint, readRealSamples } from '../../bench/samples.ts';
import { buildAdView, formatAdList } from '../../src/views/ad.ts';
import {
  estimateTokens,
  fitsWithin,
  countFittingItems as leading,
  truncate,
  truncateToLimits,
} from '../../src/views/tokens.ts';
import languages from './languages.json' with { type: 'json' };
import { now } from './sample-ads.ts';

const countRealTokens = (text: string) =>
  countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });
const createCharacterArbitrary = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((code) => String.fromCodePoint(code));
const pickLetter = (letters: string) => fc.constantFrom(...letters);

const lower = 'abcdefghijklmnopqrstuvwxyz';
const base64Letters = `${lower}${lower.toUpperCase()}0123456789+/`;
const basicPlane = [
  createCharacterArbitrary(0x21, 0x2ff),
  createCharacterArbitrary(0x370, 0xd7ff),
  createCharacterArbitrary(0xe000, 0xfffd),
];

/** Generators of random characters. The test joins them with and without spaces. */
const noiseCharacters: Record<string, fc.Arbitrary<string>> = {
  letters: pickLetter(lower),
  'the commonest letters': pickLetter('etaoinsrhl'),
  vowels: pickLetter('aeiou'),
  consonants: pickLetter('bcdfghjklmnpqrstvwxz'),
  capitals: pickLetter(lower.toUpperCase()),
  'letters of either case': pickLetter(lower + lower.toUpperCase()),
  syllables: fc.tuple(pickLetter('bcdfghjklmnpqrstvwxz'), pickLetter('aeiou')).map((two) => two.join('')),
  'letters and digits in turn': fc.tuple(pickLetter(lower), pickLetter('0123456789')).map((two) => two.join('')),
  ASCII: createCharacterArbitrary(0x21, 0x7e),
  base64: pickLetter(base64Letters),
  'hex, as in ids': pickLetter('0123456789abcdef-'),
  digits: pickLetter('0123456789'),
  punctuation: pickLetter('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'),
  'white space': pickLetter(' \n\tx'),
  'accented letters': createCharacterArbitrary(0xc0, 0x24f),
  Vietnamese: createCharacterArbitrary(0x1ea0, 0x1ef9),
  Greek: createCharacterArbitrary(0x3b1, 0x3c9),
  Cyrillic: createCharacterArbitrary(0x430, 0x45f),
  Hebrew: createCharacterArbitrary(0x5d0, 0x5ea),
  Arabic: createCharacterArbitrary(0x620, 0x64a),
  Devanagari: createCharacterArbitrary(0x904, 0x94d),
  Bengali: createCharacterArbitrary(0x985, 0x9cd),
  Tamil: createCharacterArbitrary(0xb83, 0xbcd),
  Thai: createCharacterArbitrary(0xe01, 0xe3a),
  Georgian: createCharacterArbitrary(0x10d0, 0x10f0),
  Jamo: createCharacterArbitrary(0x1100, 0x11ff),
  kana: createCharacterArbitrary(0x3041, 0x30fe),
  'Han, rare and common': createCharacterArbitrary(0x4e00, 0x9fff),
  'rare Han': createCharacterArbitrary(0x3400, 0x4dbf),
  'Hangul, rare and common': createCharacterArbitrary(0xac00, 0xd7a3),
  'any of the basic plane': fc.oneof(...basicPlane),
  'any character at all': fc.oneof(...basicPlane, createCharacterArbitrary(0x10000, 0x10ffff)),
  emoji: fc.oneof(
    createCharacterArbitrary(0x1f300, 0x1f64f),
    createCharacterArbitrary(0x1f900, 0x1faff),
    fc.constant('\u200d'),
    fc.constant('\ufe0f'),
  ),
  flags: createCharacterArbitrary(0x1f1e6, 0x1f1ff),
  'stacks of combining marks': fc
    .tuple(pickLetter(lower), fc.array(createCharacterArbitrary(0x300, 0x36f), { maxLength: 8 }))
    .map(([a, b]) => a + b.join('')),
  'mathematical letters': createCharacterArbitrary(0x1d400, 0x1d7ff),
  'full-width letters': createCharacterArbitrary(0xff01, 0xff5e),
  symbols: createCharacterArbitrary(0x2010, 0x2bff),
};

describe('The token estimate', () => {
  test.each(Object.entries(noiseCharacters))(
    'the real token count of a random text (%s) is at most 1.5 times the estimate',
    (_, character) => {
      const word = (maxLength: number) => fc.array(character, { minLength: 1, maxLength }).map((all) => all.join(''));
      const text = fc
        .tuple(fc.constantFrom('', ' '), fc.constantFrom(2, 6, 12))
        .chain(([between, longest]) =>
          fc.array(word(longest), { minLength: 250, maxLength: 300 }).map((all) => all.join(between)),
        );
      const check = (text: string) => {
        expect(1.5 * estimateTokens(text)).toBeGreaterThanOrEqual(countRealTokens(text));
      };
      fc.assert(fc.property(text, check), { numRuns: 12, endOnFailure: true });
    },
  );

  test.each(Object.entries(languages))(
    'the token estimate for a text in the language %s is close to the real token count',
    (_, { text }) => {
      const ratio = estimateTokens(text) / countRealTokens(text);
      expect(ratio).toBeGreaterThanOrEqual(0.9);
      expect(ratio).toBeLessThan(1.5);
    },
  );

  test('the token estimate for a list of ads is at most 3 % lower than the real token count', ({ skip }) => {
    const samples = readRealSamples() ?? skip(missingSamplesHint);
    const views = samples.ads.map((ad) => buildAdView(ad, { detail: 'brief', now }));
    for (let i = 0; i + 10 <= views.length; i += 10) {
      const text = formatAdList({ items: views.slice(i, i + 10), asOf: '2026-11-20', detail: 'brief' });
      expect(estimateTokens(text) / countRealTokens(text)).toBeGreaterThanOrEqual(0.97);
      expect(estimateTokens(text) / countRealTokens(text)).toBeLessThan(1.15);
    }
  });

  test('the token estimate for a long text includes every character', () => {
    // A digit after another digit costs 0.34 tokens.
    for (const length of [4096, 4097, 8192, 200_001]) {
      const text = '1'.repeat(length);
      expect(Math.abs(estimateTokens(text) - 0.34 * length), `${length} digits`).toBeLessThanOrEqual(2);
      expect(fitsWithin(text, estimateTokens(text))).toBe(true);
      expect(fitsWithin(text, estimateTokens(text) - 1)).toBe(false);
    }
  });

  test('the function fitsWithin agrees with the token estimate for the whole text', () => {
    const unit = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 1 }), pickLetter('Aq7漢'), fc.constant('😀'));
    const text = fc.array(unit, { maxLength: 40 }).map((units) => units.join(''));
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 90 }), (text, tokens) => {
        expect(fitsWithin(text, tokens)).toBe(estimateTokens(text) <= tokens);
      }),
    );
  });
});

const cutSuffix = /^(.*)… \(\+(\d+) chars\)$/s;

describe('Text that is truncated to a token limit', () => {
  test('a text that is cut to a token limit ends after a whole word and says how much is missing', () => {
    const text = 'Summer sale on everything you love, while it lasts. '.repeat(10).trim();
    const [, keptText = '', missing = '0'] = cutSuffix.exec(truncate(text, 20)) ?? [];
    expect(text.startsWith(keptText)).toBe(true);
    expect(text[keptText.length]).toBe(' ');
    expect(keptText.length + Number(missing)).toBe(text.length);
  });

  test('a text of one very long word that is cut to a token limit still shows the start of the word', () => {
    for (const word of ['a', 'Ab', 'QX', '한', '🔥', '7', 'ß'])
      expect(truncate(word.repeat(100_000), 30), word).toMatch(/^[^…]{6,}… \(\+\d+ chars\)$/);
  });

  test('a long text that is cut to a token limit uses almost the whole limit', () => {
    const [, keptText = ''] = cutSuffix.exec(truncate('1'.repeat(200_000), 5000)) ?? [];
    expect(estimateTokens(keptText)).toBeGreaterThan(4980);
    expect(estimateTokens(keptText)).toBeLessThanOrEqual(5000);
  });

  test('a text that is cut to a token limit never ends inside a flag, an emoji or an accented letter', () => {
    for (const piece of ['🇩🇪', '👩‍👩‍👧‍👦', '👍🏽', 'e\u0301', '한', '❤️']) {
      for (let tokens = 8; tokens < 240; tokens += 7) {
        const [, keptText = ''] = cutSuffix.exec(truncate(piece.repeat(200), tokens)) ?? [];
        expect(keptText.length % piece.length, `${piece} at ${tokens}`).toBe(0);
      }
    }
  });

  test('a text that is cut to a token limit stays within this limit', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.integer({ min: 8, max: 80 }), (text, tokens) => {
        const result = truncate(text, tokens);
        expect(estimateTokens(result)).toBeLessThanOrEqual(tokens + 1);
        if (estimateTokens(text) <= tokens) expect(result).toBe(text);
        if (result === text) return;
        const [, keptText = '', missing = '0'] = cutSuffix.exec(result) ?? [];
        expect(text.startsWith(keptText)).toBe(true);
        expect(keptText.length + Number(missing)).toBe(text.length);
      }),
    );
  });
});

const render = (items: readonly string[]) => items.join('\n');

describe('A list that exceeds its token budget', () => {
  test('a result list shows exactly as many items as fit into its token budget', () => {
    fc.assert(
      fc.property(fc.array(fc.lorem(), { maxLength: 60 }), fc.integer({ min: 1, max: 400 }), (items, budget) => {
        const count = leading({ items, maxTokens: budget, renderItems: render });
        const cost = (n: number) => estimateTokens(render(items.slice(0, n)));
        expect(count).toBeGreaterThanOrEqual(Math.min(1, items.length));
        if (count > 1) expect(cost(count)).toBeLessThanOrEqual(budget);
        if (count < items.length) expect(cost(count + 1)).toBeGreaterThan(budget);
      }),
    );
  });

  test('the server renders a list of similar items at most four times to fit the list into its token budget', () => {
    const length = fc.integer({ min: 20, max: 200 });
    const lists = length.chain((usual) =>
      fc.array(fc.integer({ min: usual, max: Math.ceil(1.2 * usual) }), { minLength: 2, maxLength: 400 }),
    );
    fc.assert(
      fc.property(lists, fc.integer({ min: 50, max: 4000 }), (lengths, budget) => {
        let renders = 0;
        const items = lengths.map((words) => 'word '.repeat(words / 5));
        const counted = (items: readonly string[]) => {
          renders++;
          return `${items.length} items:\n${render(items)}`;
        };
        leading({ items, maxTokens: budget, renderItems: counted });
        expect(renders).toBeLessThanOrEqual(4);
      }),
    );
  });

  test.each([
    ['after a line', 'line number 7\n'.repeat(100), /line number 7\n\(cut to fit: \d+ more characters\)$/],
    ['within its only line', 'words '.repeat(4000), /^[words ]* words\n\(cut to fit: \d+ more characters\)$/],
  ])('a list item that exceeds the token budget is cut %s and says how much is missing', (_, text, form) => {
    const cut = truncateToLimits(text, { maxTokens: 100 });
    expect(estimateTokens(cut)).toBeLessThanOrEqual(100);
    expect(cut).toMatch(form);
  });
});
