import { quote, sanitizeLine } from './safe-text.ts';
import { fitsWithin, segmentStart, truncate, truncationSuffix } from './tokens.ts';

const excerptTokens = 28;
/** The most of the common text that an excerpt shows before the first difference. */
const contextTokens = 8;
const contextChars = 64;

/**
 * Returns a quoted excerpt of each of two texts, in which their first difference can be seen: the beginning, or the place
 * of the difference with a few words before it. It finds words and characters in any script, also in scripts without
 * spaces. Undefined if the texts look the same, as texts do that differ in invisible characters or in kinds of quotes.
 */
export function excerptDifference(from: string, to: string): [from: string, to: string] | undefined {
  const [old, now] = [plain(from), plain(to)];
  if (old === now) return;
  const difference = firstDifference(old, now);
  for (const start of [0, contextStart(old, difference), difference]) {
    const [before, after] = [excerpt(old, start, difference), excerpt(now, start, difference)];
    if (before !== undefined && after !== undefined) return before === after ? undefined : [before, after];
  }
}

const plain = (text: string): string => sanitizeLine(text).normalize('NFC');

/** The index of the first visible character in which the texts differ. No character is cut in two. */
function firstDifference(left: string, right: string): number {
  let common = 0;
  while (common < left.length && common < right.length && left[common] === right[common]) common++;
  return Math.min(characterStart(left, common), characterStart(right, common));
}

const characterStart = (text: string, index: number): number =>
  index < text.length ? segmentStart(index, text, 'grapheme') : index;

/** The start of the words before the difference that fit into `contextTokens`. */
function contextStart(text: string, difference: number): number {
  const from = Math.max(0, difference - contextChars);
  for (let at = difference; ; ) {
    const start = at > from ? segmentStart(at - 1, text, 'word') : from;
    if (start <= from || !fitsWithin(text.slice(start, difference), contextTokens)) return at;
    at = start;
  }
}

/** Undefined if the excerpt ends before the difference. */
function excerpt(text: string, start: number, difference: number): string | undefined {
  const line = truncate(text.slice(start), excerptTokens);
  const visibleChars = line.replace(truncationSuffix, '').length;
  const isCut = truncationSuffix.test(line);
  if (isCut && visibleChars <= difference - start) return;
  return quote(`${start > 0 ? '…' : ''}${line}`);
}
