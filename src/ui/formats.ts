import { sanitizeLine } from '../views/safe-text.ts';

/** Milliseconds of a day. */

const formatsIn = (locale: string) => ({
  numbers: new Intl.NumberFormat(locale),
  short: new Intl.NumberFormat(locale, { notation: 'compact', maximumSignificantDigits: 3 }),
  months: new Intl.DateTimeFormat(locale, { month: 'short', year: 'numeric', timeZone: 'UTC' }),
  days: new Intl.DateTimeFormat(locale === 'en' ? 'en-GB' : locale, { dateStyle: 'medium', timeZone: 'UTC' }),
});
let formats = formatsIn('en');
let isRightToLeft = false;

/** Writes dates and numbers as a reader of that locale does. The page of the board alone calls it: it has one reader. */
export function useLocale(locale: string): void {
  const [supported] = Intl.DateTimeFormat.supportedLocalesOf(locale);
  if (supported === undefined) return;
  formats = formatsIn(supported === 'en-US' ? 'en' : supported);
  isRightToLeft = /[\u0590-\u08ff\u0660-\u0669\u06f0-\u06f9]/.test(
    formats.months.format(0) + formats.numbers.format(1),
  );
}

/** Between English words, text that is read from right to left would change the order of what stands beside it. */
const isolated = (text: string): string => (isRightToLeft ? `\u2068${text}\u2069` : text);

export const numberText = (number: number): string => isolated(formats.numbers.format(number));

/** `2.5M`: no number is too long for a card. */
export const shortNumber = (number: number): string =>
  Math.abs(number) < 1e15 ? isolated(formats.short.format(number)) : 'very many';

/** `1 ad`, `1,234 ads`. */
export const countText = (number: number, noun: string, nouns = `${noun}s`): string =>
  `${numberText(number)} ${number === 1 ? noun : nouns}`;

/** `1, 2 and 4` */
export const joinedText = (parts: readonly string[]): string => new Intl.ListFormat('en-GB').format(parts);

const dateText = (format: Intl.DateTimeFormat, time: number): string =>
  Math.abs(time) <= 8.64e15 ? isolated(format.format(time)) : '';

/** `10 Aug 2026`; nothing for what is no date. */
export const dayText = (time: number | string): string => dateText(formats.days, new Date(time).getTime());

/** `2026-08` as `Aug 2026`. */
export const monthText = (yearAndMonth: string): string =>
  dateText(formats.months, Date.parse(`${yearAndMonth}-01T00:00:00Z`)) || yearAndMonth;

const formatNames = new Map([
  ['DCO', 'Dynamic creative'],
  ['DPA', 'Dynamic product'],
]);

/** `SHOP_NOW` as `Shop now`. */
export function constantText(constant: string): string {
  const name = formatNames.get(constant);
  if (name !== undefined || !/^[A-Z][A-Z_]*$/.test(constant)) return name ?? sanitizeLine(constant);
  return constant.charAt(0) + constant.slice(1).toLowerCase().replaceAll('_', ' ');
}

const regions = new Intl.DisplayNames('en', { type: 'region' });

/** `DE` as `Germany`. */
export const countryText = (code: string): string =>
  (/^[A-Z]{2}$/.test(code) && regions.of(code)) || sanitizeLine(code);

const languages = new Intl.DisplayNames('en', { type: 'language' });

/** `de` as `German`. */
export const languageText = (code: string): string =>
  (/^[a-z]{2}$/i.test(code) && languages.of(code)) || sanitizeLine(code);
