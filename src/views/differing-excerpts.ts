import { quote, sanitizeLine } from './safe-text.ts';
import { findSegmentStart, fitsWithin, truncate, truncationSuffix } from './tokens.ts';

/** The most tokens of an excerpt. */
const excerptTokens = 28;
/** The most tokens and characters of common text that an excerpt shows before the first difference. */
const contextTokens = 8;
const contextChars = 64;

/**
 * Returns a quoted excerpt of each of two texts in which their first difference is visible: either the beginning of the
 * texts, or the place of the difference with a few words before it. Words and characters are found in any script, also
 * in scripts without spaces. Returns undefined if the texts look the same, for example if they differ only in invisible
 * characters or in kinds of quotes.
 */
export function excerptDifference(from: string, to: string): [from: string, to: string] | undefined {
  const [oldText, newText] = [normalizeText(from), normalizeText(to)];
  if (oldText === newText) return;
  const difference = findFirstDifference(oldText, newText);
  for (const start of [0, findContextStart(oldText, difference), difference]) {
    const [before, after] = [buildExcerpt(oldText, start, difference), buildExcerpt(newText, start, difference)];
    if (before !== undefined && after !== undefined) return before === after ? undefined : [before, after];
  }
}

const normalizeText = (text: string): string => sanitizeLine(text).normalize('NFC');

/** Returns the index of the first visible character in which the texts differ. */
function findFirstDifference(left: string, right: string): number {
  let common = 0;
  while (common < left.length && common < right.length && left[common] === right[common]) common++;
  return Math.min(findCharacterStart(left, common), findCharacterStart(right, common));
}

/** Returns the start of the visible character at an index, so that no character is cut in two. */
const findCharacterStart = (text: string, index: number): number =>
  index < text.length ? findSegmentStart(index, text, 'grapheme') : index;

/** Returns the start of the words before the difference that fit into `contextTokens`. */
function findContextStart(text: string, difference: number): number {
  const from = Math.max(0, difference - contextChars);
  for (let at = difference; ; ) {
    const start = at > from ? findSegmentStart(at - 1, text, 'word') : from;
    if (start <= from || !fitsWithin(text.slice(start, difference), contextTokens)) return at;
    at = start;
  }
}

/** Returns the excerpt from `start`. Returns undefined if the excerpt would end before the difference. */
function buildExcerpt(text: string, start: number, difference: number): string | undefined {
  const line = truncate(text.slice(start), excerptTokens);
  const visibleChars = line.replace(truncationSuffix, '').length;
  const isCut = truncationSuffix.test(line);
  if (isCut && visibleChars <= difference - start) return;
  return quote(`${start > 0 ? '…' : ''}${line}`);
}
