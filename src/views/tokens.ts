import { quote, quoteUnlessWord, sanitizeLine } from './safe-text.ts';
import tables from './token-tables.json' with { type: 'json' };

/**
 * Estimates how many tokens of o200k_base a text has, without the tokenizer. Each character has a cost of its own, and
 * costs little if it forms a frequent pair of its script with the character before it. For lists of real ads, the
 * estimate is up to 12 % too high. For noise of any script, it is at most a third too low.
 */
export const estimateTokens = (text: string): number => Math.ceil(sumCosts(text, Number.POSITIVE_INFINITY).cost / 100);

/**
 * Returns whether the estimate of a text stays within a number of tokens. Fast for texts that are short or far too
 * long.
 */
export const fitsWithin = (text: string, tokens: number): boolean =>
  isShort(text, tokens) || measureFittingStart(text, tokens) === text.length;

/** Returns whether a text surely fits, because no byte of a well-formed text costs more than one token. */
const isShort = (text: string, tokens: number): boolean => text.length <= tokens && Buffer.byteLength(text) <= tokens;

/** Returns the length of the longest start of a text that stays within a number of tokens. */
const measureFittingStart = (text: string, tokens: number): number => sumCosts(text, 100 * tokens).end;

/**
 * The costs of code units in hundredths of a token: `alone`, and `behind` a certain code unit. A pair that is not
 * frequent has a cost of 0 in `behind`.
 */
type Costs = { alone: Uint16Array; behind: Uint8Array };

/** The costs, computed when they are first needed. A process that only lists its tools needs no estimates. */
let costs: Costs | undefined;

/** Returns the index of a pair. Pairs of one script never share an index. */
const getPairIndex = (before: number, code: number) => (4099 * before + code) & 0xfffff;

/**
 * Computes the costs from the tables. `alone` holds the end of each block of code units and the cost of its code units.
 * `bench/token-tables.ts` prints the other tables. `pairs` lists letters, each followed by the letters that often come
 * after it. `han` and `hangul` list the characters that are one token, as distances: `(` is 1, and `~` adds 86 to the
 * next distance.
 */
function computeCosts(): Costs {
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
      if (gap !== '~') alone[code] = singleTokenCost;
    }
  }
  const setPairCost = (pair: string, cost: number) => {
    behind[getPairIndex(pair.charCodeAt(0), pair.charCodeAt(1))] = cost;
  };
  for (const [first = '', ...seconds] of tables.pairs.split(' '))
    for (const second of seconds)
      for (const pair of [first + second, first.toUpperCase() + second, (first + second).toUpperCase()])
        setPairCost(pair, frequentPairCost);
  for (const digit of '0123456789') {
    setPairCost(` ${digit}`, 170);
    for (const second of '0123456789') setPairCost(digit + second, 34);
  }
  for (const pair of ['  ', '\n ', '\t ']) setPairCost(pair, 100);
  return { alone, behind };
}

const singleTokenCost = 90;
const frequentPairCost = 14;

/** Returns the length of the longest start of a text that stays within a limit, and the cost of this start. */
function sumCosts(text: string, limit: number): { cost: number; end: number } {
  costs ??= computeCosts();
  const { alone, behind } = costs;
  let cost = 0;
  let previousCode = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const more = behind[getPairIndex(previousCode, code)] || (alone[code] as number);
    if (cost + more > limit) return { cost, end: at };
    cost += more;
    previousCode = code;
  }
  return { cost, end: text.length };
}

/**
 * Returns the start of a text that fits into a number of tokens. The start ends after a word, found by spaces or by the
 * dictionary of a script without spaces, and never inside a visible character. The suffix `… (+312 chars)` counts the
 * missing characters.
 * @param beyond the number of further characters that were cut before
 */
export function truncate(text: string, tokens: number, beyond = 0): string {
  const fits = measureFittingStart(text, tokens);
  if (fits >= text.length && beyond === 0) return text;
  const end = findBorderBefore(text, measureFittingStart(text, Math.max(0, tokens - suffixTokens)));
  const start = text.slice(0, end).trimEnd();
  return `${start}… (+${text.length - start.length + beyond} chars)`;
}

