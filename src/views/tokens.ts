import { quote, quoteUnlessWord, sanitizeLine } from './safe-text.ts';
import tables from './token-tables.json' with { type: 'json' };

/**
 * Estimates how many tokens a text has in OpenAI's encoding o200k_base, without loading the tokenizer. Every character
 * has a cost, which is lower if the character forms a frequent pair with the preceding one. For lists of real ads, the
 * estimate is at most 12% too high. For random characters of any script, it is at most a third too low.
 */
export const estimateTokens = (text: string): number => Math.ceil(sumCosts(text, Number.POSITIVE_INFINITY).cost / 100);

/** Returns true if a text has at most `maxTokens` estimated tokens. Fast for texts that are short or far too long. */
export const fitsWithin = (text: string, maxTokens: number): boolean =>
  isWithinByteCount(text, maxTokens) || measureFittingPrefix(text, maxTokens) === text.length;

/**
 * Returns true if the byte length of a text already proves that the text fits. This is possible because a byte of
 * well-formed text never costs more than one token.
 */
const isWithinByteCount = (text: string, maxTokens: number): boolean =>
  text.length <= maxTokens && Buffer.byteLength(text) <= maxTokens;

/** Returns the length of the longest prefix of a text that fits in the token budget. */
const measureFittingPrefix = (text: string, maxTokens: number): number => sumCosts(text, 100 * maxTokens).end;

/**
 * Costs of UTF-16 code units, in hundredths of a token. `charCosts` contains the cost of each code unit. `pairCosts`
 * contains the lower cost of the second code unit of a frequent pair, and 0 for all other pairs.
 */
type CostTables = { charCosts: Uint16Array; pairCosts: Uint8Array };

/** The cost tables. They are computed on first use, because a process that only lists its tools does not need them. */
let costTables: CostTables | undefined;

/**
 * Returns the index of a pair of code units in `pairCosts`. Two different pairs of the same script never have the same
 * index.
 */
const getPairIndex = (firstCode: number, secondCode: number) => (4099 * firstCode + secondCode) & 0xfffff;

/**
 * Computes the costs of code units from `token-tables.json`, which contains four tables:
 *
 * - `alone`: each entry is the end of a block of code units and the cost of each code unit in the block.
 * - `pairs`: each entry is a letter with the letters that often follow it.
 * - `han` and `hangul`: the characters that are a single token, encoded as distances. `(` is 1, and `~` adds 86 to the
 *   next distance.
 *
 * `bench/token-tables.ts` generates `pairs`, `han` and `hangul`.
 */
function computeCostTables(): CostTables {
  const charCosts = new Uint16Array(0x10000);
  const pairCosts = new Uint8Array(0x100000);
  let blockStart = 0;
  for (const [end = 0, cost = 0] of tables.alone) {
    charCosts.fill(cost, blockStart, end);
    blockStart = end;
  }
  for (const [gaps, before] of [
    [tables.han, 0x4e00 - 1],
    [tables.hangul, 0xac00 - 1],
  ] as const) {
    let code = before;
    for (const gap of gaps) {
      code += gap === '~' ? 86 : gap.charCodeAt(0) - 39;
      if (gap !== '~') charCosts[code] = singleTokenCost;
    }
  }
  // These loops compare code units as numbers, because joining the letters of each pair as text would take ten times as
  // long.
  const addPairs = (firstLetter: string, secondLetters: string) => {
    const firstCode = firstLetter.charCodeAt(0);
    for (let index = 0; index < secondLetters.length; index++)
      pairCosts[getPairIndex(firstCode, secondLetters.charCodeAt(index))] = frequentPairCost;
  };
  for (const entry of tables.pairs.split(' ')) {
    const [first, seconds] = [entry.charAt(0), entry.slice(1)];
    const [upperFirst, upperSeconds] = [first.toUpperCase(), seconds.toUpperCase()];
    addPairs(first, seconds);
    // Skip a capital form of two letters, such as "SS" for "ß", because pairs consist of single letters.
    if (upperFirst.length === 1) addPairs(upperFirst, seconds + upperSeconds);
  }
  for (let digit = 0x30; digit <= 0x39; digit++) {
    pairCosts[getPairIndex(0x20, digit)] = 170;
    for (let second = 0x30; second <= 0x39; second++) pairCosts[getPairIndex(digit, second)] = 34;
  }
  for (const before of '\n\t ') pairCosts[getPairIndex(before.charCodeAt(0), 0x20)] = 100;
  return { charCosts, pairCosts };
}

