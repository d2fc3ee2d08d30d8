import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quote, quoteLines, sanitize, sanitizeLine } from '../../src/views/safe-text.ts';

const unusualCharacters = [
  'a \u200b \u200c \u200d \u200e \u202e \u2066 \ufeff \xad \u3164 \uffa0 \u{e0041} \u{e007f} \u{e0101} \ufe0f \ufe0e \ufe00 \x00',
  '\x1b \ud800 \udc00 👩 🏽 💻 ❤ 🏴 🇩 🇪 \u20e3 1 م ی क \u094d \u0301 \u2800',
].join(' ');

/** Texts that mix dangerous characters with characters that must be kept. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc
    .array(fc.constantFrom(' ', '\n', '\r\n', '\u2028', ...unusualCharacters.split(' ')))
    .map((parts) => parts.join('')),
);

const forbidden =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: the pattern matches single code points on purpose.
  /[^\P{Cc}\n\t]|[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb]|[\u{e0080}-\u{e0fff}]|\p{Cs}|\p{NChar}/u;

describe('The sanitizer for third-party text', () => {
  test('the text sanitizer does not change text that has no hidden characters', () => {
    for (const text of [
      'Save 20 % — today only!\n\tNow.',
      '👩🏽‍💻 ❤️‍🔥 🏳️‍🌈 🏃‍♂️ 1️⃣ ✔️ ☀︎',
      '🇩🇪🇰🇷 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿',
      'می‌خواهم',
      'क्‍ष · শ্রীমান্‌',
      'Tiếng Việt · ภาษาไทย · 한국어 · 中文 · עברית · العربية',
    ])
      expect(sanitize(text)).toBe(text);
  });

  test.each([
    ['zero-width characters', 'pay\u200bpal', 'paypal'],
    ['marks of text direction', '\u202egnp.exe\u2066', 'gnp.exe'],
    ['tag characters', 'hi\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}', 'hi'],
    ['soft hyphens and fillers', 'a\xadb\u3164c\uffa0d\u180ee', 'abcde'],
    ['control characters', '\x1b[31mred\x07', '[31mred'],
    ['variation selectors without effect', 'x\u{e0100}\u{e0101}\ufe01', 'x'],
    ['joiners without effect', 'a\u200db \u200d👩', 'ab 👩'],
    ['tag characters that form no flag', '🏴\u{e0061}\u{e0062}\u{e007f}', '🏴'],
    ['line breaks other than newlines', 'a\r\nb\rc\u2028d\u2029e\x85f\vg', 'a\nb\nc\nd\ne\nf\ng'],
    ['lone surrogates', 'a\ud83db', 'a\ufffdb'],
    ['stacks of combining marks', `e${'\u0301'.repeat(500)}x`, `e${'\u0301'.repeat(8)}x`],
    ['stacks of combining marks outside the basic plane', `e${'\u{1d167}'.repeat(500)}x`, `e${'\u{1d167}'.repeat(8)}x`],
  ])('a text from an ad is sanitized so that it contains no %s', (_, text, clean) =>
    expect(sanitize(text)).toBe(clean),
  );

  test('a name from an ad is sanitized so that it contains no line breaks', () =>
    expect(sanitizeLine(' Shoes\r\n& more \u200b ')).toBe('Shoes & more'));

  test('a sanitized text has no hidden characters and does not change when it is sanitized again', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const clean = sanitize(text);
        expect(sanitize(clean)).toBe(clean);
        expect(clean.length).toBeLessThanOrEqual(text.length);
        expect(clean).not.toMatch(forbidden);
      }),
      { numRuns: 3000 },
    );
  });

  test('the text sanitizer gives the same result on its fast path as on its full path', () => {
    const everyday = fc.array(fc.constantFrom(...'a ä 中 \n © ® ‼ ↗ ↩ ❤ 👩 🏽 🇩 \ufe0f \ufe0e'.split(' ')));
    const joined = everyday.map((parts) => parts.join(''));
    // A hidden character at the end prevents the fast path.
    const sanitizeFully = (text: string) => sanitize(`${text}\u200b`);
    fc.assert(
      fc.property(fc.oneof(joined, anyText), (text) => {
        expect(sanitize(text)).toBe(sanitizeFully(text));
      }),
      { numRuns: 5000 },
    );
  });
});

const copy = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('"', '\n', '> ', '[', ']', '(', ')', '!', '<', 'a', ':', '`', '\\', 'b>', '/', ' '))
    .map((p) => p.join('')),
);
const activeMarkup = /\]\(|\]\[|\]:|!\[|<[a-z/!?]|`/i;

describe('Quoted third-party text', () => {
  test('text from an ad cannot end its own quotes and contains no active markup', () => {
    fc.assert(
      fc.property(copy, (text) => {
        expect(quote(text)).toMatch(/^"[^"\n\r]*"$/);
        for (const line of quoteLines(text).split('\n')) expect(line.startsWith('> ')).toBe(true);
        expect(quote(text)).not.toMatch(activeMarkup);
        expect(quoteLines(text)).not.toMatch(activeMarkup);
      }),
    );
  });

  test('text with markup from an ad stays readable inside its quotes', () => {
    const live = '![x](http://a.example/?q=1) <img src=x> [b]: c `d`';
    expect(quote(live)).toBe(`"! [x] (http://a.example/?q=1) ‹img src=x> [b] : c 'd'"`);
  });
});
