import { quoteValue } from '../../service/request.ts';

let codes: Map<string, string> | undefined;

/**
 * Returns the ISO 3166 code of a country that is given by its code, or by its name in a common language.
 * @throws Error that names the text, where it is no country
 */
export function parseCountryCode(country: string): string {
  if (/^[a-z]{2}$/i.test(country)) return new Intl.Locale(`und-${country}`).region ?? country.toUpperCase();
  codes ??= codesByName();
  const code = codes.get(country.toLowerCase());
  if (code === undefined)
    throw new Error(
      `countries: ${quoteValue(country)} is no country such as DE or Germany; use its code of two letters`,
    );
  return code;
}

function codesByName(): Map<string, string> {
  const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(65 + at));
  const all = letters.flatMap((first) => letters.map((second) => first + second));
  // A code that another one has replaced is left out.
  const current = all.filter((code) => new Intl.Locale(`und-${code}`).region === code);
  const named = new Map([['usa', 'US']]);
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    const names = new Intl.DisplayNames([language], { type: 'region', fallback: 'none' });
    for (const code of current) named.set((names.of(code) ?? code).toLowerCase(), code);
  }
  return named;
}
