import { diffArrays } from 'diff';

/** A piece of a text. */
export interface TextPart {
  text: string;
  /** True if a compared text lacks these words. */
  isDifferent: boolean;
}

/** The most time for one comparison. Texts that take longer to compare have little in common. */
const timeoutMs = 150;

/** Splits words in any script. In some scripts, such as Chinese, words are not separated by spaces. */
const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
const splitWords = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment);

/** If texts share less than this part of their words, nothing is marked, because almost everything would be. */
const minCommonShare = 0.3;

const countCharacters = (words: readonly string[]) => words.reduce((length, word) => length + word.trim().length, 0);

/**
 * Compares the first text with each of the others and returns every text in parts. In the first text, words that at least
 * one other text lacks are marked as different. In the other texts, words that the first text lacks are marked.
 */
export function markDifferences(texts: readonly string[]): TextPart[][] {
  const [firstWords = [], ...otherTexts] = texts.map(splitWords);
  const isDifferentInFirst = firstWords.map(() => false);
  const otherParts = otherTexts.map((words) => {
    const changes = diffArrays(firstWords, words, { timeout: timeoutMs }) ?? [];
    const commonWords = changes.flatMap(({ value, added, removed }) => (added || removed ? [] : value));
    const longerLength = Math.max(countCharacters(firstWords), countCharacters(words));
    if (countCharacters(commonWords) < minCommonShare * longerLength) return joinWords(words, () => false);
    const isDifferentHere: boolean[] = [];
    let index = 0;
    for (const { count, added, removed } of changes) {
      if (removed) isDifferentInFirst.fill(true, index, index + count);
      else isDifferentHere.push(...Array<boolean>(count).fill(added));
      if (!added) index += count;
    }
    return joinWords(words, (index) => isDifferentHere[index] === true);
  });
  return [joinWords(firstWords, (index) => isDifferentInFirst[index] === true), ...otherParts];
}

/** Joins successive words of the same kind into one part. A space between two different words is also different. */
function joinWords(words: readonly string[], isDifferentAt: (index: number) => boolean): TextPart[] {
  const parts: TextPart[] = [];
  for (const [index, text] of words.entries()) {
    const isDifferent = isDifferentAt(index) || (text === ' ' && isDifferentAt(index - 1) && isDifferentAt(index + 1));
    const lastPart = parts.at(-1);
    if (lastPart?.isDifferent === isDifferent) lastPart.text += text;
    else parts.push({ text, isDifferent });
  }
  return parts;
}
