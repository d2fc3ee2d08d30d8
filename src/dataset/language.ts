/** The ISO 639-1 code of a text; null where there is too little of it, or no language stands out. */
export type DetectLanguage = (text: string | null) => string | null;

/** Loads the n-grams of 60 languages (about 0.15 s), which only a process that gathers ads needs. */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import('eld/extrasmall');
  return (text) => {
    const words = text === null ? '' : plainWords(text);
    if (weightOf(words) < MIN_WEIGHT) return null;
    const result = eld.detect(words);
    if (result.language === '' || !(result.isReliable() || hasOwnScript(result.language))) return null;
    return result.language === 'ms' ? indonesianOrMalay(words) : result.language;
  };
}

/** The detector reads no further than 1,000 characters; addresses and tags go before that. */
const MAX_CHARS = 3000;
const NO_WORDS = /https?:\S*|(?<!\S)\S*@\S*|#\S+|www\.\S*|\{\{[^{}]*\}\}|[\p{Extended_Pictographic}\p{Nd}]/gu;

/** Latin letters among Chinese, Japanese or Korean ones spell brand names. */
function plainWords(text: string): string {
  const words = text.slice(0, MAX_CHARS).normalize('NFKC').replace(NO_WORDS, ' ');
  const spoken = 2 * weightOf(words.match(DENSE)?.join('') ?? '') > weightOf(words) ? words.replace(LATIN, ' ') : words;
  return spoken.replace(/\s+/g, ' ').trim();
}

/** A character of these scripts says as much as four letters. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;
const LATIN = /\p{Script=Latin}+/gu;
const LETTER = /\p{L}/gu;
const MIN_WEIGHT = 14;

const weightOf = (text: string): number => (text.match(LETTER)?.length ?? 0) + 3 * (text.match(DENSE)?.length ?? 0);

/** Foreign names lower the score of a language, but a script of its own says enough. */
const hasOwnScript = (language: string): boolean => new Intl.Locale(language).maximize().script !== 'Latn';

/** The detector takes the two for one. These words of advertising differ between them. */
const INDONESIAN = new Set(
  'bisa gratis kamu karena uang mobil diskon ongkir kirim pengiriman dikirim yuk banget nggak hanya saja sepatu inggris sangat kualitas harga hari coba beli rp kalian'.split(
    ' ',
  ),
);
const MALAY = new Set(
  'boleh percuma awak kerana wang kereta diskaun penghantaran dihantar jom sahaja kasut inggeris cuba kualiti rm anda hanya tawaran'.split(
    ' ',
  ),
);

function indonesianOrMalay(text: string): 'id' | 'ms' {
  let malay = 0;
  for (const word of text.toLowerCase().split(/[^a-z]+/))
    malay += Number(MALAY.has(word)) - Number(INDONESIAN.has(word));
  return malay > 0 ? 'ms' : 'id';
}
