/**
 * How text becomes words, the same for what is kept and for what is asked.
 *
 * Scripts that put spaces between words give words. The others (Han, Kana, Thai …), and Hangul, whose words carry
 * endings, give every pair of neighbouring characters, so that any piece of two or more is found as a phrase of pairs;
 * the last character of a run stands alone too, so that every single one begins some token.
 */

const invisible = /\p{Cf}/gu;
/** Accents of Latin, Greek and Cyrillic, vowel points of Arabic and Hebrew; not the vowel signs of Indic scripts. */
const optionalMarks = /[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640]/g;
const unified: Record<string, string> = { ß: 'ss', ς: 'σ', ı: 'i', ى: 'ي', ة: 'ه', ٱ: 'ا' };
const unifiable = /[ßςıىةٱ]/g;
const run = /[\p{L}\p{M}\p{N}]+/gu;
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const unspacedRun = new RegExp(`(${unspaced.source}+)`, 'u');

/** No language stacks more marks than Unicode's stream-safe format allows; to put them in order takes quadratic time. */
const stackedMarks = /(\p{M}{30})\p{M}+/gu;
/** ASCII, which needs no folding but of case. */
const plain = /^[\0-\x7f]*$/;

type Piece = { text: string; pairs: boolean };

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

function pieces(text: string): Piece[] {
  return (fold(text).match(run) ?? []).flatMap((word) => {
    if (!unspaced.test(word)) return { text: word, pairs: false };
    return word
      .split(unspacedRun)
      .filter(Boolean)
      .map((piece) => ({ text: piece, pairs: unspaced.test(piece) }));
  });
}

function tokensOf({ text, pairs }: Piece): string[] {
  if (!pairs) return [text];
  const letters = [...text];
  return letters.map((letter, at) => letter + (letters[at + 1] ?? ''));
}

/** The tokens of a text, separated by spaces, as the full-text index keeps them. */
export function indexText(texts: Iterable<string | null | undefined>): string {
  const tokens: string[] = [];
  for (const text of texts) {
    if (text) for (const piece of pieces(text)) for (const token of tokensOf(piece)) tokens.push(token);
  }
  return tokens.join(' ');
}

/** Words this short match whole words only: as beginnings they would match half the library. */
const shortestPrefix = 3;

/** A run of text as one phrase of the full-text query language, or undefined when it holds no letter or digit. */
function phrase(text: string, exact: boolean): string | undefined {
  const all = pieces(text);
  const tokens = all.flatMap(tokensOf);
  const last = all.at(-1);
  if (!last) return undefined;
  const lone = [...last.text].length === 1;
  // The single character that ends a run is a token of the index only where the text's run ends there too.
  if (last.pairs && !lone) tokens.pop();
  const prefix = last.pairs ? lone : !exact && [...last.text].length >= shortestPrefix;
  return `"${tokens.join(' ')}"${prefix ? ' *' : ''}`;
}

export type WordQuery = { all: string[]; none: string[] };

/**
 * Reads what a person types: every word must occur (as the beginning of a word), `"…"` stands for the exact phrase, a
 * leading `-` for what must not occur.
 */
export function readQuery(query: string): WordQuery {
  const found: WordQuery = { all: [], none: [] };
  for (const [, minus, quoted, plain] of query.matchAll(/(?<![^\s])(-?)(?:"([^"]*)"|([^\s]+))/g)) {
    const side = minus ? found.none : found.all;
    if (quoted !== undefined) side.push(phrase(quoted, true) ?? '');
    else for (const { text } of pieces(plain ?? '')) side.push(phrase(text, false) ?? '');
  }
  return { all: found.all.filter(Boolean), none: found.none.filter(Boolean) };
}
