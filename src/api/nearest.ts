/**
 * Words, the most similar to `word` first. If one word contains the other, each further letter counts a third of a
 * slip.
 */
export function nearestFirst(word: string, words: readonly string[]): string[] {
  const distances = new Map(words.map((other) => [other, distance(word, other)]));
  return [...distances.keys()].sort((left, right) => (distances.get(left) ?? 0) - (distances.get(right) ?? 0));
}

function distance(from: string, to: string): number {
  const [left, right] = [from.toLowerCase(), to.toLowerCase()];
  const contained = left !== '' && right !== '' && (left.includes(right) || right.includes(left));
  const edits = editDistance(left.slice(0, maxCompared), right.slice(0, maxCompared));
  return contained ? edits / 3 : edits;
}

/** The time is quadratic. */
const maxCompared = 60;

/** Whether a word is so similar that the writer may have meant it. */
export const isNear = (word: string, other: string): boolean =>
  distance(word, other) <= Math.max(word.length, other.length) / 2;

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
