/** Returns the words sorted by their similarity to `word`, the most similar word first. */
export function nearestFirst(word: string, words: readonly string[]): string[] {
  const distances = new Map(words.map((other) => [other, distance(word, other)]));
  return [...distances.keys()].sort((left, right) => (distances.get(left) ?? 0) - (distances.get(right) ?? 0));
}

/**
 * Returns the edit distance of two words, without regard to case. If one word contains the other, the distance is divided
 * by three: a missing part is more likely than several wrong letters.
 */
function distance(from: string, to: string): number {
  const [left, right] = [from.toLowerCase(), to.toLowerCase()];
  const isContained = left !== '' && right !== '' && (left.includes(right) || right.includes(left));
  const edits = editDistance(left.slice(0, maxComparedLength), right.slice(0, maxComparedLength));
  return isContained ? edits / 3 : edits;
}

/** The most characters that are compared. The comparison takes quadratic time. */
const maxComparedLength = 60;

/** Returns whether two words are so similar that one may be a typing error for the other. */
export const isNear = (word: string, other: string): boolean =>
  distance(word, other) <= Math.max(word.length, other.length) / 2;

/** Returns the Levenshtein distance: the number of letters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (let at = 0; at < to.length; at++) {
      const swap = (previous[at] ?? 0) + (letter === to[at] ? 0 : 1);
      current.push(Math.min(swap, (previous[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