/** Matches the suffix of a truncated text. */
export const truncationSuffix = /… \(\+(\d+) chars\)$/;

/** The tokens of the suffix `… (+1234567 chars)`. */
const suffixTokens = 9;
/** The most characters by which a word or character at the border may extend beyond it. */
const maxReachChars = 60;
/** The distance from the border within which a space is used as the end. */
const maxSpaceDistance = 16;

/**
 * The segmenters, created when they are first needed, because loading their rules would slow down the start of a
 * process.
 */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};

/** Returns the start of the word or visible character at an index of a text. */
export function findSegmentStart(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

/** Returns the last end of a word or visible character before an index. */
function findBorderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - maxSpaceDistance, end / 2)) return space;
  const nearby = text.slice(0, end + maxReachChars);
  const word = findSegmentStart(end, nearby, 'word');
  if (word > end / 2) return word;
  // Two ASCII characters never form one visible character, so the text can be cut between them.
  return plainPair.test(text.slice(end - 1, end + 1)) ? end : findSegmentStart(end, nearby, 'grapheme');
}

const plainPair = /^[ -~]{2}$/;

/** A list to fit into a budget. */
interface FitOptions<Item> {
  items: readonly Item[];
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * Returns how many leading items fit into the budget, but at least one if there are any, because the view of a single
 * item is bounded. A list that fits is rendered once, and any other list about three times.
 */
export function countFittingItems<Item>({ items, budget, render }: FitOptions<Item>): number {
  if (items.length <= 1) return items.length;
  let fitting = { count: 0, length: 0 };
  let tooMany = { count: items.length + 1, length: 0, within: 0 };
  let count = items.length;
  for (let tries = 1; tooMany.count - Math.max(1, fitting.count) > 1; tries++) {
    const text = render(items.slice(0, count));
    const within = isShort(text, budget) ? text.length : measureFittingStart(text, budget);
    if (within < text.length) tooMany = { count, length: text.length, within };
    else if (count === items.length) return count;
    else fitting = { count, length: text.length };
    // Most items have a similar length, so the next guess follows from the share of the text that fits. After
    // `maxGuesses`, the range is halved, which is safer for items of different lengths.
    const share = tries > maxGuesses ? 1 / 2 : (tooMany.within - fitting.length) / (tooMany.length - fitting.length);
    const guess = Math.floor(fitting.count + share * (tooMany.count - fitting.count));
    count = Math.max(fitting.count + 1, 2, Math.min(tooMany.count - 1, guess));
  }
  return Math.max(1, fitting.count);
}

const maxGuesses = 4;

/**
 * Cuts a text after a whole line and says how much is missing. This is the last resort if the budget is smaller than
 * one item.
 */
export function clampLines(text: string, budget: number): string {
  if (fitsWithin(text, budget)) return text;
  const end = measureFittingStart(text, budget - noteTokens);
  const border = text.lastIndexOf('\n', end);
  const keptText = border > 0 ? text.slice(0, border) : truncate(text, budget - noteTokens);
  return `${keptText}\n(cut to fit: ${text.length - keptText.length} more characters)`;
}

const noteTokens = 16;

/** The most characters of a token by this estimate. Text beyond that is not read. */
export const charsPerToken = 8;

/** Returns a third-party text on one line, made safe and cut to a number of tokens. */
export function truncateLine(text: string, tokens: number): string {
  const readChars = charsPerToken * (tokens + charsPerToken);
  return truncate(sanitizeLine(text.slice(0, readChars)), tokens, Math.max(0, text.length - readChars));
}

/**
 * Quotes a text of the service for a message of this server: one line, cut and quoted, so that it cannot imitate the
 * words of this server.
 */
export const quoteUntrusted = (text: string, tokens: number): string => quote(truncateLine(text, tokens));

/** Returns an id of the service, made safe and cut. */
export const sanitizeId = (text: string): string => truncateLine(text, 60);

/** Returns an id of the service without quotes if it is one word, and otherwise quoted. */
export const quoteId = (text: string): string => quoteUnlessWord(sanitizeId(text));
