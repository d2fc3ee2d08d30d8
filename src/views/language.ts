/**
 * Detects the language of a text and returns its ISO 639-1 code. Returns null if the text is too short or no language
 * stands out.
 */
export type DetectLanguage = (text: string | null) => string | null;

/**
 * Loads the language detector with the n-grams of 60 languages. Loading takes about 0.15 s, so only a process that
 * gathers ads does it.
 */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import('eld/extrasmall');
  return (text) => {
    const words = text === null ? '' : removeNonWords(text);
    if (!hasEnoughLetters(words)) return null;
    const result = eld.detect(words);
    if (result.language === '' || !(result.isReliable() || isNonLatin(result.language))) return null;
    return result.language === 'ms' ? decideIndonesianOrMalay(words) : result.language;
  };
}

/** The most characters that are read. The detector reads 1,000 characters, and URLs and tags are removed before. */
const maxChars = 1500;
/** Matches text without a language: URLs, mail addresses, tags, templates, emoji and digits. */
const nonWordPattern = /https?:\S*|(?<!\S)\S*@\S*|#\S+|www\.\S*|\{\{[^{}]*\}\}|[\p{Extended_Pictographic}\p{Nd}]/gu;

const denseScripts = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}`;
const denseCharacter = new RegExp(`[${denseScripts}]`, 'gu');
const latinLetters = /\p{Script=Latin}+/gu;

/** Matches four characters of a dense script, in which one character says as much as several letters. */
const fourDense = new RegExp(`^(?:[^${denseScripts}]*[${denseScripts}]){4}`, 'u');
const fourteenLetters = /^(?:\P{L}*\p{L}){14}/u;
const hasEnoughLetters = (words: string): boolean => fourteenLetters.test(words) || fourDense.test(words);

function removeNonWords(text: string): string {
  const words = text.slice(0, maxChars).normalize('NFKC').replace(nonWordPattern, ' ');
  return (isMostlyDense(words) ? words.replace(latinLetters, ' ') : words).replace(/\s+/g, ' ').trim();
}

/** Returns whether most letters are of a dense script. Latin letters in such a text are usually brand names. */
function isMostlyDense(words: string): boolean {
  if (!fourDense.test(words)) return false;
  const otherChars = words.replace(denseCharacter, '').length;
  return 4 * (words.length - otherChars) > otherChars;
}

/**
 * Returns whether a language is not written in Latin letters. Foreign names lower the score of such a language, but its
 * script is proof enough.
 */
const isNonLatin = (language: string): boolean => new Intl.Locale(language).maximize().script !== 'Latn';

/** Advertising words that differ between Indonesian and Malay, which the detector cannot distinguish. */
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
  let malay = 0;
  for (const word of text.toLowerCase().split(/[^a-z]+/))
    malay += Number(malayWords.has(word)) - Number(indonesianWords.has(word));
  return malay > 0 ? 'ms' : 'id';
}
