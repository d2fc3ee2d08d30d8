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
const maxChars = 1500;
const noWords = /https?:\S*|(?<!\S)\S*@\S*|#\S+|www\.\S*|\{\{[^{}]*\}\}|[\p{Extended_Pictographic}\p{Nd}]/gu;

const denseScripts = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}`;
const dense = new RegExp(`[${denseScripts}]`, 'gu');
const latin = /\p{Script=Latin}+/gu;

/** Four characters of a script that says as much with one as others do with four letters. */
const fourDense = new RegExp(`^(?:[^${denseScripts}]*[${denseScripts}]){4}`, 'u');
const fourteenLetters = /^(?:\P{L}*\p{L}){14}/u;
const saysEnough = (words: string): boolean => fourteenLetters.test(words) || fourDense.test(words);

function plainWords(text: string): string {
  const words = text.slice(0, maxChars).normalize('NFKC').replace(noWords, ' ');
  return (isMostlyDense(words) ? words.replace(latin, ' ') : words).replace(/\s+/g, ' ').trim();
}

/** Whether most letters are of a dense script: then Latin letters among them spell brand names. */
function isMostlyDense(words: string): boolean {
  if (!fourDense.test(words)) return false;
  const others = words.replace(dense, '').length;
  return 4 * (words.length - others) > others;
}

/** Foreign names lower the score of a language, but a script of its own says enough. */
const hasOwnScript = (language: string): boolean => new Intl.Locale(language).maximize().script !== 'Latn';

/** The detector cannot tell Indonesian from Malay. These words of advertising differ between them. */
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

function indonesianOrMalay(text: string): 'id' | 'ms' {
  let malay = 0;
  for (const word of text.toLowerCase().split(/[^a-z]+/))
    malay += Number(malayWords.has(word)) - Number(indonesianWords.has(word));
  return malay > 0 ? 'ms' : 'id';
}
