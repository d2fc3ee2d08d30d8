import { quote, quoteUnlessWord, sanitizeLine } from './safe-text.ts';
import tables from './token-tables.json' with { type: 'json' };

/**
 * Estimates how many tokens of o200k_base a text costs a model, without the tokenizer: a character costs what it costs
 * alone, and little where it makes one of the commonest pairs of its script with the one before. Lists of real ads are
 * estimated up to 12 % too high, and noise of any script at most by a third too low.
 */
export const estimateTokens = (text: string): number => Math.ceil(scan(text, Number.POSITIVE_INFINITY).cost / 100);

/** Whether the estimate of `text` stays within `tokens`. Fast for texts that are short or far too long. */
export const fitsWithin = (text: string, tokens: number): boolean =>
  isShort(text, tokens) || lengthWithin(text, tokens) === text.length;

/** No byte of a well-formed text costs more than one token. */
const isShort = (text: string, tokens: number): boolean => text.length <= tokens && Buffer.byteLength(text) <= tokens;

/** The length of the longest start of `text` that stays within `tokens`. */
const lengthWithin = (text: string, tokens: number): number => scan(text, 100 * tokens).end;

/** What a code unit costs, and what it costs behind another; zero for any pair that is not common. In hundredths. */
type Costs = { alone: Uint16Array; behind: Uint8Array };

/** Filled when first needed: a process that only lists its tools needs no estimates. */
let costs: Costs | undefined;

/** A place for each pair. Those of one script share none. */
const pairOf = (before: number, code: number) => (4099 * before + code) & 0xfffff;

/**
 * `alone` holds the end of each block of code units and what one of it costs. The other tables are printed by
 * `bench/token-tables.ts`: `pairs` are a letter each with those that often follow it, `han` and `hangul` the characters
 * that are one token, as distances: `(` is 1, `~` is 86 and the distance goes on.
 */
function fillCosts(): Costs {
  const alone = new Uint16Array(0x10000);
  const behind = new Uint8Array(0x100000);
  let from = 0;
  for (const [end = 0, cost = 0] of tables.alone) {
    alone.fill(cost, from, end);
    from = end;
  }
  for (const [gaps, before] of [
    [tables.han, 0x4e00 - 1],
    [tables.hangul, 0xac00 - 1],
  ] as const) {
    let code = before;
    for (const gap of gaps) {
      code += gap === '~' ? 86 : gap.charCodeAt(0) - 39;
      if (gap !== '~') alone[code] = oneToken;
    }
  }
  const mark = (pair: string, cost: number) => {
    behind[pairOf(pair.charCodeAt(0), pair.charCodeAt(1))] = cost;
  };
  for (const [first = '', ...seconds] of tables.pairs.split(' '))
    for (const second of seconds)
      for (const pair of [first + second, first.toUpperCase() + second, (first + second).toUpperCase()])
        mark(pair, commonPair);
  for (const digit of '0123456789') {
    mark(` ${digit}`, 170);
    for (const second of '0123456789') mark(digit + second, 34);
  }
  for (const pair of ['  ', '\n ', '\t ']) mark(pair, 100);
  return { alone, behind };
}

const oneToken = 90;
const commonPair = 14;

/** The cost of the longest start of `text` that stays within `limit`, and its length. */
function scan(text: string, limit: number): { cost: number; end: number } {
  costs ??= fillCosts();
  const { alone, behind } = costs;
  let cost = 0;
  let before = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const more = behind[pairOf(before, code)] || (alone[code] as number);
    if (cost + more > limit) return { cost, end: at };
    cost += more;
    before = code;
  }
  return { cost, end: text.length };
}

/**
 * The start of `text` that fits into `tokens`. It ends after a word (by spaces, or by the dictionary of a script
 * without them) and never inside a visible character. The suffix `… (+312 chars)` counts what is missing: the rest of
 * the text, and the characters `beyond` it that were cut before.
 */
export function truncate(text: string, tokens: number, beyond = 0): string {
  const fits = lengthWithin(text, tokens);
  if (fits >= text.length && beyond === 0) return text;
  const end = borderBefore(text, lengthWithin(text, Math.max(0, tokens - suffixTokens)));
  const kept = text.slice(0, end).trimEnd();
  return `${kept}… (+${text.length - kept.length + beyond} chars)`;
}

export const truncationSuffix = /… \(\+(\d+) chars\)$/;

/** The estimate of `… (+1234567 chars)`. */
const suffixTokens = 9;
/** How far a word or character at the border can reach beyond it. */
const reachAfter = 60;
/** The distance within which a space is a good enough border. */
const nearEnough = 16;

/** Created when first needed: loading the rules takes a good part of the time in which a process starts. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};

/** The start of the word or visible character at an index of a text. */
export function segmentStart(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

function borderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - nearEnough, end / 2)) return space;
  const nearby = text.slice(0, end + reachAfter);
  const word = segmentStart(end, nearby, 'word');
  if (word > end / 2) return word;
  // Characters of ASCII are visible each by itself.
  return plainPair.test(text.slice(end - 1, end + 1)) ? end : segmentStart(end, nearby, 'grapheme');
}

const plainPair = /^[ -~]{2}$/;

interface FitOptions<Item> {
  items: readonly Item[];
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * How many leading items fit into the budget. At least one, if there are any: a single item is bounded by its view. A
 * list that fits is rendered once, any other about three times.
 */
export function countFittingItems<Item>({ items, budget, render }: FitOptions<Item>): number {
  if (items.length <= 1) return items.length;
  let fitting = { count: 0, length: 0 };
  let over = { count: items.length + 1, length: 0, within: 0 };
  let count = items.length;
  for (let tries = 1; over.count - Math.max(1, fitting.count) > 1; tries++) {
    const text = render(items.slice(0, count));
    const within = isShort(text, budget) ? text.length : lengthWithin(text, budget);
    if (within < text.length) over = { count, length: text.length, within };
    else if (count === items.length) return count;
    else fitting = { count, length: text.length };
    // Most items have a similar length, so the border is estimated from the share of the text that fits. For other
    // items, half the way is safer.
    const share = tries > maxGuesses ? 1 / 2 : (over.within - fitting.length) / (over.length - fitting.length);
    const guess = Math.floor(fitting.count + share * (over.count - fitting.count));
    count = Math.max(fitting.count + 1, 2, Math.min(over.count - 1, guess));
  }
  return Math.max(1, fitting.count);
}

const maxGuesses = 4;

/** The last resort if the budget is smaller than one item: leaves whole lines, and says how much is missing. */
export function clampLines(text: string, budget: number): string {
  if (fitsWithin(text, budget)) return text;
  const end = lengthWithin(text, budget - noteTokens);
  const border = text.lastIndexOf('\n', end);
  const kept = border > 0 ? text.slice(0, border) : truncate(text, budget - noteTokens);
  return `${kept}\n(cut to fit: ${text.length - kept.length} more characters)`;
}

const noteTokens = 16;

/** The most characters of a token by our estimate: a text beyond that is not read. */
export const charsPerToken = 8;

export function truncateLine(text: string, tokens: number): string {
  const read = charsPerToken * (tokens + charsPerToken);
  return truncate(sanitizeLine(text.slice(0, read)), tokens, Math.max(0, text.length - read));
}

/** A text of the service inside a message of this server: one line, bounded, and quoted, so that it cannot pose as our words. */
export const quoteUntrusted = (text: string, tokens: number): string => quote(truncateLine(text, tokens));

export const sanitizeId = (text: string): string => truncateLine(text, 60);

export const quoteId = (text: string): string => quoteUnlessWord(sanitizeId(text));
