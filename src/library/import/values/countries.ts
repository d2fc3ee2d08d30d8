import { createLazyGetter } from '../../../lazy-getter.ts';
import { quoteValue } from '../../service/request.ts';

/** The country code of Namibia. Outside columns of countries and regions, `NA` means a missing value, as in R. */
export const namibiaCode = 'NA';

/**
 * Returns the ISO 3166 code of a country. Accepts a code or a name in one of seven languages. Returns undefined for any
 * other text.
 */
export function findCountryCode(country: string): string | undefined {
  if (/^[a-z]{2}$/i.test(country)) return new Intl.Locale(`und-${country}`).region ?? country.toUpperCase();
  return getCodesByName().get(normalizeName(country));
}

/**
 * Normalizes the name of a country, so that differences in case, accents, dots and apostrophes do not matter, nor does
 * the article `the`. `&` counts as `and`.
 */
const normalizeName = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/[\p{M}.'’]/gu, '')
    .replaceAll('&', 'and')
    .toLowerCase()
    .trim()
    .replace(/^the /, '');

/** The codes of countries by common names that `Intl.DisplayNames` does not contain. The names are normalized. */
const codeByCommonName: Record<string, string> = {
  ...{ usa: 'US', 'united states of america': 'US', 'great britain': 'GB', uae: 'AE', 'czech republic': 'CZ' },
  ...{ turkey: 'TR', macau: 'MO', 'russian federation': 'RU', 'viet nam': 'VN', 'republic of korea': 'KR' },
  ...{ 'ivory coast': 'CI', burma: 'MM', swaziland: 'SZ', 'cape verde': 'CV', 'east timor': 'TL' },
};

/**
 * Returns the ISO 3166 code of a country. Accepts a code or a name in one of seven languages.
 * @throws Error that quotes the text if it is not a country
 */
export function parseCountryCode(country: string): string {
  const code = findCountryCode(country);
  if (code === undefined)
    throw new Error(
      `countries: ${quoteValue(country)} is not a country such as DE or Germany; use the two-letter country code`,
    );
  return code;
}

const getCodesByName = createLazyGetter(() => {
  const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(65 + index));
  const letterPairs = letters.flatMap((first) => letters.map((second) => first + second));
  // Keep only current country codes. `Intl.Locale` replaces a withdrawn code with its successor, e.g. DD with DE.
  const currentCodes = letterPairs.filter((code) => new Intl.Locale(`und-${code}`).region === code);
  const codeByName = new Map(Object.entries(codeByCommonName));
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    // The short names are, for example, `Hong Kong` and `Palestine`.
    for (const style of ['short', 'long'] as const) {
      const displayNames = new Intl.DisplayNames([language], { type: 'region', style, fallback: 'none' });
      for (const code of currentCodes) {
        const name = displayNames.of(code);
        if (name !== undefined) codeByName.set(normalizeName(name), code);
      }
    }
  }
  return codeByName;
});
