import { dayMs } from '../../../views/durations.ts';
import { quoteValue } from '../../service/request.ts';

/**
 * Dates as people and programs write them. In `05/04/2026` the day or the month may come first: all values of a column
 * with the same sign between their numbers decide. With dots the day comes first, as in every country that writes dots.
 */

type Order = 'dmy' | 'mdy' | 'ymd';

/** Days that may be read in several orders, with the time of day in milliseconds. */
interface WrittenDay {
  /** The values of a column that are written alike, and so are read in the same order. */
  style: string;
  days: Map<Order, number>;
  timeMs: number;
}

const firstTime = Date.UTC(2000, 0, 1);
const lastTime = Date.UTC(2100, 0, 1);
/** The first ads of a social network. A smaller number of seconds is another number. */
const firstUnixTime = Date.UTC(2005, 0, 1);

/** Milliseconds of a day that exists and lies between 2000 and 2100. */
function timeOfDay(year: number, month: number, day: number): number | undefined {
  const date = new Date(Date.UTC(year, month - 1, day));
  const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return exists && date.getTime() >= firstTime && date.getTime() < lastTime ? date.getTime() : undefined;
}

const clockPattern =
  /^(\d{1,2})[:h.](\d\d)(?:[:.](\d\d)(?:[.,](\d{1,9}))?)?\s*([ap]\.?\s?m\.?)?\s*(?:uhr)?\s*(z|(?:utc|gmt)?(?:([+-])(\d\d):?(\d\d)?)?)?$/i;

/** Removes the name of the time zone in brackets with which a JavaScript date ends. */
function withoutZoneName(text: string): string {
  const start = text.endsWith(')') ? text.lastIndexOf('(') : -1;
  return start < 0 || text.slice(start, -1).includes(')') ? text : text.slice(0, start).trimEnd();
}

/** Milliseconds since midnight in UTC; undefined for a text that is no time of day. */
function timeOfClock(text: string): number | undefined {
  const clock = withoutZoneName(text.trim());
  if (clock === '') return 0;
  const [, hours, minutes, seconds = '0', fraction = '', half, zone, sign, zoneHours = '0', zoneMinutes = '0'] =
    clockPattern.exec(clock) ?? [];
  if (hours === undefined || Number(minutes) > 59 || Number(seconds) > 60) return undefined;
  const isHalf = half !== undefined;
  if (Number(hours) > (isHalf ? 12 : 24) || (isHalf && hours === '0')) return undefined;
  const hour = isHalf ? (Number(hours) % 12) + (half.toLowerCase().startsWith('p') ? 12 : 0) : Number(hours);
  const offset = zone && sign ? (sign === '-' ? -1 : 1) * (Number(zoneHours) * 60 + Number(zoneMinutes)) : 0;
  const ms = Math.floor(Number(`0.${fraction || '0'}`) * 1000);
  return ((hour * 60 + Number(minutes) - offset) * 60 + Number(seconds)) * 1000 + ms;
}

