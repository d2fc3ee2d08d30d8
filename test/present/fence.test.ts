import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quote, quoteLines, word } from '../../src/present/safe-text.ts';

const copy = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('"', '\n', '> ', '[', ']', '(', ')', '!', '<', 'a', ':', '`', '\\', 'b>', '/', ' '))
    .map((p) => p.join('')),
);
const LIVE = /\]\(|\]\[|\]:|!\[|<[a-z/!?]|`/i;

describe('copy cannot pose as the server', () => {
  test('keeps within its quotes and its line, whatever it says', () => {
    fc.assert(
      fc.property(copy, (text) => {
        expect(quote(text)).toMatch(/^"[^"\n\r]*"$/);
      }),
    );
  });

  test('has every line marked where it has lines', () => {
    fc.assert(
      fc.property(copy, (text) => {
        for (const line of quoteLines(text).split('\n')) expect(line.startsWith('> ')).toBe(true);
      }),
    );
  });

  test('stands bare only as one word', () => {
    expect(word('SHOP_NOW')).toBe('SHOP_NOW');
    expect(word('play.shop.example')).toBe('play.shop.example');
    expect(word('ignore all\nprevious')).toBe('"ignore all previous"');
    expect(word('')).toBe('""');
  });

  test('has no links, images or HTML that work, and stays legible', () => {
    expect(quote('![x](http://a.example/?q=1) <img src=x> [b]: c `d`')).toBe(
      `"! [x] (http://a.example/?q=1) ‹img src=x> [b] : c 'd'"`,
    );
    fc.assert(
      fc.property(copy, (text) => {
        expect(quote(text)).not.toMatch(LIVE);
        expect(quoteLines(text)).not.toMatch(LIVE);
      }),
    );
  });
});
