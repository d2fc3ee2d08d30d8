import { diffArrays } from 'diff';

/** Successive words of a compared text. Either all of these words differ from another text, or none of them. */
export interface ComparedSegment {
  text: string;
  /** True if these words are missing from another text. */
  isDifferent: boolean;
}

/**
 * The time limit for one comparison, in milliseconds. Texts that take longer have so little in common that marking
 * their differences would not help.
 */
const comparisonTimeoutMs = 150;

/** Splits a text into words. Works for all scripts, including scripts without spaces, such as Chinese. */
const wordSegmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
const splitWords = (text: string) => Array.from(wordSegmenter.segment(text), ({ segment }) => segment);

/**
 * The minimum share of characters (0 to 1) that two texts must have in common. Below this share, no differences are
 * marked, because almost all words would be marked.
 */
const minCommonShare = 0.3;

const countCharacters = (words: readonly string[]) =>
  words.reduce((charCount, word) => charCount + word.trim().length, 0);

/**
 * Compares the first text with each of the others, and splits every text into segments. In the first text, marks words
 * that are missing from at least one other text. In the other texts, marks words that are missing from the first text.
 */
export function markDifferences(texts: readonly string[]): ComparedSegment[][] {
  const [wordsOfFirstText = [], ...otherTexts] = texts.map(splitWords);
  const firstTextDifferenceFlags = wordsOfFirstText.map(() => false);
  const segmentsOfOtherTexts = otherTexts.map((words) => {
    const changes = diffArrays(wordsOfFirstText, words, { timeout: comparisonTimeoutMs }) ?? [];
    const commonWords = changes.flatMap(({ value, added, removed }) => (added || removed ? [] : value));
    const longerLength = Math.max(countCharacters(wordsOfFirstText), countCharacters(words));
    if (countCharacters(commonWords) < minCommonShare * longerLength) return joinIntoSegments(words, () => false);
    const otherTextDifferenceFlags: boolean[] = [];
    let firstTextIndex = 0;
    for (const { count, added, removed } of changes) {
      if (removed) firstTextDifferenceFlags.fill(true, firstTextIndex, firstTextIndex + count);
      else otherTextDifferenceFlags.push(...Array<boolean>(count).fill(added));
      if (!added) firstTextIndex += count;
    }
    return joinIntoSegments(words, (index) => otherTextDifferenceFlags[index] === true);
  });
  return [
    joinIntoSegments(wordsOfFirstText, (index) => firstTextDifferenceFlags[index] === true),
    ...segmentsOfOtherTexts,
  ];
}

/**
 * Joins successive words into one segment if all of them or none of them are marked as different. A space between two
 * marked words counts as marked.
 */
function joinIntoSegments(words: readonly string[], isWordDifferent: (index: number) => boolean): ComparedSegment[] {
  const segments: ComparedSegment[] = [];
  for (const [index, word] of words.entries()) {
    const isDifferent =
      isWordDifferent(index) || (word === ' ' && isWordDifferent(index - 1) && isWordDifferent(index + 1));
    const lastSegment = segments.at(-1);
    if (lastSegment?.isDifferent === isDifferent) lastSegment.text += word;
    else segments.push({ text: word, isDifferent });
  }
  return segments;
}
