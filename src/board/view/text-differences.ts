import { diffArrays } from 'diff';

/** A part of a text, and whether another text lacks it. */
export interface Part {
  text: string;
  isDifferent: boolean;
}

/** In milliseconds: texts that take longer to compare have little in common. */
const timeout = 150;

/** Words of any writing, which are not always between spaces. */
const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
const wordsOf = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment);

/** Where texts share a smaller part of their words, marks would say nothing. */
const minCommon = 0.3;

const lengthOf = (words: readonly string[]) => words.reduce((length, word) => length + word.trim().length, 0);

/** Each text in parts: the words of the first that one of the others lacks, and those of the others that the first lacks. */
export function wordsThatDiffer(texts: readonly string[]): Part[][] {
  const [first = [], ...others] = texts.map(wordsOf);
  const lacked = first.map(() => false);
  const marked = others.map((words) => {
    const changes = diffArrays(first, words, { timeout }) ?? [];
    const common = changes.flatMap(({ value, added, removed }) => (added || removed ? [] : value));
    if (lengthOf(common) < minCommon * Math.max(lengthOf(first), lengthOf(words))) return joined(words, () => false);
    const areDifferent: boolean[] = [];
    let at = 0;
    for (const { count, added, removed } of changes) {
      if (removed) lacked.fill(true, at, at + count);
      else areDifferent.push(...Array<boolean>(count).fill(added));
      if (!added) at += count;
    }
    return joined(words, (at) => areDifferent[at] === true);
  });
  return [joined(first, (at) => lacked[at] === true), ...marked];
}

/** Neighbours of one kind as one part, with the spaces between them. */
function joined(words: readonly string[], differs: (at: number) => boolean): Part[] {
  const parts: Part[] = [];
  for (const [at, text] of words.entries()) {
    const isDifferent = differs(at) || (text === ' ' && differs(at - 1) && differs(at + 1));
    const last = parts.at(-1);
    if (last?.isDifferent === isDifferent) last.text += text;
    else parts.push({ text, isDifferent });
  }
  return parts;
}
