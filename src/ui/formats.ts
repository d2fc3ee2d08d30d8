import { sanitizeLine } from '../views/safe-text.ts';

/** Returns a function that creates a value at its first call. Creating a format of `Intl` takes milliseconds. */
function once<Value>(create: () => Value): () => Value {
  let created: { value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

export type Formats = ReturnType<typeof formatsOf>;

/** Returns functions that write numbers and dates as a reader of the locale does, in sentences that are English. */
export function formatsOf(locale: string) {
  const tag = once(() => {
    const [supported = 'en'] = Intl.DateTimeFormat.supportedLocalesOf(locale);
    return supported === 'en-US' ? 'en' : supported;
  });
  const numbers = once(() => new Intl.NumberFormat(tag()));
  const short = once(() => new Intl.NumberFormat(tag(), { notation: 'compact', maximumSignificantDigits: 3 }));
  const months = once(() => new Intl.DateTimeFormat(tag(), { month: 'short', year: 'numeric', timeZone: 'UTC' }));
  const days = once(
    () => new Intl.DateTimeFormat(tag() === 'en' ? 'en-GB' : tag(), { dateStyle: 'medium', timeZone: 'UTC' }),
  );
  const isRightToLeft = once(() => rightToLeft.test(months().format(0) + numbers().format(1)));
  /** Isolates a right-to-left text. Between English words, it would otherwise change the order of its neighbours. */
  const isolated = (text: string): string => (isRightToLeft() ? `\u2068${text}\u2069` : text);
  const dateText = (format: Intl.DateTimeFormat, time: number): string =>
    Math.abs(time) <= 8.64e15 ? isolated(format.format(time)) : '';
  const numberText = (number: number): string => isolated(numbers().format(number));
  return {
    numberText,
    /** `2.5M`: no number is too long for a card. */
    shortNumber: (number: number): string => (Math.abs(number) < 1e15 ? isolated(short().format(number)) : 'very many'),
    /** `1 ad`, `1,234 ads`. */
    countText: (number: number, noun: string, nouns = `${noun}s`): string =>
      `${numberText(number)} ${number === 1 ? noun : nouns}`,
    /** `10 Aug 2026`; an empty text for anything that is no date. */
    dayText: (time: number | string): string => dateText(days(), new Date(time).getTime()),
    /** `2026-08` as `Aug 2026`. */
    monthText: (yearAndMonth: string): string =>
      dateText(months(), Date.parse(`${yearAndMonth}-01T00:00:00Z`)) || yearAndMonth,
  };
}

const rightToLeft = /[\u0590-\u08ff\u0660-\u0669\u06f0-\u06f9]/;

/** The formats of pages that are written on the server. The board has those of its reader. */
export const english = formatsOf('en');
export const { numberText, shortNumber, countText, dayText, monthText } = english;

/** `1, 2 and 4` */
export const joinedText = (parts: readonly string[]): string => new Intl.ListFormat('en-GB').format(parts);

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

const regions = once(() => new Intl.DisplayNames('en', { type: 'region' }));

/** `DE` as `Germany`. */
export const countryText = (code: string): string =>
  (/^[A-Z]{2}$/.test(code) && regions().of(code)) || sanitizeLine(code);

const languages = once(() => new Intl.DisplayNames('en', { type: 'language' }));

/** `de` as `German`. */
export const languageText = (code: string): string =>
  (/^[a-z]{2}$/i.test(code) && languages().of(code)) || sanitizeLine(code);
