import { quote, quoteUnlessWord, sanitizeLine } from './safe-text.ts';
import tables from './token-tables.json' with { type: 'json' };

/**
 * Estimates the number of tokens of a text in OpenAI's o200k_base encoding, without loading the tokenizer. Every
 * character has a cost, which is lower if the character forms a frequent pair with the preceding one. For lists of real
 * ads, the estimate is at most 12% too high. For random characters of any script, it is at most a third too low.
 */
export const estimateTokens = (text: string): number =>
  Math.ceil(sumTokenCosts(text, Number.POSITIVE_INFINITY).cost / 100);

/**
 * Returns true if a text has at most `maxTokens` estimated tokens. The estimate is fast for texts that are short or far
 * too long.
 */
export const fitsWithin = (text: string, maxTokens: number): boolean =>
  isWithinByteCount(text, maxTokens) || measureFittingPrefix(text, maxTokens) === text.length;

/**
 * Returns true if the byte length of a text already proves that the text has at most `maxTokens` tokens. A byte of
 * well-formed text never costs more than one token.
 */
const isWithinByteCount = (text: string, maxTokens: number): boolean =>
  text.length <= maxTokens && Buffer.byteLength(text) <= maxTokens;

/** Returns the length of the longest beginning of a text that has at most `maxTokens` tokens. */
const measureFittingPrefix = (text: string, maxTokens: number): number =>
  sumTokenCosts(text, 100 * maxTokens).fittingLength;

/**
 * The costs of UTF-16 code units, in hundredths of a token. `charCosts` contains the cost of each code unit.
 * `pairCosts` contains the lower cost of the second code unit in a frequent pair, and 0 for every other pair.
 */
type CostTables = { charCosts: Uint16Array; pairCosts: Uint8Array };

/**
 * The cost tables. They are computed when they are used for the first time, because a process that only lists its tools
 * does not need them.
 */
let costTables: CostTables | undefined;

/**
 * Returns the index of a pair of code units in the `pairCosts` table. Different pairs of code units in the same script
 * never have the same index.
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
  for (const [gaps, precedingCode] of [
    [tables.han, 0x4e00 - 1],
    [tables.hangul, 0xac00 - 1],
  ] as const) {
    let code = precedingCode;
    for (const gap of gaps) {
      code += gap === '~' ? 86 : gap.charCodeAt(0) - 39;
      if (gap !== '~') charCosts[code] = singleTokenCost;
    }
  }
  // Process code units as numbers. Joining the two letters of each pair as text would take ten times as long.
  const addPairs = (firstLetter: string, secondLetters: string) => {
    const firstCode = firstLetter.charCodeAt(0);
    for (let index = 0; index < secondLetters.length; index++)
      pairCosts[getPairIndex(firstCode, secondLetters.charCodeAt(index))] = frequentPairCost;
  };
  for (const entry of tables.pairs.split(' ')) {
    const [firstLetter, secondLetters] = [entry.charAt(0), entry.slice(1)];
    const [upperFirstLetter, upperSecondLetters] = [firstLetter.toUpperCase(), secondLetters.toUpperCase()];
    addPairs(firstLetter, secondLetters);
    // Skip a letter whose capital form has two letters, such as "SS" for "ß", because a pair consists of single
    // letters.
    if (upperFirstLetter.length === 1) addPairs(upperFirstLetter, secondLetters + upperSecondLetters);
  }
  for (let firstDigit = 0x30; firstDigit <= 0x39; firstDigit++) {
    pairCosts[getPairIndex(0x20, firstDigit)] = 170;
    for (let secondDigit = 0x30; secondDigit <= 0x39; secondDigit++)
      pairCosts[getPairIndex(firstDigit, secondDigit)] = 34;
  }
  for (const whitespace of '\n\t ') pairCosts[getPairIndex(whitespace.charCodeAt(0), 0x20)] = 100;
  return { charCosts, pairCosts };
}

const singleTokenCost = 90;
const frequentPairCost = 14;

/**
 * Adds up the costs of the characters of a text, in hundredths of a token, until the sum would exceed `maxCost`.
 * Returns the length and the cost of the beginning of the text that does not exceed `maxCost`.
 */
