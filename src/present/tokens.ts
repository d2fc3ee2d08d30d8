/**
 * How many tokens a text will cost a model, without a tokenizer: an upper bound in practice, measured against
 * o200k_base. Walks the text once and adds up what each kind of run costs.
 */
export const estimateTokens = (text: string): number => Math.ceil(scan(text, Number.POSITIVE_INFINITY).tokens);

/** The length of the longest start of `text` that stays within `tokens`. */
export const lengthWithin = (text: string, tokens: number): number => scan(text, tokens).end;

function scan(text: string, limit: number): { tokens: number; end: number } {
  let tokens = 0;
  let i = 0;
  while (i < text.length) {
    const start = i;
    const code = text.charCodeAt(i++);
    let cost: number;
    if (code >= 128) {
      const point = text.codePointAt(start) ?? code;
      if (point > 0xffff) i++;
      cost = weightOf(point);
    } else if (isLetter(code)) {
      while (i < text.length && i - start < MAX_RUN && isLetter(text.charCodeAt(i))) i++;
      cost = wordCost(text, start, i);
    } else if (isDigit(code)) {
      while (i < text.length && i - start < 3 && isDigit(text.charCodeAt(i))) i++;
      cost = 1;
    } else if (code === SPACE) {
      cost = text.charCodeAt(i) === SPACE || isDigit(text.charCodeAt(i)) ? 1 : 0;
    } else cost = 1;
    if (tokens + cost > limit) return { tokens, end: start };
    tokens += cost;
  }
  return { tokens, end: i };
}

const SPACE = 32;
const MAX_RUN = 24;
const isLetter = (code: number) => (code | 32) >= 97 && (code | 32) <= 122;
const isDigit = (code: number) => code >= 48 && code <= 57;

function wordCost(text: string, start: number, end: number): number {
  const length = end - start;
  let changes = 0;
  for (let i = start + 1; i < end; i++) {
    if (text.charCodeAt(i) < 97 && text.charCodeAt(i - 1) >= 97) changes++;
  }
  return 1 + Math.max(0, length - 4) / 4 + changes;
}

function weightOf(point: number): number {
  for (const [end, weight] of WEIGHTS) if (point < end) return weight;
  return 4;
}

/** Up to which code point a character costs how many tokens. */
const WEIGHTS: [end: number, weight: number][] = [
  [0x100, 1],
  [0x180, 1.4],
  [0x370, 2],
  [0x450, 0.9],
  [0x530, 1.8],
  [0x650, 1],
  [0x900, 2],
  [0xe80, 1.5],
  [0x1000, 2],
  [0x1e00, 3],
  [0x1f00, 1.3],
  [0x2000, 2.2],
  [0x2800, 2],
  [0x3000, 3],
  [0x3100, 1.2],
  [0x3400, 2],
  [0x4e00, 3],
  [0xa000, 1.1],
  [0xac00, 3],
  [0xd7b0, 1],
  [0xff00, 3],
  [0x10000, 2],
];
