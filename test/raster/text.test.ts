import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Canvas, drawText, linesOf, textWidth } from '../../src/raster/canvas.ts';

/** The columns of a canvas that have ink: the first, the last, and how many. */
function inked(draw: (canvas: Canvas) => void) {
  const canvas = new Canvas(400, 60);
  draw(canvas);
  const columns = Array.from({ length: 400 }, (_, x) => x).filter((x) =>
    Array.from({ length: 60 }, (_, y) => canvas.data[(y * 400 + x) * 4] ?? 255).some((value) => value < 128),
  );
  return { first: columns[0] ?? -1, last: columns.at(-1) ?? -1, count: columns.length };
}

const black = [0, 0, 0] as const;

test('a text is as wide as it says, and its letters are not all the same', () => {
  const place = { x: 20, y: 40, size: 30, colour: black };
  const shown = inked((canvas) => drawText(canvas, 'Wool shoes', place));
  expect(shown.first).toBeGreaterThanOrEqual(20);
  expect(Math.abs(shown.last - 20 - textWidth('Wool shoes', place))).toBeLessThan(4);
  expect(textWidth('WWW', place)).toBeGreaterThan(2 * textWidth('iii', place));
  expect(textWidth('Wool', { size: 30, bold: true })).toBeGreaterThan(textWidth('Wool', { size: 30 }));
  expect(textWidth('Wool', { size: 60 })).toBeCloseTo(2 * textWidth('Wool', { size: 30 }));
});

test('an accent of its own is drawn as part of its letter', () => {
  expect(textWidth('cafe\u0301', { size: 30 })).toBe(textWidth('café', { size: 30 }));
});

test('what is too wide ends in an ellipsis, and never goes past its place', () => {
  const place = { x: 10, y: 40, size: 30, colour: black, maxWidth: 120 };
  const shown = inked((canvas) => drawText(canvas, 'W'.repeat(5000), place));
  expect(shown.last).toBeLessThanOrEqual(130);
  expect(shown.last).toBeGreaterThan(80);
  expect(inked((canvas) => drawText(canvas, '茶🎁\ud800', place)).count).toBeGreaterThan(10);
});

test('lines keep every word, fit, and end in an ellipsis only if something is left out', () => {
  const word = fc.string({ unit: fc.constantFrom(...'abcdeil'), minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (words, maxLines) => {
      const given = { size: 20, bold: true, maxWidth: 160, maxLines };
      const lines = linesOf(words.join(' '), given);
      expect(lines.length).toBeLessThanOrEqual(maxLines);
      for (const line of lines) expect(textWidth(line, given)).toBeLessThanOrEqual(160);
      const whole = lines.join(' ');
      if (whole.endsWith('…')) expect(words.join(' ')).toContain(whole.slice(0, -1).trim());
      else expect(whole).toBe(words.join(' '));
    }),
  );
});

test('a word that is wider than a line is cut', () => {
  const lines = linesOf('W'.repeat(30), { size: 20, maxWidth: 160, maxLines: 9 });
  expect(lines.join('')).toBe('W'.repeat(30));
  expect(linesOf('Wide', { size: 20, maxWidth: 1, maxLines: 2 })).toHaveLength(2);
});
