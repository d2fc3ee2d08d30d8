/**
 * Detects the language of a text and returns its ISO 639-1 code. Returns null if the text is too short or if the
 * detection is unreliable.
 */
export type DetectLanguage = (text: string | null) => string | null;

/**
 * Loads the language detector, which contains the n-grams of 60 languages. Loading takes about 0.15 s, so only
 * processes that store ads load the detector.
 */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import('eld/extrasmall');
  return (text) => {
    const words = text === null ? '' : removeNonWords(text);
    if (!hasEnoughLetters(words)) return null;
    const result = eld.detect(words);
    if (result.language === '' || !(result.isReliable() || hasNonLatinScript(result.language))) return null;
    return result.language === 'ms' ? decideIndonesianOrMalay(words) : result.language;
  };
}

/**
 * The maximum number of characters to read from a text. The detector uses only 1,000 characters, but parts of the text,
 * such as URLs and hashtags, are removed first.
 */
const maxReadChars = 1500;
/**
 * Matches parts of a text that do not belong to any language: URLs, email addresses, hashtags, placeholders, emoji and
 * digits.
 */
const nonWordPattern = /https?:\S*|(?<!\S)\S*@\S*|#\S+|www\.\S*|\{\{[^{}]*\}\}|[\p{Extended_Pictographic}\p{Nd}]/gu;

const cjkScriptClasses = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}`;
const cjkCharacterPattern = new RegExp(`[${cjkScriptClasses}]`, 'gu');
const latinLetters = /\p{Script=Latin}+/gu;

/**
 * Matches a text with at least four Chinese, Japanese or Korean characters. Each of these characters carries as much
 * information as several letters, so four characters are enough to detect the language.
 */
const fourCjkCharactersPattern = new RegExp(`^(?:[^${cjkScriptClasses}]*[${cjkScriptClasses}]){4}`, 'u');
const fourteenLettersPattern = /^(?:\P{L}*\p{L}){14}/u;
const hasEnoughLetters = (words: string): boolean =>
  fourteenLettersPattern.test(words) || fourCjkCharactersPattern.test(words);

function removeNonWords(text: string): string {
  const words = text.slice(0, maxReadChars).normalize('NFKC').replace(nonWordPattern, ' ');
  return (isMostlyCjk(words) ? words.replace(latinLetters, ' ') : words).replace(/\s+/g, ' ').trim();
}

/**
 * Returns true if most of a text is Chinese, Japanese or Korean. Latin words in such a text are usually brand names, so
 * the detection ignores them.
 */
function isMostlyCjk(words: string): boolean {
  if (!fourCjkCharactersPattern.test(words)) return false;
  const otherChars = words.replace(cjkCharacterPattern, '').length;
  return 4 * (words.length - otherChars) > otherChars;
}

/**
 * Returns true if the language is not written in the Latin script. Brand names in Latin letters make the detector less
 * confident about such a language, but the script alone is sufficient evidence.
 */
const hasNonLatinScript = (languageCode: string): boolean => new Intl.Locale(languageCode).maximize().script !== 'Latn';

/**
 * Words that are common in Indonesian ads but not in Malay ads. This list is needed because the detector cannot
 * distinguish the two languages.
 */
const indonesianWords = new Set(
  'bisa gratis kamu karena uang mobil diskon ongkir kirim pengiriman dikirim yuk banget nggak hanya saja sepatu inggris sangat kualitas harga hari coba beli rp kalian'.split(
    ' ',
  ),
);
const malayWords = new Set(
  'boleh percuma awak kerana wang kereta diskaun penghantaran dihantar jom sahaja kasut inggeris cuba kualiti rm anda hanya tawaran'.split(
    ' ',
  ),
);

function decideIndonesianOrMalay(text: string): 'id' | 'ms' {
  let malayScore = 0;
  for (const word of text.toLowerCase().split(/[^a-z]+/))
    malayScore += Number(malayWords.has(word)) - Number(indonesianWords.has(word));
  return malayScore > 0 ? 'ms' : 'id';
}
