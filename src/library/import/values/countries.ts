import { createLazyGetter } from '../../../lazy-getter.ts';
import { quoteValue } from '../../service/request.ts';

/**
 * Returns the ISO 3166 code of a country. Accepts a code or a name in one of seven languages. Returns undefined for any
 * other text.
 */
export function findCountryCode(country: string): string | undefined {
  if (/^[a-z]{2}$/i.test(country)) return new Intl.Locale(`und-${country}`).region ?? country.toUpperCase();
  return getCodesByName().get(country.toLowerCase());
}

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
  const codeByName = new Map([['usa', 'US']]);
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    const displayNames = new Intl.DisplayNames([language], { type: 'region', fallback: 'none' });
    for (const code of currentCodes) codeByName.set((displayNames.of(code) ?? code).toLowerCase(), code);
  }
  return codeByName;
});
