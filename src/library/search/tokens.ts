/**
 * Splits text into tokens, both for the full-text index and for queries.
 *
 * In scripts that separate words by spaces, each word is a token. In other scripts (Han, Kana, Thai …), each pair of
 * adjacent characters is a token, and a query becomes a phrase of such pairs. Hangul is also split into pairs, because
 * Korean adds endings to words. The last character of a text in such a script is a token of its own. A query of a
 * single character matches the start of tokens, so it finds the character at any position in a text.
 */

const invisibleCharacterPattern = /\p{Cf}/gu;
/**
 * Matches marks that many people omit when they search: Latin, Greek and Cyrillic accents, Arabic and Hebrew vowel
 * points, and variation selectors, e.g. after an emoji. Does not match the vowel signs of Indic scripts, because they
 * distinguish words.
 */
const optionalMarksPattern =
  /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0640\p{Variation_Selector}]/gu;
/**
 * Characters and their replacements in normalized text, e.g. `ss` for `ß`, so that a search finds both spellings. The
 * keycap of an emoji such as `1️⃣` and an apostrophe that counts as a letter become spaces, because they separate
 * words.
 */
const characterReplacements: Record<string, string> = {
  ...{ ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ı: 'i', ς: 'σ' },
  ...{ ى: 'ي', ی: 'ي', ک: 'ك', ة: 'ه', ٱ: 'ا' },
  ...Object.fromEntries([...'٠١٢٣٤٥٦٧٨٩'].map((digit, value) => [digit, String(value)])),
  ...Object.fromEntries([...'۰۱۲۳۴۵۶۷۸۹'].map((digit, value) => [digit, String(value)])),
  ...{ '\u20e3': ' ', ʼ: ' ' },
};
const replaceableCharacterPattern = /[\u20e3ʼßæœøłđıςىیکةٱ٠-٩۰-۹]/g;
const wordPattern = /[\p{L}\p{M}\p{N}]+/gu;
const unspacedScripts =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const unspacedRunPattern = new RegExp(`(${unspacedScripts.source}+)`, 'u');

/**
 * Matches all combining marks after the 30th mark on a character. These marks are removed first, because normalizing
 * them would take quadratic time. No language uses so many marks, and Unicode's stream-safe text format allows only 30.
 */
const excessMarksPattern = /(\p{M}{30})\p{M}+/gu;
/** Matches ASCII text, which only needs to be converted to lower case for a search. */
const asciiPattern = /^[\0-\x7f]*$/;

/**
 * A sequence of characters in one kind of script. `isUnspaced` is true for scripts without spaces between words. Text
 * in these scripts is split into pairs of characters.
 */
type ScriptRun = { text: string; isUnspaced: boolean };

/** Normalizes a text, so that searches ignore differences in case, accents and spelling variants. */
function normalizeText(text: string): string {
  if (asciiPattern.test(text)) return text.toLowerCase();
  return text
    .replace(excessMarksPattern, '$1')
    .normalize('NFKD')
    .replace(invisibleCharacterPattern, '')
    .toLowerCase()
    .replace(optionalMarksPattern, '')
    .normalize('NFC')
    .replace(replaceableCharacterPattern, (character) => characterReplacements[character] ?? character);
}

function splitIntoRuns(text: string): ScriptRun[] {
  return (normalizeText(text).match(wordPattern) ?? []).flatMap((word) => {
    if (!unspacedScripts.test(word)) return { text: word, isUnspaced: false };
    return word
      .split(unspacedRunPattern)
      .filter(Boolean)
      .map((run) => ({ text: run, isUnspaced: unspacedScripts.test(run) }));
  });
}

function splitIntoTokens({ text, isUnspaced }: ScriptRun): string[] {
  if (!isUnspaced) return [text];
  const characters = [...text];
  return characters.map((character, index) => character + (characters[index + 1] ?? ''));
}

/**
 * A token between two texts in the full-text index, so that no phrase matches the end of one text and the beginning of
 * the next. A query never contains this token, because it has no letter or digit.
 */
const textSeparatorToken = '\ue000';

/** Splits texts into tokens for the full-text index, and joins the tokens with spaces. */
export function tokenizeTexts(texts: Iterable<string | null | undefined>): string {
  const tokens: string[] = [];
  for (const text of texts) {
    if (!text) continue;
    if (tokens.length > 0) tokens.push(textSeparatorToken);
    for (const scriptRun of splitIntoRuns(text)) for (const token of splitIntoTokens(scriptRun)) tokens.push(token);
  }
  return tokens.join(' ');
}

/**
 * The minimum length of a query word that also matches the beginning of longer words, in characters. A shorter word
 * would match too many longer words.
 */
const minPrefixLength = 3;

/**
 * Formats a text as a phrase for a query to the full-text index. Returns undefined if the text contains no letter or
 * digit.
 *
 * @param mustMatchWholeWord true if the last word of the phrase must match a whole word, and not only the beginning of
 * a word
 */
function formatPhrase(text: string, mustMatchWholeWord: boolean): string | undefined {
  const scriptRuns = splitIntoRuns(text);
  const tokens = scriptRuns.flatMap(splitIntoTokens);
  const lastScriptRun = scriptRuns.at(-1);
  if (!lastScriptRun) return undefined;
  const isSingleCharacter = [...lastScriptRun.text].length === 1;
  // In scripts without spaces, a single character is a token only at the end of a stored text. Leave this token out of
  // the query, so that the query also matches longer texts.
  if (lastScriptRun.isUnspaced && !isSingleCharacter) tokens.pop();
  const isPrefix = lastScriptRun.isUnspaced
    ? isSingleCharacter
    : !mustMatchWholeWord && [...lastScriptRun.text].length >= minPrefixLength;
  return `"${tokens.join(' ')}"${isPrefix ? ' *' : ''}`;
}

/**
 * Parses a user's search text into required and excluded phrases. An unquoted word also matches the beginning of longer
 * words, `"…"` is an exact phrase, and `-` excludes the word or phrase after it.
 */
export function parseQuery(query: string) {
  const phrases: Record<'required' | 'excluded', string[]> = { required: [], excluded: [] };
  for (const [, minus, quotedText, word] of query.matchAll(/(?<![^\s])(-?)(?:"([^"]*)"|([^\s]+))/g)) {
    const targetPhrases = minus ? phrases.excluded : phrases.required;
    if (quotedText !== undefined) targetPhrases.push(formatPhrase(quotedText, true) ?? '');
    // Exclude a word such as `e-mail` as one phrase. Otherwise, a record with only one part of the word would be
    // excluded.
    else if (minus) targetPhrases.push(formatPhrase(word ?? '', false) ?? '');
    else for (const { text } of splitIntoRuns(word ?? '')) targetPhrases.push(formatPhrase(text, false) ?? '');
  }
  return { required: phrases.required.filter(Boolean), excluded: phrases.excluded.filter(Boolean) };
}
