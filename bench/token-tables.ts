/**
 * Prints the tables of `src/present/token-tables.json`, read off the vocabulary of o200k_base. Run it again when the
 * reference tokenizer changes: npx tsx bench/token-tables.ts
 */
import { decode, encode } from 'gpt-tokenizer/encoding/o200k_base';

const vocabulary = 199_998;
const maxPairs = 300;

/** Each distance to the next character that is one token, as one printable character from `(` on (`~` carries 86 on). */
function gaps(from: number, to: number): string {
  let result = '';
  let last = from - 1;
  for (let code = from; code <= to; code++) {
    if (encode(String.fromCharCode(code)).length !== 1) continue;
    let gap = code - last - 1;
    for (; gap >= 86; gap -= 86) result += '~';
    result += String.fromCharCode(40 + gap);
    last = code;
  }
  return result;
}

/** For each first letter, the second letters it forms one of the commonest pairs of the vocabulary's words with. */
function pairs(): string {
  const counts = new Map<string, number>();
  for (let token = 0; token < vocabulary; token++) {
    const word = /^ ?[A-Z]?([a-z]{2,})$/.exec(decode([token]))?.[1] ?? '';
    for (let i = 0; i + 1 < word.length; i++) {
      const pair = word.slice(i, i + 2);
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
  }
  const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, maxPairs);
  const seconds = new Map<string, string[]>();
  for (const [pair] of common) seconds.set(pair[0] ?? '', [...(seconds.get(pair[0] ?? '') ?? []), pair[1] ?? '']);
  return 'abcdefghijklmnopqrstuvwxyz'
    .replace(/./g, (letter) => `${(seconds.get(letter) ?? []).sort().join('')} `)
    .trimEnd();
}

const tables = { commonPairs: pairs(), han: gaps(0x4e00, 0x9fff), hangul: gaps(0xac00, 0xd7a3) };
process.stdout.write(`${JSON.stringify(tables, null, 2)}\n`);
