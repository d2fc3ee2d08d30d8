import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quote, quoteLines, sanitize, sanitizeLine } from '../../src/views/safe-text.ts';

const odd = [
  'a \u200b \u200c \u200d \u200e \u202e \u2066 \ufeff \xad \u3164 \uffa0 \u{e0041} \u{e007f} \u{e0101} \ufe0f \ufe0e \ufe00 \x00',
  '\x1b \ud800 \udc00 👩 🏽 💻 ❤ 🏴 🇩 🇪 \u20e3 1 م ی क \u094d \u0301 \u2800',
].join(' ');

/** Texts made of everything that could go wrong, side by side with what must survive. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.array(fc.constantFrom(' ', '\n', '\r\n', '\u2028', ...odd.split(' '))).map((parts) => parts.join('')),
);

const forbidden =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points are what is looked for.
  /[^\P{Cc}\n\t]|[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb]|[\u{e0080}-\u{e0fff}]|\p{Cs}|\p{NChar}/u;

describe('third-party text', () => {
  test('is left alone when there is nothing hidden in it', () => {
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
    ['marks of direction', '\u202egnp.exe\u2066', 'gnp.exe'],
    ['tags', 'hi\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}', 'hi'],
    ['soft hyphens and fillers', 'a\xadb\u3164c\uffa0d\u180ee', 'abcde'],
    ['control characters', '\x1b[31mred\x07', '[31mred'],
    ['selectors that select nothing', 'x\u{e0100}\u{e0101}\ufe01', 'x'],
    ['joiners that join nothing', 'a\u200db \u200d👩', 'ab 👩'],
    ['tags that are no flag', '🏴\u{e0061}\u{e0062}\u{e007f}', '🏴'],
    ['line breaks of other kinds than newlines', 'a\r\nb\rc\u2028d\u2029e\x85f\vg', 'a\nb\nc\nd\ne\nf\ng'],
    ['half characters', 'a\ud83db', 'a\ufffdb'],
    ['towers of marks', `e${'\u0301'.repeat(500)}x`, `e${'\u0301'.repeat(8)}x`],
    ['towers of marks beyond the basic plane', `e${'\u{1d167}'.repeat(500)}x`, `e${'\u{1d167}'.repeat(8)}x`],
  ])('has no %s', (_, text, clean) => expect(sanitize(text)).toBe(clean));

  test('as a name stands on one line', () => expect(sanitizeLine(' Shoes\r\n& more \u200b ')).toBe('Shoes & more'));

  test('is the same when cleaned twice, never longer, always valid, with nothing forbidden left', () => {
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

  test('is cleaned the same whether or not a shortcut is taken for it', () => {
    const everyday = fc.array(fc.constantFrom(...'a ä 中 \n © ® ‼ ↗ ↩ ❤ 👩 🏽 🇩 \ufe0f \ufe0e'.split(' ')));
    const joined = everyday.map((parts) => parts.join(''));
    // With a hidden character at its end, no text takes a shortcut.
    const theLongWay = (text: string) => sanitize(`${text}\u200b`);
    fc.assert(
      fc.property(fc.oneof(joined, anyText), (text) => {
        expect(sanitize(text)).toBe(theLongWay(text));
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
const liveMarkup = /\]\(|\]\[|\]:|!\[|<[a-z/!?]|`/i;

describe('copy cannot pose as the server', () => {
  test('keeps within its quotes and its line, or has every line marked, and nothing in it is live', () => {
    fc.assert(
      fc.property(copy, (text) => {
        expect(quote(text)).toMatch(/^"[^"\n\r]*"$/);
        for (const line of quoteLines(text).split('\n')) expect(line.startsWith('> ')).toBe(true);
        expect(quote(text)).not.toMatch(liveMarkup);
        expect(quoteLines(text)).not.toMatch(liveMarkup);
      }),
    );
  });

  test('stays legible', () => {
    const live = '![x](http://a.example/?q=1) <img src=x> [b]: c `d`';
    expect(quote(live)).toBe(`"! [x] (http://a.example/?q=1) ‹img src=x> [b] : c 'd'"`);
  });
});
