import { createLazyGetter } from '../lazy-getter.ts';
import { sanitizeLine } from '../views/safe-text.ts';

/** The functions that format numbers and dates for one locale. */
export type Formatters = ReturnType<typeof createFormatters>;

/**
 * Creates functions that format numbers and dates for a locale. Nouns such as `ads` are in English in every locale.
 * Each `Intl` format is created on first use. Creating a format takes milliseconds, and many formats are never needed.
 * @param locale a BCP 47 language tag; if the runtime does not support the locale, the functions use English
 */
export function createFormatters(locale: string) {
  const getSupportedLocale = createLazyGetter(() => {
    const [firstSupportedLocale = 'en'] = Intl.DateTimeFormat.supportedLocalesOf(locale);
    return firstSupportedLocale === 'en-US' ? 'en' : firstSupportedLocale;
  });
  const getNumberFormat = createLazyGetter(() => new Intl.NumberFormat(getSupportedLocale()));
  const getShortNumberFormat = createLazyGetter(
    () => new Intl.NumberFormat(getSupportedLocale(), { notation: 'compact', maximumSignificantDigits: 3 }),
  );
  // Always use the Gregorian calendar, because ads are counted by its months. In Iran, for example, the month Mehr lasts
  // from 23 September to 22 October, so it cannot be the name of October.
  const getMonthFormat = createLazyGetter(
    () =>
      new Intl.DateTimeFormat(getSupportedLocale(), {
        calendar: 'gregory',
        month: 'short',
        year: 'numeric',
        timeZone: 'UTC',
      }),
  );
  const getDayFormat = createLazyGetter(
    () =>
      new Intl.DateTimeFormat(getSupportedLocale() === 'en' ? 'en-GB' : getSupportedLocale(), {
        calendar: 'gregory',
        dateStyle: 'medium',
        timeZone: 'UTC',
      }),
  );
  const isRightToLeft = createLazyGetter(() =>
    rightToLeftPattern.test(getMonthFormat().format(0) + getNumberFormat().format(1)),
  );
  /**
   * Encloses right-to-left text in Unicode isolation characters. Otherwise, the text would change the order of the
   * English words around it.
   */
  const isolateDirection = (text: string): string => (isRightToLeft() ? `\u2068${text}\u2069` : text);
  const formatDate = (format: Intl.DateTimeFormat, timeMs: number): string =>
    Math.abs(timeMs) <= maxDateMs ? isolateDirection(format.format(timeMs)) : '';
  const formatNumber = (number: number): string => isolateDirection(getNumberFormat().format(number));
  return {
    formatNumber,
    /** Formats a number with at most three significant digits, so that it fits on a card, e.g. `2.5M`. */
    formatShortNumber: (number: number): string =>
      Math.abs(number) < 1e15 ? isolateDirection(getShortNumberFormat().format(number)) : 'very many',
    /** Formats a number together with its noun, e.g. `1 ad` or `1,234 ads`. */
    formatCount: (number: number, noun: string, pluralNoun = `${noun}s`): string =>
      `${formatNumber(number)} ${number === 1 ? noun : pluralNoun}`,
    /** Formats the day of a time, e.g. `10 Aug 2026`. Returns an empty string if the time is invalid. */
    formatDay: (time: number | string): string => formatDate(getDayFormat(), new Date(time).getTime()),
    /** Formats an ISO month, such as `2026-08`, as `Aug 2026`. */
    formatMonth: (isoMonth: string): string =>
      formatDate(getMonthFormat(), Date.parse(`${isoMonth}-01T00:00:00Z`)) || isoMonth,
  };
}

/** The highest and, with a minus sign, the lowest time that a `Date` can represent, in milliseconds since 1970. */
const maxDateMs = 8.64e15;

/** Matches Hebrew and Arabic letters and Arabic digits. */
const rightToLeftPattern = /[\u0590-\u08ff\u0660-\u0669\u06f0-\u06f9]/;

/**
 * English formatters for the pages and reports that the server creates. The ad board runs in the browser and uses
 * formatters for the user's locale instead.
 */
export const englishFormatters = createFormatters('en');
export const { formatNumber, formatShortNumber, formatCount, formatDay, formatMonth } = englishFormatters;

/** Joins texts as an English list of alternatives, e.g. `1, 2 or 4`. */
export const joinWithOr = (texts: readonly string[]): string =>
  new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(texts);

/** The display names of ad formats that the API abbreviates, e.g. `DCO`. */
const namesByDisplayFormat = new Map([
  ['DCO', 'Dynamic creative'],
  ['DPA', 'Dynamic product'],
]);

/**
 * Formats a constant of the API as words, e.g. `SHOP_NOW` as `Shop now`. Any other text is sanitized but otherwise
 * unchanged.
 */
export function formatConstant(constant: string): string {
  const displayName = namesByDisplayFormat.get(constant);
  if (displayName !== undefined || !/^[A-Z][A-Z_]*$/.test(constant)) return displayName ?? sanitizeLine(constant);
  return constant.charAt(0) + constant.slice(1).toLowerCase().replaceAll('_', ' ');
}

const namesByAdLibrary = new Map([
  ['meta', 'Meta'],
  ['google', 'Google'],
  ['tiktok', 'TikTok'],
  ['linkedin', 'LinkedIn'],
  ['own', 'Own table'],
]);

/**
 * Returns the display name of the ad library from which an ad was imported. An unknown name is sanitized but otherwise
 * unchanged.
 */
export const formatAdLibrary = (adLibrary: string): string =>
  namesByAdLibrary.get(adLibrary) ?? sanitizeLine(adLibrary);

const getRegionNames = createLazyGetter(() => new Intl.DisplayNames('en', { type: 'region' }));

/**
 * Returns the English name of a country code, e.g. `Germany` for `DE`. Any other text is sanitized but otherwise
 * unchanged.
 */
export const formatCountry = (countryCode: string): string =>
  (/^[A-Z]{2}$/.test(countryCode) && getRegionNames().of(countryCode)) || sanitizeLine(countryCode);

const getLanguageNames = createLazyGetter(() => new Intl.DisplayNames('en', { type: 'language' }));

/**
 * Returns the English name of a language code, e.g. `German` for `de`. Any other text is sanitized but otherwise
 * unchanged.
 */
export const formatLanguage = (languageCode: string): string =>
  (/^[a-z]{2}$/i.test(languageCode) && getLanguageNames().of(languageCode)) || sanitizeLine(languageCode);
