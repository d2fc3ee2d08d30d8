import { normalizeLine, quote } from './safe-text.ts';
import { findSegmentStart, fitsWithin, truncate, truncationSuffixPattern } from './tokens.ts';

/** The maximum length of an excerpt, in tokens. */
const maxExcerptTokens = 28;
/**
 * The maximum length of the equal text that an excerpt shows before the first difference, in tokens and in characters.
 * A few equal words help readers to find the place in both texts.
 */
const maxContextTokens = 8;
const maxContextChars = 64;

/**
 * Returns a quoted excerpt of each text that shows the first difference between the texts. An excerpt starts at the
 * beginning of its text, or a few words before the difference. All scripts are supported, including scripts without
 * spaces.
 *
 * Returns undefined if the texts look the same, e.g. if they differ only in invisible characters or in the type of
 * quotation marks.
 */
export function buildDifferenceExcerpts(
  oldText: string,
  newText: string,
): [oldExcerpt: string, newExcerpt: string] | undefined {
  const [normalizedOldText, normalizedNewText] = [normalizeLine(oldText), normalizeLine(newText)];
  if (normalizedOldText === normalizedNewText) return;
  const differenceIndex = findFirstDifference(normalizedOldText, normalizedNewText);
  for (const start of [0, findContextStart(normalizedOldText, differenceIndex), differenceIndex]) {
    const [before, after] = [
      buildExcerpt(normalizedOldText, start, differenceIndex),
      buildExcerpt(normalizedNewText, start, differenceIndex),
    ];
    if (before !== undefined && after !== undefined) return before === after ? undefined : [before, after];
  }
}

/** Returns the index of the first grapheme (visible character) that differs between the two texts. */
function findFirstDifference(firstText: string, secondText: string): number {
  let commonLength = 0;
  while (
    commonLength < firstText.length &&
    commonLength < secondText.length &&
    firstText[commonLength] === secondText[commonLength]
  )
    commonLength++;
  return Math.min(findGraphemeStart(firstText, commonLength), findGraphemeStart(secondText, commonLength));
}

/**
 * Returns the index at which the grapheme (visible character) that contains `index` starts. An excerpt that starts
 * there does not split a grapheme.
 */
const findGraphemeStart = (text: string, index: number): number =>
  index < text.length ? findSegmentStart(index, text, 'grapheme') : index;

/**
 * Returns the index at which the excerpt should start: a few words before the difference, but at most
 * `maxContextTokens` tokens before it.
 */
function findContextStart(text: string, differenceIndex: number): number {
  const earliestStart = Math.max(0, differenceIndex - maxContextChars);
  for (let index = differenceIndex; ; ) {
    const start = index > earliestStart ? findSegmentStart(index - 1, text, 'word') : earliestStart;
    if (start <= earliestStart || !fitsWithin(text.slice(start, differenceIndex), maxContextTokens)) return index;
    index = start;
  }
}

/**
 * Builds the excerpt that starts at `startIndex`. Returns undefined if the excerpt would end before the difference.
 */
function buildExcerpt(text: string, startIndex: number, differenceIndex: number): string | undefined {
  const excerpt = truncate(text.slice(startIndex), maxExcerptTokens);
  const visibleChars = excerpt.replace(truncationSuffixPattern, '').length;
  const isCut = truncationSuffixPattern.test(excerpt);
  if (isCut && visibleChars <= differenceIndex - startIndex) return;
  return quote(`${startIndex > 0 ? '…' : ''}${excerpt}`);
}
