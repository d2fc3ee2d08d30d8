import { quote, sanitize, sanitizeLine, word } from './safe-text.ts';
import tokenTables from './token-tables.json' with { type: 'json' };

/**
 * Estimates how many tokens a text costs a model, without a tokenizer: an upper bound in practice, measured against
 * o200k_base. ASCII words cost by their length and their unusual pairs of letters, which tell a word from noise. Other
 * scripts cost by the letter, and rare characters cost their worst case.
 */
export const estimateTokens = (text: string): number => Math.ceil(scan(text, Number.POSITIVE_INFINITY).tokens);

/** Whether the estimate of `text` stays within `tokens`. Fast for texts that are short or far too long. */
export const fitsWithin = (text: string, tokens: number): boolean =>
  isShort(text, tokens) || scan(text, tokens).end === text.length;

/** Whether no text of that many bytes has more tokens. */
const isShort = (text: string, tokens: number): boolean =>
  maxPerByte * text.length <= tokens && maxPerByte * Buffer.byteLength(text) <= tokens;

/** The maximum cost of a byte in UTF-8: that of a letter in a long word of rare pairs. */
const maxPerByte = 1.5;

/** The length of the longest start of `text` that stays within `tokens`. */
export const lengthWithin = (text: string, tokens: number): number => scan(text, tokens).end;

/**
 * For characters below `end`: the cost of the first in a row, of the next 13 of its kind, and of further ones. Among them
 * are ASCII punctuation (letters, digits and spaces are handled by `scan`), lone surrogates and variation selectors.
 *
 * The other tables are the parts of the reference vocabulary (o200k_base) with which an estimate tells everyday text from
 * noise, printed by `bench/token-tables.ts`: `commonPairs`, the most frequent pairs of letters in its words, are the
 * letters that follow `a`, `b`, `c` …; `han` and `hangul` are the characters that are one token, from U+4E00 and U+AC00,
 * as distances: `(` is 1, `~` is 86 and the distance goes on.
 */
type Kind = [end: number, first: number, next: number, long: number];

const kinds = tokenTables.kinds as Kind[];
const han = kinds.push([0, 1, 1, 1]) - 1;
const hangul = kinds.push([0, 0.9, 0.8, 1]) - 1;

const kindCosts = Float64Array.from(kinds.flatMap(([, first, next, long]) => [first, next, long]));
const astralKinds = kinds.findIndex(([end]) => end > 0x10000);

interface Tables {
  /** The row in kinds of each code unit. */
  kindOf: Uint8Array;
  /** By pair (`pairOf`): the extra cost of a word that contains it, in hundredths. It is read for each letter, so it is small. */
  pairCost: Uint8Array;
  /** By length: the basic cost of a word. */
  wordCost: Float64Array;
}

/** Filled when first needed: a process that only lists its tools needs no estimates. */
let tables: Tables | undefined;

function fillTables(): Tables {
  const kindOf = new Uint8Array(0x10000);
  for (let code = 0, kind = 0; code < 0x10000; code++) {
    while (code >= (kinds[kind]?.[0] ?? 0)) kind++;
    kindOf[code] = kind;
  }
  markOneToken(kindOf, { gaps: tokenTables.han, from: 0x4e00, kind: han });
  markOneToken(kindOf, { gaps: tokenTables.hangul, from: 0xac00, kind: hangul });
  return { kindOf, pairCost: pairCosts(), wordCost: Float64Array.from({ length: maxWordLength + 1 }, wordCostOf) };
}

/** Pairs that are rare in words cost more, and so do capitals inside a word. */
function pairCosts(): Uint8Array {
  const costs = new Uint8Array(64 * 64).fill(83);
  for (const [index, seconds] of tokenTables.commonPairs.split(' ').entries()) {
    const first = index + 97;
    for (const letter of seconds) {
      const second = letter.charCodeAt(0);
      costs[pairOf(first, second)] = 0;
      costs[pairOf(first - 32, second)] = 0;
      costs[pairOf(first, second - 32)] = 100;
      costs[pairOf(first - 32, second - 32)] = 22;
    }
  }
  return costs;
}

/** The index of two letters, each in either case. */
const pairOf = (first: number, second: number) => ((first & 63) << 6) | (second & 63);

/** Words longer than `longWord` are rare in any language, and taken for noise. */
const wordCostOf = (_: unknown, length: number) =>
  0.82 + 0.1 * length + (length > 7 ? 0.15 * (length - 7) : 0) + (length > longWord ? 0.3 * (length - longWord) : 0);

function markOneToken(kindOf: Uint8Array, { gaps, from, kind }: { gaps: string; from: number; kind: number }): void {
  let code = from - 1;
  for (const gap of gaps) {
    if (gap === '~') code += 86;
    else {
      code += gap.charCodeAt(0) - 39;
      kindOf[code] = kind;
    }
  }
}

const vietnamese = kinds.findIndex(([end]) => end > 0x1ea0);
const spaceCode = 32;
const punctuationKind = 0;
const longWord = 14;
const maxWordLength = 64;
const isLetter = (code: number) => ((code | 32) - 97) >>> 0 < 26;
const isDigit = (code: number) => code >= 48 && code <= 57;

/** The code units of the last text, and their bytes. */
let units = new Uint16Array(0);
let bytes = Buffer.alloc(0);