const numeric = /^(\d{1,4})\s?([./-])\s?(\d{1,2})\s?\2\s?(\d{1,4})\.?(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/i;
const eastAsian = /^(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일](?:\s*(\S.{0,60}))?$/;
const compact = /^(20\d\d)(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)Z?)?$/;
const dayThenMonth =
  /^(?:(\p{L}+)\.?,?\s+)?(\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s-]*(?:de\s+)?(\p{L}{3,20})\.?,?[\s-]*(?:de\s+|del\s+)?(\d{4}|\d{2})(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/iu;
const monthThenDay =
  /^(?:(\p{L}+)\.?,?\s+)?(\p{L}{3,20})\.?\s*(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?:(?:,\s*|\s+)(\S.{0,60}))?$/iu;
const yearThenMonth = /^(\d{4})[\s-](\p{L}{3,20})\.?[\s-](\d{1,2})(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/iu;

const inOneOrder = (time: number | undefined, clock = ''): WrittenDay | undefined => {
  const timeMs = timeOfClock(clock);
  return time === undefined || timeMs === undefined ? undefined : { style: '', days: new Map([['ymd', time]]), timeMs };
};

function readNumeric(text: string, now: number): WrittenDay | undefined {
  const [, first = '', sign = '', second = '', third = '', clock = ''] = numeric.exec(text) ?? [];
  const [a, b, c] = [Number(first), Number(second), Number(third)];
  if (first.length === 4 && third.length <= 2) return inOneOrder(timeOfDay(a, b, c), clock);
  if (first === '' || first.length > 2 || (third.length !== 4 && third.length !== 2)) return undefined;
  const isShort = third.length === 2;
  const year = isShort ? 2000 + c : c;
  const days = new Map<Order, number>();
  const add = (order: Order, time: number | undefined, isPlausible = true) => {
    if (time !== undefined && isPlausible) days.set(order, time);
  };
  const isNear = (shortYear: number) => 2000 + shortYear <= new Date(now).getUTCFullYear() + 2;
  add('dmy', timeOfDay(year, b, a), !isShort || isNear(c));
  if (sign !== '.') add('mdy', timeOfDay(year, a, b), !isShort || isNear(c));
  // Programs that shorten a year write `26-01-31`, too.
  if (isShort && sign === '-') add('ymd', timeOfDay(2000 + a, b, c), a >= 5 && isNear(a));
  const timeMs = timeOfClock(clock);
  return days.size === 0 || timeMs === undefined ? undefined : { style: `${sign}${third.length}`, days, timeMs };
}

function readNamed(text: string): WrittenDay | undefined {
  const dayFirst = dayThenMonth.exec(text);
  const monthFirst = monthThenDay.exec(text);
  const yearFirst = yearThenMonth.exec(text);
  const found =
    (dayFirst && {
      weekday: dayFirst[1],
      day: dayFirst[2],
      month: dayFirst[3],
      year: dayFirst[4],
      clock: dayFirst[5],
    }) ??
    (monthFirst && {
      ...{ weekday: monthFirst[1], month: monthFirst[2], day: monthFirst[3], year: monthFirst[4] },
      clock: monthFirst[5],
    }) ??
    (yearFirst && {
      weekday: undefined,
      year: yearFirst[1],
      month: yearFirst[2],
      day: yearFirst[3],
      clock: yearFirst[4],
    }) ??
    javaScriptDate(text);
  if (!found) return undefined;
  const names = namesOfDates();
  const month = names.months.get(found.month?.toLowerCase() ?? '');
  if (month === undefined) return undefined;
  if (found.weekday !== undefined && !names.weekdays.has(found.weekday.toLowerCase())) return undefined;
  const year = found.year?.length === 2 ? 2000 + Number(found.year) : Number(found.year);
  return inOneOrder(timeOfDay(year, month, Number(found.day)), found.clock);
}

/** `Sun Jan 05 12:00:00 2025`, as C and Unix write it, with the year at the end. */
function javaScriptDate(text: string) {
  const [, weekday, month, day, clock, year] =
    /^([A-Za-z]{3}) ([A-Za-z]{3}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?: (?:UTC|GMT))? (\d{4})$/.exec(text) ?? [];
  return month === undefined ? undefined : { weekday, month, day, clock, year };
}

/** Seconds, milliseconds or microseconds since 1970, told by their size. */
function readUnixTime(text: string): WrittenDay | undefined {
  if (!/^\d{10,16}(?:\.\d{1,9})?$/.test(text)) return undefined;
  for (const factor of [1000, 1, 0.001]) {
    const time = Math.floor(Number(text) * factor);
    if (time >= firstUnixTime && time < lastTime) return { style: '', days: new Map([['ymd', time]]), timeMs: 0 };
  }
  return undefined;
}

function readCompact(text: string): WrittenDay | undefined {
  const [, year, month, day, hours = '00', minutes = '00', seconds = '00'] = compact.exec(text) ?? [];
  if (year === undefined) return undefined;
  return inOneOrder(timeOfDay(Number(year), Number(month), Number(day)), `${hours}:${minutes}:${seconds}`);
}

function readWritten(value: unknown, now: number): WrittenDay | undefined {
  const text = String(value).trim().replace(/\s+/g, ' ');
  if (text.length > 100) return undefined;
  const [, year, month, day, clock] = eastAsian.exec(text) ?? [];
  if (year !== undefined) return inOneOrder(timeOfDay(Number(year), Number(month), Number(day)), clock);
  return readUnixTime(text) ?? readCompact(text) ?? readNumeric(text, now) ?? readNamed(text);
}

/** The dates of one column. First `observe` each of its values, then `decide`, then `read` each. */
export class DateColumn {
  readonly #name: string;
  readonly #now: number;
  readonly #styles = new Map<string, { orders: Order[]; first: string; unclear?: string; contradiction?: string }>();

  constructor(name: string, now: number) {
    this.#name = name;
    this.#now = now;
  }

  observe(value: unknown): void {
    const written = readWritten(value, this.#now);
    if (!written || written.style === '') return;
    const { style, days } = written;
    const text = String(value).trim();
    const known = this.#styles.get(style);
    const orders = [...days.keys()].filter((order) => known?.orders.includes(order) ?? true);
    const entry = known ?? { orders, first: text };
    if (orders.length === 0) entry.contradiction ??= text;
    else {
      // The value that left fewer orders shows how the others are written.
      if (orders.length < entry.orders.length) entry.first = text;
      entry.orders = orders;
    }
    if (new Set(days.values()).size > 1) entry.unclear ??= text;
    this.#styles.set(style, entry);
  }

  /** @throws Error with the possible readings, where the values do not tell in which order their numbers are */
  decide(): void {
    for (const { orders, first, unclear, contradiction } of this.#styles.values()) {
      const start = `the column ${quoteValue(this.#name)} has days such as`;
      if (contradiction !== undefined)
        throw new Error(
          `${start} ${first} and ${contradiction}, which are not written in the same order; write them as 2026-01-31 and import the file again`,
        );
      if (orders.length < 2 || unclear === undefined) continue;
      const days = readWritten(unclear, this.#now)?.days;
      const readings = orders.flatMap((order) => days?.get(order) ?? []).map(longDay);
      throw new Error(
        `${start} ${unclear}, which may be ${[...new Set(readings)].join(' or ')}; write them as 2026-01-31 and import the file again`,
      );
    }
  }

  /** The date in ISO 8601. @throws Error that names the value, where it is no date */
  parse(value: unknown, label = this.#name): string {
    const written = readWritten(value, this.#now);
    const order = written && (this.#styles.get(written.style)?.orders[0] ?? written.days.keys().next().value);
    const day = order && written?.days.get(order);
    if (written && day !== undefined) return new Date(day + written.timeMs).toISOString();
    throw new Error(`${label}: ${quoteValue(value)} is no date such as 2026-01-31${serialHint(value)}`);
  }
}

/** Workbooks store a day as the number of days since the last day of 1899. Programs that export them forget to convert it. */
function serialHint(value: unknown): string {
  const number = Number(value);
  if (!(number > 36_000 && number < 73_000)) return '';
  const day = new Date((Math.floor(number) - 25_569) * dayMs).toISOString().slice(0, 10);
  return `; if it is the number of a spreadsheet for ${day}, format the column as dates there and export it again`;
}

const longDay = (time: number) =>
  new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

let dateNames: { months: Map<string, number>; weekdays: Set<string> } | undefined;

/** Names of months and weekdays, long and short, in languages that many advertisers use. */
function namesOfDates() {
  if (dateNames) return dateNames;
  const months = new Map<string, number>([['sept', 9]]);
  const weekdays = new Set<string>();
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'da', 'nb', 'cs', 'tr', 'ru']) {
    for (const length of ['long', 'short'] as const) {
      const inDate = new Intl.DateTimeFormat(language, { day: 'numeric', month: length, timeZone: 'UTC' });
      const alone = new Intl.DateTimeFormat(language, { month: length, timeZone: 'UTC' });
      const weekday = new Intl.DateTimeFormat(language, { weekday: length, timeZone: 'UTC' });
      for (let at = 0; at < 12; at++) {
        const date = new Date(Date.UTC(2026, at, 1 + at));
        const inside = inDate.formatToParts(date).find(({ type }) => type === 'month')?.value ?? '';
        for (const name of [inside, alone.format(date)].map(withoutPoint))
          if (!months.has(name)) months.set(name, at + 1);
      }
      for (let day = 1; day <= 7; day++) weekdays.add(withoutPoint(weekday.format(new Date(Date.UTC(2026, 0, day)))));
    }
  }
  dateNames = { months, weekdays };
  return dateNames;
}

const withoutPoint = (name: string) => name.toLowerCase().replace(/\.$/, '');