function sumTokenCosts(text: string, maxCost: number): { cost: number; fittingLength: number } {
  costTables ??= computeCostTables();
  const { charCosts, pairCosts } = costTables;
  let cost = 0;
  let previousCode = 0;
  for (let start = 0; start < text.length; start += maxChunkLength) {
    const byteCount = chunkBytes.write(text.slice(start, start + maxChunkLength), 'utf16le');
    for (let index = 0; index < byteCount; index += 2) {
      const code = (chunkBytes[index] as number) | ((chunkBytes[index + 1] as number) << 8);
      const charCost = pairCosts[getPairIndex(previousCode, code)] || (charCosts[code] as number);
      if (cost + charCost > maxCost) return { cost, fittingLength: start + index / 2 };
      cost += charCost;
      previousCode = code;
    }
  }
  return { cost, fittingLength: text.length };
}

/** The maximum length of a chunk, in UTF-16 code units. */
const maxChunkLength = 4096;
/**
 * The current chunk of the text that `sumTokenCosts` reads, in UTF-16. Reading bytes is up to three times as fast as
 * calling `charCodeAt`, because V8 stores texts in several internal representations, e.g. as parts of longer texts.
 * Once a loop has read texts in more than four representations, V8 repeats the lookup of `charCodeAt` for every
 * character.
 */
const chunkBytes = Buffer.alloc(2 * maxChunkLength);

/**
 * Truncates a text to `maxTokens` tokens and adds the number of missing characters, e.g. `… (+312 chars)`. Cuts the
 * text between words and never inside a visible character. In scripts without spaces, a dictionary determines the
 * words.
 * @param removedChars the number of characters that were already removed before the call
 */
export function truncate(text: string, maxTokens: number, removedChars = 0): string {
  const fittingChars = measureFittingPrefix(text, maxTokens);
  if (fittingChars >= text.length && removedChars === 0) return text;
  const cutPosition = findCutPosition(text, measureFittingPrefix(text, Math.max(0, maxTokens - maxSuffixTokens)));
  const start = text.slice(0, cutPosition).trimEnd();
  return `${start}… (+${text.length - start.length + removedChars} chars)`;
}

/**
 * Matches the suffix that `truncate` adds, e.g. `… (+312 chars)`. The capture group contains the number of missing
 * characters.
 */
export const truncationSuffixPattern = /… \(\+(\d+) chars\)$/;

/** The maximum number of tokens of the suffix that `truncate` adds, e.g. `… (+1234567 chars)`. */
const maxSuffixTokens = 9;
/** The maximum number of characters to read after the cut in order to find the end of a word or visible character. */
const maxLookaheadChars = 60;
/**
 * The maximum distance of a space before the cut, in characters. If a space is within this distance, the text is cut at
 * the space instead.
 */
const maxSpaceDistanceChars = 16;

/**
 * The segmenters for each granularity. They are created on first use, because loading their rules would slow down the
 * start of the process.
 */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};

/**
 * Returns the index at which the word or visible character (grapheme) that contains `index` starts. A text can be cut
 * there without splitting a word or character.
 */