/**
 * Copies a text into an array from which its characters are read. Reading them from the string is fast only as long as
 * few forms of strings (joined, sliced, one or two bytes a character) come by, and every result is read here.
 */
function copyUnits(text: string): Uint16Array {
  if (units.length < text.length) {
    units = new Uint16Array(Math.max(2 * text.length, 1 << 15));
    bytes = Buffer.from(units.buffer);
  }
  bytes.write(text, 0, 2 * text.length, 'utf16le');
  return units;
}

function scan(text: string, limit: number): { tokens: number; end: number } {
  tables ??= fillTables();
  const { kindOf, pairCost, wordCost } = tables;
  const units = copyUnits(text);
  let tokens = 0;
  let i = 0;
  let last = -1;
  let run = 0;
  const { length } = text;
  while (i < length) {
    const start = i;
    const code = units[i++] as number;
    let cost: number;
    if (isLetter(code)) {
      let pairs = 0;
      let before = code;
      for (const end = Math.min(length, start + maxWordLength); i < end; i++) {
        const letter = units[i] as number;
        if (!isLetter(letter)) break;
        pairs += pairCost[pairOf(before, letter)] as number;
        before = letter;
      }
      cost = pairs / 100 + (wordCost[i - start] as number);
      if (last === 1 || last === 2 || last === vietnamese) cost -= 0.82;
      last = -1;
    } else if (code === spaceCode) {
      cost = spaceCost(i < length ? (units[i] as number) : 0, kindOf);
      last = -1;
    } else if (code >= 128) {
      const point = code >= 0xd800 && code < 0xdc00 ? (text.codePointAt(start) ?? code) : code;
      if (point > 0xffff) i++;
      const kind = point > 0xffff ? astralKind(point) : (kindOf[point] ?? 0);
      run = kind === last ? run + 1 : 0;
      last = kind;
      cost = kindCosts[3 * kind + (run === 0 ? 0 : run < longWord ? 1 : 2)] ?? 4;
    } else if (isDigit(code)) {
      while (i < length && i - start < 3 && isDigit(units[i] as number)) i++;
      cost = 1;
      last = -1;
    } else if (code > spaceCode) {
      cost = last === punctuationKind ? 0.75 : 1;
      last = punctuationKind;
    } else {
      cost = 1;
      last = -1;
    }
    if (tokens + cost > limit)
      return { tokens, end: isLetter(code) ? start + within(text.slice(start, i), limit - tokens, tables) : start };
    tokens += cost;
  }
  return { tokens, end: i };
}

/** How many letters fit of a word that does not fit as a whole, so that an endless word still shows its start. */
function within(word: string, tokens: number, { pairCost, wordCost }: Tables): number {
  let pairs = 0;
  for (let end = 1; end < word.length; end++) {
    if (pairs / 100 + (wordCost[end] ?? 0) > tokens) return end - 1;
    pairs += pairCost[pairOf(word.charCodeAt(end - 1), word.charCodeAt(end))] ?? 0;
  }
  return word.length - 1;
}

function astralKind(point: number): number {
  let kind = astralKinds;
  while (point >= (kinds[kind]?.[0] ?? 0)) kind++;
  return kind;
}

/** A space is part of the word after it, but a token of its own before a digit, a space or a rare character. */
function spaceCost(next: number, kindOf: Uint8Array): number {
  if (next === spaceCode || isDigit(next)) return 1;
  return next >= 128 && (kindCosts[3 * (kindOf[next] ?? 0)] ?? 0) > 1.5 ? 1 : 0;
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

/** The suffix of a text that was cut, and the number in it. */
export const truncated = /… \(\+(\d+) chars\)$/;

/** The estimate of `… (+1234567 chars)`. */
const suffixTokens = 9;
/** How far a word or character at the border can reach beyond it. */
const reachAfter = 60;
/** The distance within which a space is a good enough border. */
const nearEnough = 16;

/** Created when first needed: loading the rules takes a good part of the time in which a process starts. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};
function segmentAt(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

function borderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - nearEnough, end / 2)) return space;
  const around = text.slice(0, end + reachAfter);
  const word = segmentAt(end, around, 'word');
  if (word > end / 2) return word;
  // Characters of ASCII are visible each by itself.
  return plainPair.test(text.slice(end - 1, end + 1)) ? end : segmentAt(end, around, 'grapheme');
}

const plainPair = /^[ -~]{2}$/;

interface FitOptions<Item> {
  items: readonly Item[];
  /** Maximum tokens of the rendered text. */
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * How many leading items fit into the budget. At least one, if there are any: a single item is bounded by its view. A
 * list that fits is rendered once, any other about three times.
 */
export function fit<Item>({ items, budget, render }: FitOptions<Item>): number {
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

/** A service text for a message of this server: made safe, bounded, and quoted, so that it cannot pose as our words. */
export const untrustedText = (text: string, tokens: number): string =>
  quote(truncate(sanitize(text.slice(0, maxText)), tokens, Math.max(0, text.length - maxText)));

/** The most characters that are read of a text. */
const maxText = 20_000;
const maxId = 200;

/** A service id or code as data. */
export const untrustedId = (text: string): string =>
  truncate(sanitizeLine(text.slice(0, maxId)), 60, Math.max(0, text.length - maxId));

/** The same for a message of this server. */
export const untrustedWord = (text: string): string => word(untrustedId(text));
