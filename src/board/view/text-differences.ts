import { diffArrays } from 'diff';

/**
 * A sequence of words from a text that is compared with other texts. Either all of these words are marked as different,
 * or none of them.
 */
export interface TextPart {
  text: string;
  /** True if these words are missing from another text. */
  isDifferent: boolean;
}

/**
 * The time limit for one comparison, in milliseconds. Texts that take longer have so little in common that marking
 * their differences would not help.
 */
const comparisonTimeoutMs = 150;

/** Splits text into words in any script, including scripts without spaces such as Chinese. */
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
 * Compares the first text with each of the others, and splits every text into parts. In the first text, marks words
 * that are missing from at least one other text. In the other texts, marks words that are missing from the first text.
 */
export function markDifferences(texts: readonly string[]): TextPart[][] {
  const [firstWords = [], ...otherTexts] = texts.map(splitWords);
  const areFirstWordsDifferent = firstWords.map(() => false);
  const otherParts = otherTexts.map((words) => {
    const changes = diffArrays(firstWords, words, { timeout: comparisonTimeoutMs }) ?? [];
    const commonWords = changes.flatMap(({ value, added, removed }) => (added || removed ? [] : value));
    const longerLength = Math.max(countCharacters(firstWords), countCharacters(words));
    if (countCharacters(commonWords) < minCommonShare * longerLength) return joinWords(words, () => false);
    const areWordsDifferent: boolean[] = [];
    let firstIndex = 0;
    for (const { count, added, removed } of changes) {
      if (removed) areFirstWordsDifferent.fill(true, firstIndex, firstIndex + count);
      else areWordsDifferent.push(...Array<boolean>(count).fill(added));
      if (!added) firstIndex += count;
    }
    return joinWords(words, (index) => areWordsDifferent[index] === true);
  });
  return [joinWords(firstWords, (index) => areFirstWordsDifferent[index] === true), ...otherParts];
}

/**
 * Joins successive words into one part if all of them or none of them are marked as different. A space between two
 * marked words counts as marked.
 */
function joinWords(words: readonly string[], isWordDifferent: (index: number) => boolean): TextPart[] {
  const parts: TextPart[] = [];
  for (const [index, word] of words.entries()) {
    const isDifferent =
      isWordDifferent(index) || (word === ' ' && isWordDifferent(index - 1) && isWordDifferent(index + 1));
    const lastPart = parts.at(-1);
    if (lastPart?.isDifferent === isDifferent) lastPart.text += word;
    else parts.push({ text: word, isDifferent });
  }
  return parts;
}
