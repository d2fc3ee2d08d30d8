/**
 * Prints the tables `pairs`, `han` and `hangul` of `src/views/token-tables.json`, computed from the vocabulary of
 * o200k_base. Run it again if the reference tokenizer changes: `npx tsx bench/token-tables.ts`.
 */
import { decode, encode } from 'gpt-tokenizer/encoding/o200k_base';

const vocabularySize = 199_998;
/** Share of letter pairs in a script that count as common. A script is approximated by a block of 128 characters. */
const commonPairShare = 0.88;

/**
 * Encodes the distances between characters that are single tokens. Each distance is a printable character, starting
 * with `(` for 1; `~` adds 86.
 */
function encodeGaps(firstCode: number, lastCode: number): string {
  let result = '';
  let lastTokenCode = firstCode - 1;
  for (let code = firstCode; code <= lastCode; code++) {
    if (encode(String.fromCharCode(code)).length !== 1) continue;
    let gap = code - lastTokenCode - 1;
    for (; gap >= 86; gap -= 86) result += '~';
    result += String.fromCharCode(40 + gap);
    lastTokenCode = code;
  }
  return result;
}

/**
 * Returns the most common letter pairs in the words of the vocabulary, by script. Each entry is a first letter followed
 * by all of its second letters.
 */
function listCommonPairs(): string {
  const scripts = new Map<number, Map<string, number>>();
  for (let token = 0; token < vocabularySize; token++) {
    const word = /^ ?(\p{L}[\p{L}\p{M}]+)$/u.exec(decode([token]))?.[1]?.toLowerCase() ?? '';
    for (let i = 0; i + 1 < word.length; i++) {
      const pair = word.slice(i, i + 2);
      if (/[\u3400-\uffff]/.test(pair)) continue;
      const script = Math.max(pair.charCodeAt(0), pair.charCodeAt(1)) >> 7;
      const counts = scripts.get(script) ?? new Map<string, number>();
      scripts.set(script, counts.set(pair, (counts.get(pair) ?? 0) + 1));
    }
  }
  const secondLetters = new Map<string, string>();
  for (const counts of scripts.values()) {
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

const tables = { pairs: listCommonPairs(), han: encodeGaps(0x4e00, 0x9fff), hangul: encodeGaps(0xac00, 0xd7a3) };
process.stdout.write(`${JSON.stringify(tables, null, 2)}\n`);