const singleTokenCost = 90;
const frequentPairCost = 14;

/**
 * Adds up the costs of characters until the limit is reached. Returns the length and the cost of the text before the
 * limit.
 */
function sumCosts(text: string, maxCost: number): { cost: number; end: number } {
  costTables ??= computeCostTables();
  const { charCosts, pairCosts } = costTables;
  let cost = 0;
  let previousCode = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    const charCost = pairCosts[getPairIndex(previousCode, code)] || (charCosts[code] as number);
    if (cost + charCost > maxCost) return { cost, end: index };
    cost += charCost;
    previousCode = code;
  }
  return { cost, end: text.length };
}

/**
 * Truncates a text to a token budget and appends how many characters are missing, e.g. `… (+312 chars)`. Cuts between
 * words and never splits a visible character. Words are found by spaces or, in scripts without spaces, with a
 * dictionary.
 * @param removedChars number of characters that were already removed before the call
 */
export function truncate(text: string, maxTokens: number, removedChars = 0): string {
  const fittingChars = measureFittingPrefix(text, maxTokens);
  if (fittingChars >= text.length && removedChars === 0) return text;
  const cutPosition = findCutPosition(text, measureFittingPrefix(text, Math.max(0, maxTokens - maxSuffixTokens)));
  const start = text.slice(0, cutPosition).trimEnd();
  return `${start}… (+${text.length - start.length + removedChars} chars)`;
}

/**
 * Matches the suffix that `truncate` appends, e.g. `… (+312 chars)`. The group contains the number of missing
 * characters.
 */
export const truncationSuffixPattern = /… \(\+(\d+) chars\)$/;

/** Maximum number of tokens of the suffix, e.g. `… (+1234567 chars)`. */
const maxSuffixTokens = 9;
/** Maximum number of characters to inspect after the cut in order to find the end of a word or visible character. */
const maxLookaheadChars = 60;
/** If a space is at most this many characters before the cut, the text is cut at the space instead. */
const maxSpaceDistance = 16;

/** Segmenters by granularity. They are created on first use, because loading their rules would slow down the start. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};

/**
 * Returns where the word or visible character (grapheme) at an index starts, so that a text is not cut inside of it.
 */
