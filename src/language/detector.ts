/** The ISO 639-1 code of a text; null where there is too little of it, or no language stands out. */
export type DetectLanguage = (text: string | null) => string | null;

/** Loads the n-grams of 60 languages (about 0.15 s), which only a process that gathers ads needs. */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import('eld/extrasmall');
  return (text) => {
    const words = text === null ? '' : plainWords(text);
    if (!saysEnough(words)) return null;
    const result = eld.detect(words);
    if (result.language === '' || !(result.isReliable() || hasOwnScript(result.language))) return null;
    return result.language === 'ms' ? indonesianOrMalay(words) : result.language;
  };
}

/** The detector reads no further than 1,000 characters; addresses and tags go before that. */
const MAX_CHARS = 1500;
const NO_WORDS = /https?:\S*|(?<!\S)\S*@\S*|#\S+|www\.\S*|\{\{[^{}]*\}\}|[\p{Extended_Pictographic}\p{Nd}]/gu;

const DENSE_SCRIPTS = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}`;
const DENSE = new RegExp(`[${DENSE_SCRIPTS}]`, 'gu');
const LATIN = /\p{Script=Latin}+/gu;

/** Four characters of a script that says as much with one as others do with four letters. */
const FOUR_DENSE = new RegExp(`^(?:[^${DENSE_SCRIPTS}]*[${DENSE_SCRIPTS}]){4}`, 'u');
const FOURTEEN_LETTERS = /^(?:\P{L}*\p{L}){14}/u;
const saysEnough = (words: string): boolean => FOURTEEN_LETTERS.test(words) || FOUR_DENSE.test(words);

function plainWords(text: string): string {
  const words = text.slice(0, MAX_CHARS).normalize('NFKC').replace(NO_WORDS, ' ');
  return (isMostlyDense(words) ? words.replace(LATIN, ' ') : words).replace(/\s+/g, ' ').trim();
}

/** Then Latin letters among them spell brand names. */
function isMostlyDense(words: string): boolean {
  if (!FOUR_DENSE.test(words)) return false;
  const others = words.replace(DENSE, '').length;
  return 4 * (words.length - others) > others;
}

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
