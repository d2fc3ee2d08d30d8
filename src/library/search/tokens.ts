/**
 * Splits text into tokens, in the same way for stored text and for queries.
 *
 * In scripts that separate words by spaces, each word is a token. In other scripts (Han, Kana, Thai …), each pair of
 * neighbouring characters is a token, so a query of two or more characters is a phrase of pairs. Hangul is split into
 * pairs too, because Korean words have endings. The last character of a run is also a token by itself, so every single
 * character begins some token.
 */

const invisible = /\p{Cf}/gu;
/** The accents of Latin, Greek and Cyrillic and the vowel points of Arabic and Hebrew. Vowel signs of Indic scripts stay. */
const optionalMarks = /[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640]/g;
/** Letters that are replaced by another spelling of the same sound or word. */
const unified: Record<string, string> = { ß: 'ss', ς: 'σ', ı: 'i', ى: 'ي', ة: 'ه', ٱ: 'ا' };
const unifiable = /[ßςıىةٱ]/g;
const wordPattern = /[\p{L}\p{M}\p{N}]+/gu;
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const unspacedRun = new RegExp(`(${unspaced.source}+)`, 'u');

/**
 * More stacked marks than Unicode's stream-safe text format allows, and so more than any language has. Normalizing takes
 * quadratic time in the number of stacked marks, so the surplus is removed first.
 */
const stackedMarks = /(\p{M}{30})\p{M}+/gu;
/** Text in ASCII. Folding such text only means lower case. */
const asciiText = /^[\0-\x7f]*$/;

/** A part of a text in one script. `isPaired` is true for scripts that are split into pairs of characters. */
type Run = { text: string; isPaired: boolean };

/** Removes differences of case, accents and spelling that a search ignores. */
function foldText(text: string): string {
  if (asciiText.test(text)) return text.toLowerCase();
  return text
    .replace(stackedMarks, '$1')
    .normalize('NFKD')
    .replace(invisible, '')
    .toLowerCase()
    .replace(optionalMarks, '')
    .normalize('NFC')
    .replace(unifiable, (letter) => unified[letter] ?? letter);
}

function splitIntoRuns(text: string): Run[] {
  return (foldText(text).match(wordPattern) ?? []).flatMap((word) => {
    if (!unspaced.test(word)) return { text: word, isPaired: false };
    return word
      .split(unspacedRun)
      .filter(Boolean)
      .map((run) => ({ text: run, isPaired: unspaced.test(run) }));
  });
}

function splitIntoTokens({ text, isPaired }: Run): string[] {
  if (!isPaired) return [text];
  const characters = [...text];
  return characters.map((character, index) => character + (characters[index + 1] ?? ''));
}

/** Returns the tokens of texts, separated by spaces, as the full-text index stores them. */
export function tokenize(texts: Iterable<string | null | undefined>): string {
  const tokens: string[] = [];
  for (const text of texts) {
    if (text) for (const run of splitIntoRuns(text)) for (const token of splitIntoTokens(run)) tokens.push(token);
  }
  return tokens.join(' ');
}

/** The length from which a word also matches longer words. A shorter word as a prefix would match too much. */
const minPrefixLength = 3;

/**
 * Returns text as one phrase in the query language of the full-text index, or undefined if the text has no letter or
 * digit.
 *
 * @param isExact True if the last word must match a whole word.
 */
function formatPhrase(text: string, isExact: boolean): string | undefined {
  const runs = splitIntoRuns(text);
  const tokens = runs.flatMap(splitIntoTokens);
  const lastRun = runs.at(-1);
  if (!lastRun) return undefined;
  const isSingleCharacter = [...lastRun.text].length === 1;
  // The index has the last character of a run as a token only if the stored run ends there. The query must also match
  // longer runs, so it leaves this token out.
  if (lastRun.isPaired && !isSingleCharacter) tokens.pop();
  const isPrefix = lastRun.isPaired ? isSingleCharacter : !isExact && [...lastRun.text].length >= minPrefixLength;
  return `"${tokens.join(' ')}"${isPrefix ? ' *' : ''}`;
}

/**
 * Parses a search text into phrases that must occur and phrases that must not occur. Each word matches the beginning of a
 * word, `"…"` is an exact phrase, and a leading `-` excludes a word or a phrase.
 */
export function parseQuery(query: string) {
  const phrases: Record<'required' | 'excluded', string[]> = { required: [], excluded: [] };
  for (const [, minus, quotedText, word] of query.matchAll(/(?<![^\s])(-?)(?:"([^"]*)"|([^\s]+))/g)) {
    const list = minus ? phrases.excluded : phrases.required;
    if (quotedText !== undefined) list.push(formatPhrase(quotedText, true) ?? '');
    else for (const { text } of splitIntoRuns(word ?? '')) list.push(formatPhrase(text, false) ?? '');
  }
  return { required: phrases.required.filter(Boolean), excluded: phrases.excluded.filter(Boolean) };
}