export function findSegmentStart(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

/**
 * Returns the last position before `end` at which the text can be cut without splitting a word or visible character.
 */
function findCutPosition(text: string, end: number): number {
  const spacePosition = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (spacePosition > Math.max(end - maxSpaceDistance, end / 2)) return spacePosition;
  const nearbyText = text.slice(0, end + maxLookaheadChars);
  const wordStart = findSegmentStart(end, nearbyText, 'word');
  if (wordStart > end / 2) return wordStart;
  // Two ASCII characters never form one visible character, so it is safe to cut between them.
  return asciiPairPattern.test(text.slice(end - 1, end + 1)) ? end : findSegmentStart(end, nearbyText, 'grapheme');
}

const asciiPairPattern = /^[ -~]{2}$/;

/** A list of items, and the limits for its rendered text. */
interface FitOptions<Item> extends TextLimits {
  items: readonly Item[];
  render: (items: readonly Item[]) => string;
}

/**
 * Returns how many of the first items fit within both limits. Returns at least 1 if there are items, because the text
 * of a single item has its own limit. Renders the list once if all items fit, and about three times otherwise.
 */
export function countFittingItems<Item>({ items, maxTokens, maxBytes, render }: FitOptions<Item>): number {
  if (items.length <= 1) return items.length;
  let largestFit = { count: 0, length: 0 };
  let smallestOverflow = { count: items.length + 1, length: 0, fittingLength: 0 };
  let count = items.length;
  for (let attempt = 1; smallestOverflow.count - Math.max(1, largestFit.count) > 1; attempt++) {
    const text = render(items.slice(0, count));
    const fittingChars = Math.min(
      isWithinByteCount(text, maxTokens) ? text.length : measureFittingPrefix(text, maxTokens),
      measurePrefixWithinBytes(text, maxBytes),
    );
    if (fittingChars < text.length) smallestOverflow = { count, length: text.length, fittingLength: fittingChars };
    else if (count === items.length) return count;
    else largestFit = { count, length: text.length };
    // Most items have a similar length, so guess the next count by interpolation. After `maxGuesses` guesses, use
    // binary search, which works better for items of different lengths.
    const interpolationShare =
      attempt > maxGuesses
        ? 1 / 2
        : (smallestOverflow.fittingLength - largestFit.length) / (smallestOverflow.length - largestFit.length);
    const guess = Math.floor(largestFit.count + interpolationShare * (smallestOverflow.count - largestFit.count));
    count = Math.max(largestFit.count + 1, 2, Math.min(smallestOverflow.count - 1, guess));
  }
  return Math.max(1, largestFit.count);
}

const maxGuesses = 4;

/** Maximum size of a text. */
export interface TextLimits {
  maxTokens: number;
  /** Maximum number of UTF-8 bytes. Unlimited by default. */
  maxBytes?: number | undefined;
}

/**
 * Shortens a text to a number of estimated tokens and of UTF-8 bytes, and appends how many characters are missing.
 * Keeps the last paragraph, because a list ends with the cursor of its next page. Used as a last resort: most tools
 * fit their text to the limits by themselves.
 */
export function clampText(text: string, { maxTokens, maxBytes = Number.POSITIVE_INFINITY }: TextLimits): string {
  if (fitsWithin(text, maxTokens) && measurePrefixWithinBytes(text, maxBytes) === text.length) return text;
  const lastParagraph = text.slice(Math.max(0, text.lastIndexOf('\n\n')));
  const fitsInQuarter = fitsWithin(lastParagraph, maxTokens / 4) && Buffer.byteLength(lastParagraph) <= maxBytes / 4;
  const footer = fitsInQuarter ? lastParagraph : '';
  const end = Math.min(
    measureFittingPrefix(text, maxTokens - estimateTokens(footer) - noteTokens),
    measurePrefixWithinBytes(text, maxBytes - Buffer.byteLength(footer) - noteBytes),
  );
  const lineEnd = text.lastIndexOf('\n', end);
  // Cut at a line break, because most lines are short. If a single long line takes up the space, keep the beginning of
  // that line.
  const startText = text.slice(0, lineEnd > end / 2 ? lineEnd : findCutPosition(text, end));
  const missingChars = text.length - footer.length - startText.length;
  return `${startText}${closeQuote(startText)}\n(cut to fit: ${missingChars} more characters)${footer}`;
}

const noteTokens = 16;
const noteBytes = 80;

/**
 * Returns `…"` if a cut removed the closing quotation mark of the last line. A quoted text contains neither quotation
 * marks nor line breaks, so an odd number of marks means that the quote is open.
 */
function closeQuote(text: string): string {
  const lastLine = text.slice(text.lastIndexOf('\n') + 1);
  return lastLine.split('"').length % 2 === 0 ? '…"' : '';
}

/** Returns the length of the longest prefix of a text with at most `maxBytes` UTF-8 bytes. */
function measurePrefixWithinBytes(text: string, maxBytes = Number.POSITIVE_INFINITY): number {
  // A UTF-16 code unit takes at most three bytes in UTF-8, so a short text needs no exact count.
  if (3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text.length;
  return new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, maxBytes))).read;
}

/**
 * Maximum number of characters to read for each token of the budget. The rest of a long text is dropped before the slow
 * sanitizing.
 */
export const charsPerToken = 8;

/** Sanitizes a third-party text, puts it on one line and truncates it to a token budget. */
export function truncateLine(text: string, maxTokens: number): string {
  const readChars = charsPerToken * (maxTokens + charsPerToken);
  return truncate(sanitizeLine(text.slice(0, readChars)), maxTokens, Math.max(0, text.length - readChars));
}

/**
 * Quotes text from the service for use in a message of this server. The text is put on one line and truncated, so that
 * it cannot imitate the message.
 */
export const quoteUntrusted = (text: string, maxTokens: number): string => quote(truncateLine(text, maxTokens));

/** Sanitizes and truncates an id from the service. */
export const sanitizeId = (text: string): string => truncateLine(text, 60);

/** Sanitizes an id from the service. Quotes it unless it is a single word. */
export const quoteId = (text: string): string => quoteUnlessWord(sanitizeId(text));
