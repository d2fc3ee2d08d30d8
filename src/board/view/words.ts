/** Our words for values of the service, and numbers as people read them. */

const numbers = new Intl.NumberFormat('en');
const large = new Intl.NumberFormat('en', { notation: 'compact', compactDisplay: 'long', maximumSignificantDigits: 3 });
const regions = new Intl.DisplayNames('en', { type: 'region' });
const months = new Intl.DateTimeFormat('en', { month: 'short', timeZone: 'UTC' });
const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

export const number = (value: number): string => numbers.format(value);
/** `750 thousand` */
export const round = (value: number): string => (value < 10_000 ? number(value) : large.format(value));
export const count = (value: number, noun: string): string => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

/** `SHOP_NOW` as `Shop now`. */
export function label(constant: string): string {
  const known = { DCO: 'Dynamic creative', DPA: 'Dynamic product' }[constant];
  if (known || !/^[A-Z][A-Z_]*$/.test(constant)) return known ?? constant;
  const words = constant.toLowerCase().replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function country(code: string): string {
  return /^[A-Z]{2}$/.test(code) ? (regions.of(code) ?? code) : code;
}

const isTime = (time: number) => Math.abs(time) <= 8.64e15;

/** `10 Aug 2026` */
export function day(iso: string): string {
  const time = Date.parse(iso);
  return isTime(time) ? days.format(time) : '';
}

/** `2026-08` as `Aug 2026`. */
export function month(yearAndMonth: string): string {
  const time = Date.parse(`${yearAndMonth}-01T00:00:00Z`);
  return isTime(time) ? `${months.format(time)} ${yearAndMonth.slice(0, 4)}` : yearAndMonth;
}

/** The same beside other months, where only January needs its year. */
export const shortMonth = (yearAndMonth: string): string =>
  yearAndMonth.endsWith('-01') ? month(yearAndMonth) : month(yearAndMonth).slice(0, -5);
