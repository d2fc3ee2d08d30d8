/**
 * Splits text into tokens, in the same way for stored text and for queries.
 *
 * Scripts with spaces between words give words. Other scripts (Han, Kana, Thai …), and Hangul, whose words have endings,
 * give every pair of neighbouring characters, so that any two or more are found as a phrase of pairs. The last character
 * of a run is also a token by itself, so that every single character begins some token.
 */

const invisible = /\p{Cf}/gu;
/** Accents of Latin, Greek and Cyrillic, and vowel points of Arabic and Hebrew, but no vowel signs of Indic scripts. */
const optionalMarks = /[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640]/g;
const unified: Record<string, string> = { ß: 'ss', ς: 'σ', ı: 'i', ى: 'ي', ة: 'ه', ٱ: 'ا' };
const unifiable = /[ßςıىةٱ]/g;
const wordPattern = /[\p{L}\p{M}\p{N}]+/gu;
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const unspacedRun = new RegExp(`(${unspaced.source}+)`, 'u');

/** Normalizing takes quadratic time in stacked marks; no language has more than Unicode's stream-safe format allows. */
const stackedMarks = /(\p{M}{30})\p{M}+/gu;
/** ASCII only needs lower case. */
const plain = /^[\0-\x7f]*$/;

type Run = { text: string; pairs: boolean };

function fold(text: string): string {
  if (plain.test(text)) return text.toLowerCase();
  return text
    .replace(stackedMarks, '$1')
    .normalize('NFKD')
    .replace(invisible, '')
    .toLowerCase()
    .replace(optionalMarks, '')
    .normalize('NFC')
    .replace(unifiable, (letter) => unified[letter] ?? letter);
}

function runsOf(text: string): Run[] {
  return (fold(text).match(wordPattern) ?? []).flatMap((word) => {
    if (!unspaced.test(word)) return { text: word, pairs: false };
    return word
      .split(unspacedRun)
      .filter(Boolean)
      .map((part) => ({ text: part, pairs: unspaced.test(part) }));
  });
}

function tokensOf({ text, pairs }: Run): string[] {
  if (!pairs) return [text];
  const letters = [...text];
  return letters.map((letter, at) => letter + (letters[at + 1] ?? ''));
}

/** The tokens of texts, separated by spaces, as the full-text index stores them. */
export function tokenize(texts: Iterable<string | null | undefined>): string {
  const tokens: string[] = [];
  for (const text of texts) {
    if (text) for (const run of runsOf(text)) for (const token of tokensOf(run)) tokens.push(token);
  }
  return tokens.join(' ');
}

/** Shorter words must match whole words: as prefixes they would match too much. */
const minPrefixLength = 3;

/** Text as one phrase of the full-text query language, or undefined if it has no letter or digit. */
function phrase(text: string, exact: boolean): string | undefined {
  const all = runsOf(text);
  const tokens = all.flatMap(tokensOf);
  const last = all.at(-1);
  if (!last) return undefined;
  const lone = [...last.text].length === 1;
  // The single character at the end of a run is only in the index if the stored run ends there too.
  if (last.pairs && !lone) tokens.pop();
  const prefix = last.pairs ? lone : !exact && [...last.text].length >= minPrefixLength;
  return `"${tokens.join(' ')}"${prefix ? ' *' : ''}`;
}

/**
 * Parses a search text: every word must occur (as the beginning of a word), `"…"` is an exact phrase, and a leading `-`
 * excludes a word or phrase.
 */
export function parseQuery(query: string) {
  const found: Record<'all' | 'none', string[]> = { all: [], none: [] };
  for (const [, minus, quoted, plain] of query.matchAll(/(?<![^\s])(-?)(?:"([^"]*)"|([^\s]+))/g)) {
    const side = minus ? found.none : found.all;
    if (quoted !== undefined) side.push(phrase(quoted, true) ?? '');
    else for (const { text } of runsOf(plain ?? '')) side.push(phrase(text, false) ?? '');
  }
  return { all: found.all.filter(Boolean), none: found.none.filter(Boolean) };
}