export function findSegmentStart(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

/**
 * Returns the last position up to `maxPosition` at which the text can be cut without splitting a word or visible
 * character.
 */
function findCutPosition(text: string, maxPosition: number): number {
  const spacePosition = Math.max(text.lastIndexOf(' ', maxPosition), text.lastIndexOf('\n', maxPosition));
  if (spacePosition > Math.max(maxPosition - maxSpaceDistanceChars, maxPosition / 2)) return spacePosition;
  const nearbyText = text.slice(0, maxPosition + maxLookaheadChars);
  const wordStart = findSegmentStart(maxPosition, nearbyText, 'word');
  if (wordStart > maxPosition / 2) return wordStart;
  // Two ASCII characters never form one visible character, so cutting between them is safe.
  return asciiPairPattern.test(text.slice(maxPosition - 1, maxPosition + 1))
    ? maxPosition
    : findSegmentStart(maxPosition, nearbyText, 'grapheme');
}

const asciiPairPattern = /^[ -~]{2}$/;

/** A list of items, the function that renders it as text, and the limits for this text. */
interface FittingItemsOptions<Item> extends TextLimits {
  items: readonly Item[];
  renderItems: (items: readonly Item[]) => string;
}

/**
 * Returns the number of items from the beginning of a list that fit within `maxTokens` and `maxBytes`. Returns at least
 * 1 for a non-empty list, because the text of a single item has a separate limit. Renders the list once if all items
 * fit, and otherwise about three times.
 */
export function countFittingItems<Item>({
  items,
  maxTokens,
  maxBytes,
  renderItems,
}: FittingItemsOptions<Item>): number {
  if (items.length <= 1) return items.length;
  let largestFit = { count: 0, length: 0 };
  let smallestOverflow = { count: items.length + 1, length: 0, fittingLength: 0 };
  let count = items.length;
  for (let attempt = 1; smallestOverflow.count - Math.max(1, largestFit.count) > 1; attempt++) {
    const text = renderItems(items.slice(0, count));
    const fittingChars = Math.min(
      isWithinByteCount(text, maxTokens) ? text.length : measureFittingPrefix(text, maxTokens),
      measurePrefixWithinBytes(text, maxBytes),
    );
    if (fittingChars < text.length) smallestOverflow = { count, length: text.length, fittingLength: fittingChars };
    else if (count === items.length) return count;
    else largestFit = { count, length: text.length };
    // Most items have a similar length, so guess the next count by interpolation. If the items differ too much,
    // continue with binary search after `maxGuesses` guesses.
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

/** The maximum size of a text, in tokens and in bytes. */
export interface TextLimits {
  maxTokens: number;
  /** The maximum number of UTF-8 bytes. The default is no limit. */
  maxBytes?: number | undefined;
}

/**
 * Shortens a text to at most `maxTokens` estimated tokens and `maxBytes` UTF-8 bytes, and adds the number of missing
 * characters. Keeps the last paragraph, because a list ends with the cursor of the next page. This function is a last
 * resort, because most tools already return texts within the limits.
 */
export function truncateToLimits(text: string, { maxTokens, maxBytes = Number.POSITIVE_INFINITY }: TextLimits): string {
  if (fitsWithin(text, maxTokens) && measurePrefixWithinBytes(text, maxBytes) === text.length) return text;
  const lastParagraph = text.slice(Math.max(0, text.lastIndexOf('\n\n')));
  const canKeepParagraph = fitsWithin(lastParagraph, maxTokens / 4) && Buffer.byteLength(lastParagraph) <= maxBytes / 4;
  const footer = canKeepParagraph ? lastParagraph : '';
  const maxStartLength = Math.min(
    measureFittingPrefix(text, maxTokens - estimateTokens(footer) - noteTokens),
    measurePrefixWithinBytes(text, maxBytes - Buffer.byteLength(footer) - noteBytes),
  );
  const lineEnd = text.lastIndexOf('\n', maxStartLength);
  // Cut at a line break, because most lines are short. If a single long line takes up most of the space, keep the
  // beginning of that line.
  const startText = text.slice(0, lineEnd > maxStartLength / 2 ? lineEnd : findCutPosition(text, maxStartLength));
  const missingChars = text.length - footer.length - startText.length;
  return `${startText}${buildMissingQuotationMark(startText)}\n(cut to fit: ${missingChars} more characters)${footer}`;
}

const noteTokens = 16;
const noteBytes = 80;

/**
 * Returns `…"` if the last line of a cut text lacks its closing quotation mark. A quoted text contains neither
 * quotation marks nor line breaks, so an odd number of quotation marks means that one is missing.
 */
function buildMissingQuotationMark(cutText: string): string {
  const lastLine = cutText.slice(cutText.lastIndexOf('\n') + 1);
  return lastLine.split('"').length % 2 === 0 ? '…"' : '';
}

/** Returns the length of the longest beginning of a text that has at most `maxBytes` UTF-8 bytes. */
function measurePrefixWithinBytes(text: string, maxBytes = Number.POSITIVE_INFINITY): number {
  // A UTF-16 code unit takes at most three bytes in UTF-8, so the bytes of a short text need not be counted.
  if (3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text.length;
  return new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, maxBytes))).read;
}

/**
 * The maximum number of characters to read for each token that a text may have. Further characters are dropped before
 * the slow `sanitize` runs.
 */
export const maxReadCharsPerToken = 8;

/** Sanitizes a third-party text, puts it on one line, and truncates it to `maxTokens` tokens. */
export function truncateLine(text: string, maxTokens: number): string {
  const readChars = maxReadCharsPerToken * (maxTokens + maxReadCharsPerToken);
  return truncate(sanitizeLine(text.slice(0, readChars)), maxTokens, Math.max(0, text.length - readChars));
}

/**
 * Quotes text from the service for use in a message of this server. The quoted text is short and on one line, so that
 * it cannot imitate the message.
 */
export const quoteUntrustedText = (text: string, maxTokens: number): string => quote(truncateLine(text, maxTokens));

/** Sanitizes and truncates an id from the service. */
export const sanitizeId = (text: string): string => truncateLine(text, 60);

/** Sanitizes and truncates an id from the service, and quotes it unless it is a single word. */
export const quoteId = (text: string): string => quoteUnlessWord(sanitizeId(text));
