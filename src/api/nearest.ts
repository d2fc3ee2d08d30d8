/** Returns `words` sorted by their similarity to `word`, with the most similar word first. */
export function sortBySimilarity(word: string, words: readonly string[]): string[] {
  const distances = new Map(words.map((otherWord) => [otherWord, computeDistance(word, otherWord)]));
  return [...distances.keys()].sort((left, right) => (distances.get(left) ?? 0) - (distances.get(right) ?? 0));
}

/**
 * Returns the edit distance of two words, ignoring case. Divides the distance by three if one word contains the other,
 * because users omit part of a word more often than they mistype several letters. Does not divide the distance if the
 * shorter word is less than a third of the longer one, e.g. `id` in `Stridemoor`.
 */
function computeDistance(word: string, otherWord: string): number {
  const [left, right] = [word.toLowerCase(), otherWord.toLowerCase()];
  const [shorter = '', longer = ''] = [left, right].sort((first, second) => first.length - second.length);
  const isContained = longer.includes(shorter) && 3 * shorter.length >= longer.length;
  const editDistance = computeEditDistance(left.slice(0, maxComparedLength), right.slice(0, maxComparedLength));
  return isContained ? editDistance / 3 : editDistance;
}

/**
 * The maximum number of characters that are compared. The time for a comparison grows with the square of this number.
 */
const maxComparedLength = 60;

/**
 * Returns true if one word may be a typo of the other: at most a third of the letters differ, or one word contains
 * the other.
 */
export const isSimilar = (word: string, otherWord: string): boolean =>
  computeDistance(word, otherWord) <= Math.ceil(Math.max(word.length, otherWord.length) / 3);

/**
 * Returns the Levenshtein distance of two words: the number of letters to insert, delete or replace to turn one word
 * into the other. For example, the distance between `meta` and `beta` is 1.
 */
function computeEditDistance(sourceWord: string, targetWord: string): number {
  let previousRow = Array.from({ length: targetWord.length + 1 }, (_, index) => index);
  for (const [rowIndex, letter] of [...sourceWord].entries()) {
    const currentRow = [rowIndex + 1];
    for (let index = 0; index < targetWord.length; index++) {
      const replacementCost = (previousRow[index] ?? 0) + (letter === targetWord[index] ? 0 : 1);
      currentRow.push(Math.min(replacementCost, (previousRow[index + 1] ?? 0) + 1, (currentRow[index] ?? 0) + 1));
    }
    previousRow = currentRow;
  }
  return previousRow[targetWord.length] ?? 0;
}
