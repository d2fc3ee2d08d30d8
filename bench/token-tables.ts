/**
 * Prints the tables `pairs`, `han` and `hangul` of `src/views/token-tables.json`, which the server uses to estimate
 * token counts. They are computed from the vocabulary of the tokenizer o200k_base. If the reference tokenizer changes,
 * run this script again: `npx tsx bench/token-tables.ts`.
 */
import { decode, encode } from 'gpt-tokenizer/encoding/o200k_base';

const vocabularySize = 199_998;
/**
 * The share of all letter pairs in the words of a script that the common pairs make up. The most frequent pairs count
 * as common until they reach this share together. Each block of 128 Unicode characters is treated as one script.
 */
const commonPairShare = 0.88;

/**
 * Lists the characters in a range that are single tokens, encoded as distances between these characters. Each distance
 * is a printable character: `(` means 1, `)` means 2, and so on. The character `~` adds 86 to the next distance.
 */
function encodeTokenDistances(firstCode: number, lastCode: number): string {
  let encodedDistances = '';
  let lastTokenCode = firstCode - 1;
  for (let code = firstCode; code <= lastCode; code++) {
    if (encode(String.fromCharCode(code)).length !== 1) continue;
    let gap = code - lastTokenCode - 1;
    for (; gap >= 86; gap -= 86) encodedDistances += '~';
    encodedDistances += String.fromCharCode(40 + gap);
    lastTokenCode = code;
  }
  return encodedDistances;
}

/**
 * Returns the most common letter pairs in the words of the vocabulary, by script. Each entry begins with a first
 * letter, followed by all second letters that form a common pair with it.
 */
function listCommonPairs(): string {
  const pairCountsByScript = new Map<number, Map<string, number>>();
  for (let token = 0; token < vocabularySize; token++) {
    const word = /^ ?(\p{L}[\p{L}\p{M}]+)$/u.exec(decode([token]))?.[1]?.toLowerCase() ?? '';
    for (let index = 0; index + 1 < word.length; index++) {
      const pair = word.slice(index, index + 2);
      if (/[\u3400-\uffff]/.test(pair)) continue;
      const script = Math.max(pair.charCodeAt(0), pair.charCodeAt(1)) >> 7;
      const counts = pairCountsByScript.get(script) ?? new Map<string, number>();
      pairCountsByScript.set(script, counts.set(pair, (counts.get(pair) ?? 0) + 1));
    }
  }
  const secondLetters = new Map<string, string>();
  for (const counts of pairCountsByScript.values()) {
    let remainingCount = commonPairShare * [...counts.values()].reduce((sum, count) => sum + count, 0);
    for (const [pair, count] of [...counts].sort((a, b) => b[1] - a[1])) {
      if (remainingCount > 0)
        secondLetters.set(pair.charAt(0), `${secondLetters.get(pair.charAt(0)) ?? ''}${pair.charAt(1)}`);
      remainingCount -= count;
    }
  }
  return [...secondLetters]
    .map((letters) => letters.join(''))
    .sort()
    .join(' ');
}

const tables = {
  pairs: listCommonPairs(),
  han: encodeTokenDistances(0x4e00, 0x9fff),
  hangul: encodeTokenDistances(0xac00, 0xd7a3),
};
process.stdout.write(`${JSON.stringify(tables, null, 2)}\n`);
