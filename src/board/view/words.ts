import type { BoardAd } from '../payload.ts';

/** Our words for values of the service, and numbers as people read them. */

const formatsIn = (locale: string) => ({
  numbers: new Intl.NumberFormat(locale),
  large: new Intl.NumberFormat(locale, { notation: 'compact', compactDisplay: 'long', maximumSignificantDigits: 3 }),
  months: new Intl.DateTimeFormat(locale, { month: 'short', timeZone: 'UTC' }),
  days: new Intl.DateTimeFormat(locale === 'en' ? 'en-GB' : locale, { dateStyle: 'medium', timeZone: 'UTC' }),
});
let formats = formatsIn('en');
const regions = new Intl.DisplayNames('en', { type: 'region' });

/** Writes dates and numbers as the host's reader does. The words stay English. */
export function useLocale(locale: string): void {
  const [known] = Intl.DateTimeFormat.supportedLocalesOf(locale);
  if (known !== undefined) formats = formatsIn(known === 'en-US' ? 'en' : known);
}

export const number = (value: number): string => formats.numbers.format(value);
/** `750 thousand` */
export const round = (value: number): string => (value < 10_000 ? number(value) : formats.large.format(value));
/** `1, 2 and 4` */
export const joined = (parts: readonly (string | number)[]): string =>
  new Intl.ListFormat('en-GB').format(parts.map(String));
export const count = (value: number, noun: string, nouns = `${noun}s`): string =>
  `${number(value)} ${value === 1 ? noun : nouns}`;

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
  return isTime(time) ? formats.days.format(time) : '';
}

/** `2026-08` as `Aug 2026`. */
export function month(yearAndMonth: string): string {
  const time = Date.parse(`${yearAndMonth}-01T00:00:00Z`);
  return isTime(time) ? `${formats.months.format(time)} ${yearAndMonth.slice(0, 4)}` : yearAndMonth;
}

/** The name of an ad: its headline, or what takes its place. */
export const titleOf = ({ headline, firstLine, cards, pageName }: BoardAd): string =>
  [headline, firstLine, cards?.[0]?.title, pageName].find((text) => text && !text.includes('{{')) ?? 'Ad without words';

/** `New · Video · 15 s`; just the cards of an ad with cards, and nothing for a picture, which can be seen. */
export function badgeOf({ displayFormat, creative, isNew }: BoardAd): string {
  const format = displayFormat === undefined || displayFormat === 'IMAGE' ? undefined : label(displayFormat);
  return [isNew && 'New', creative?.includes('card') ? undefined : format, creative].filter(Boolean).join(' · ');
}

export const runOf = ({ daysRunning }: BoardAd): string => (daysRunning === undefined ? '' : count(daysRunning, 'day'));

export const stateOf = ({ active }: BoardAd): string => (active === undefined ? '' : active ? 'running' : 'ended');

/** `running`, `ended`, or the day the ad was last seen, where nothing else is known. */
export function stateText(ad: BoardAd, asOf: string): string {
  const state = stateOf(ad);
  if (state !== '' || ad.lastSeenAt === undefined) return state || 'state unknown';
  const since = Math.floor((Date.parse(asOf.slice(0, 10)) - Date.parse(ad.lastSeenAt.slice(0, 10))) / 86_400_000);
  return since >= 0
    ? `last seen ${since === 0 ? 'today' : `${count(since, 'day')} ago`}`
    : `seen ${day(ad.lastSeenAt)}`;
}

/** The first letter of an advertiser, and a colour that stays the same for it. */
export function monogramOf({ pageName, id }: BoardAd): { initial: string; hue: number } {
  const name = pageName ?? id;
  let hash = 7;
  for (const character of name) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return { initial: pageName === undefined ? '' : ([...pageName][0] ?? '').toUpperCase(), hue: hash };
}
