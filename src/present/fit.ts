import { fitsWithin, lengthWithin } from './tokens.ts';

/**
 * The start of `text` that fits into `tokens`. It ends after a word (by spaces, or by the dictionary of a script
 * without them) and never inside a visible character. The suffix `… (+312 chars)` counts what is missing: the rest of
 * the text, and the characters `beyond` it that were cut before.
 */
export function truncate(text: string, tokens: number, beyond = 0): string {
  const fits = lengthWithin(text, tokens);
  if (fits >= text.length && beyond === 0) return text;
  const end = borderBefore(text, lengthWithin(text, Math.max(0, tokens - SUFFIX_TOKENS)));
  const kept = text.slice(0, end).trimEnd();
  return `${kept}… (+${text.length - kept.length + beyond} chars)`;
}

/** The suffix of a text that was cut, and the number in it. */
export const TRUNCATED = /… \(\+(\d+) chars\)$/;

/** The estimate of `… (+1234567 chars)`. */
const SUFFIX_TOKENS = 9;
/** How far a word or character at the border can reach beyond it. */
const AFTER = 60;
/** A space this near is a good enough border. */
const NEAR = 16;

/** Created when first needed: loading the rules takes a good part of the time in which a process starts. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};
function segmentAt(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

function borderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - NEAR, end / 2)) return space;
  const around = text.slice(0, end + AFTER);
  const word = segmentAt(end, around, 'word');
  return word > end / 2 ? word : segmentAt(end, around, 'grapheme');
}

export interface FitOptions<Item> {
  items: readonly Item[];
  /** Maximum tokens of the rendered text. */
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * How many leading items fit into the budget. At least one, if there are any: a single item is bounded by its view. A
 * list that fits is rendered once, any other about log2(n) times.
 */
export function fit<Item>({ items, budget, render }: FitOptions<Item>): number {
  const fits = (count: number) => fitsWithin(render(items.slice(0, count)), budget);
  if (items.length <= 1 || fits(items.length)) return items.length;
  let shown = 1;
  let over = items.length;
  while (over - shown > 1) {
    const middle = (shown + over) >> 1;
    if (fits(middle)) shown = middle;
    else over = middle;
  }
  return shown;
}

/** The last resort if the budget is smaller than one item: keeps whole lines, and says how much is missing. */
export function clampLines(text: string, budget: number): string {
  if (fitsWithin(text, budget)) return text;
  const end = lengthWithin(text, budget - NOTE_TOKENS);
  const border = text.lastIndexOf('\n', end);
  const kept = border > 0 ? text.slice(0, border) : truncate(text, budget - NOTE_TOKENS);
  return `${kept}\n(cut to fit: ${text.length - kept.length} more characters)`;
}

const NOTE_TOKENS = 16;
