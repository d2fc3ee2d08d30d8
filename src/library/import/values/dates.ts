import { dayMs } from '../../../views/durations.ts';
import { quoteValue } from '../../service/request.ts';

/**
 * Parses dates in notations that people and programs use. In `05/04/2026`, either the day or the month may come first.
 * To find out which, the parser compares all values of a column that have the same separator. With dots, the month
 * never comes first, because no country writes dates in this way.
 */

/** The order in which a written date has its day (`d`), month (`m`) and year (`y`). */
type DateOrder = 'dmy' | 'mdy' | 'ymd';

/**
 * A date that may mean several days, e.g. `05/04/2026`, because it is unknown whether the day or the month comes first.
 */
interface ParsedDate {
  /**
   * The separator and the number of digits of the year, e.g. `/4`. All dates of a column with the same notation must
   * have the same order of day and month. Empty for dates with only one possible meaning.
   */
  notation: string;
  /** The start of the day in Unix milliseconds, for each possible order of day, month and year. */
  dayStartByOrder: Map<DateOrder, number>;
  /** The time of day, in milliseconds since midnight UTC. */
  timeOfDayMs: number;
}

const minTimeMs = Date.UTC(2000, 0, 1);
const maxTimeMs = Date.UTC(2100, 0, 1);
/**
 * The minimum time that is accepted as a Unix time. Social networks showed no ads before 2005, so smaller numbers are
 * probably ids or counts.
 */
const minUnixTimeMs = Date.UTC(2005, 0, 1);

/**
 * Returns the start of a day in Unix milliseconds. Returns undefined if the day does not exist or is not between 2000
 * and 2099.
 */
function computeDayStart(year: number, month: number, day: number): number | undefined {
  const date = new Date(Date.UTC(year, month - 1, day));
  const isExistingDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isExistingDay && date.getTime() >= minTimeMs && date.getTime() < maxTimeMs ? date.getTime() : undefined;
}

const timeOfDayPattern =
  /^(\d{1,2})[:h.](\d\d)(?:[:.](\d\d)(?:[.,](\d{1,9}))?)?\s*([ap]\.?\s?m\.?)?\s*(?:uhr)?\s*(z|(?:utc|gmt)?(?:([+-])(\d\d):?(\d\d)?)?)?$/i;

/** Removes the time zone name that JavaScript writes in parentheses at the end of a date. */
function removeTimeZoneName(text: string): string {
  const zoneStartIndex = text.endsWith(')') ? text.lastIndexOf('(') : -1;
  return zoneStartIndex < 0 || text.slice(zoneStartIndex, -1).includes(')')
    ? text
    : text.slice(0, zoneStartIndex).trimEnd();
}

/**
 * Parses a time of day, and returns the milliseconds since midnight UTC. Returns undefined if the text is not a time of
 * day.
 */
function parseTimeOfDay(text: string): number | undefined {
  const clockText = removeTimeZoneName(text.trim());
  if (clockText === '') return 0;
  const [, hours, minutes, seconds = '0', fraction = '', amOrPm, zone, sign, zoneHours = '0', zoneMinutes = '0'] =
    timeOfDayPattern.exec(clockText) ?? [];
  if (hours === undefined || Number(minutes) > 59 || Number(seconds) > 60) return undefined;
  const is12HourClock = amOrPm !== undefined;
  if (Number(hours) > (is12HourClock ? 12 : 24) || (is12HourClock && hours === '0')) return undefined;
  const hour = is12HourClock ? (Number(hours) % 12) + (amOrPm.toLowerCase().startsWith('p') ? 12 : 0) : Number(hours);
  const offsetMinutes = zone && sign ? (sign === '-' ? -1 : 1) * (Number(zoneHours) * 60 + Number(zoneMinutes)) : 0;
  const fractionMs = Math.floor(Number(`0.${fraction || '0'}`) * 1000);
  return ((hour * 60 + Number(minutes) - offsetMinutes) * 60 + Number(seconds)) * 1000 + fractionMs;
}

const numericDatePattern = /^(\d{1,4})\s?([./-])\s?(\d{1,2})\s?\2\s?(\d{1,4})\.?(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/i;
const eastAsianDatePattern = /^(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일](?:\s*(\S.{0,60}))?$/;
const compactDatePattern = /^(20\d\d)(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)Z?)?$/;
const dayThenMonthPattern =
  /^(?:(\p{L}+)\.?,?\s+)?(\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s-]*(?:de\s+)?(\p{L}{3,20})\.?,?[\s-]*(?:de\s+|del\s+)?(\d{4}|\d{2})(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/iu;
const monthThenDayPattern =
  /^(?:(\p{L}+)\.?,?\s+)?(\p{L}{3,20})\.?\s*(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?:(?:,\s*|\s+)(\S.{0,60}))?$/iu;
const yearThenMonthPattern = /^(\d{4})[\s-](\p{L}{3,20})\.?[\s-](\d{1,2})(?:(?:,\s*|[T\s]\s*)(\S.{0,60}))?$/iu;

const createUnambiguousDate = (dayStart: number | undefined, clockText = ''): ParsedDate | undefined => {
  const timeOfDayMs = parseTimeOfDay(clockText);
  return dayStart === undefined || timeOfDayMs === undefined
    ? undefined
    : { notation: '', dayStartByOrder: new Map([['ymd', dayStart]]), timeOfDayMs };
};

function parseNumericDate(text: string, importTimeMs: number): ParsedDate | undefined {
  const [, firstText = '', separator = '', secondText = '', thirdText = '', clockText = ''] =
    numericDatePattern.exec(text) ?? [];
  const [firstNumber, secondNumber, thirdNumber] = [Number(firstText), Number(secondText), Number(thirdText)];
  if (firstText.length === 4 && thirdText.length <= 2)
    return createUnambiguousDate(computeDayStart(firstNumber, secondNumber, thirdNumber), clockText);
  if (firstText === '' || firstText.length > 2 || (thirdText.length !== 4 && thirdText.length !== 2)) return undefined;
  const isYearShort = thirdText.length === 2;
  const year = isYearShort ? 2000 + thirdNumber : thirdNumber;
  const dayStartByOrder = new Map<DateOrder, number>();
  const addOrder = (order: DateOrder, dayStart: number | undefined, isPlausible = true) => {
    if (dayStart !== undefined && isPlausible) dayStartByOrder.set(order, dayStart);
  };
  const isNearFuture = (shortYear: number) => 2000 + shortYear <= new Date(importTimeMs).getUTCFullYear() + 2;
  addOrder('dmy', computeDayStart(year, secondNumber, firstNumber), !isYearShort || isNearFuture(thirdNumber));
  if (separator !== '.')
    addOrder('mdy', computeDayStart(year, firstNumber, secondNumber), !isYearShort || isNearFuture(thirdNumber));
  // A two-digit year may also come first, as in `26-01-31` or, in East Asia, `26.01.31`. With dots or slashes, the day
  // comes first far more often. Therefore accept a leading year with these separators only from 2018 on, because public
  // ad libraries did not exist before that year.
  const minShortYear = separator === '-' ? 5 : 18;
  if (isYearShort)
    addOrder(
      'ymd',
      computeDayStart(2000 + firstNumber, secondNumber, thirdNumber),
      firstNumber >= minShortYear && isNearFuture(firstNumber),
    );
  const timeOfDayMs = parseTimeOfDay(clockText);
  if (dayStartByOrder.size === 0 || timeOfDayMs === undefined) return undefined;
  return { notation: `${separator}${thirdText.length}`, dayStartByOrder, timeOfDayMs };
}

function parseMonthNameDate(text: string): ParsedDate | undefined {
  const dayFirstMatch = dayThenMonthPattern.exec(text);
  const monthFirstMatch = monthThenDayPattern.exec(text);
  const yearFirstMatch = yearThenMonthPattern.exec(text);
  const dateParts =
    (dayFirstMatch && {
      weekday: dayFirstMatch[1],
      day: dayFirstMatch[2],
      month: dayFirstMatch[3],
      year: dayFirstMatch[4],
      clock: dayFirstMatch[5],
    }) ??
    (monthFirstMatch && {
      ...{ weekday: monthFirstMatch[1], month: monthFirstMatch[2], day: monthFirstMatch[3], year: monthFirstMatch[4] },
      clock: monthFirstMatch[5],
    }) ??
    (yearFirstMatch && {
      weekday: undefined,
      year: yearFirstMatch[1],
      month: yearFirstMatch[2],
      day: yearFirstMatch[3],
      clock: yearFirstMatch[4],
    }) ??
    matchCtimeDate(text);
  if (!dateParts) return undefined;
  const monthsAndWeekdays = getDateNames();
  const month = monthsAndWeekdays.months.get(dateParts.month?.toLowerCase() ?? '');
  if (month === undefined) return undefined;
  if (dateParts.weekday !== undefined && !monthsAndWeekdays.weekdays.has(dateParts.weekday.toLowerCase()))
    return undefined;
  const year = dateParts.year?.length === 2 ? 2000 + Number(dateParts.year) : Number(dateParts.year);
  return createUnambiguousDate(computeDayStart(year, month, Number(dateParts.day)), dateParts.clock);
}

/** Matches dates such as `Sun Jan 05 12:00:00 2025`, which the C function `ctime` and the Unix command `date` write. */
function matchCtimeDate(text: string) {
  const [, weekday, month, day, clock, year] =
    /^([A-Za-z]{3}) ([A-Za-z]{3}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?: (?:UTC|GMT))? (\d{4})$/.exec(text) ?? [];
  return month === undefined ? undefined : { weekday, month, day, clock, year };
}

/**
 * Parses a Unix time. Detects from the size of the number whether the unit is seconds, milliseconds or microseconds.
 */
function parseUnixTime(text: string): ParsedDate | undefined {
  if (!/^\d{10,16}(?:\.\d{1,9})?$/.test(text)) return undefined;
  for (const msPerUnit of [1000, 1, 0.001]) {
    const unixTimeMs = Math.floor(Number(text) * msPerUnit);
    if (unixTimeMs >= minUnixTimeMs && unixTimeMs < maxTimeMs)
      return { notation: '', dayStartByOrder: new Map([['ymd', unixTimeMs]]), timeOfDayMs: 0 };
  }
  return undefined;
}

function parseCompactDate(text: string): ParsedDate | undefined {
  const [, year, month, day, hours = '00', minutes = '00', seconds = '00'] = compactDatePattern.exec(text) ?? [];
  if (year === undefined) return undefined;
  return createUnambiguousDate(
    computeDayStart(Number(year), Number(month), Number(day)),
    `${hours}:${minutes}:${seconds}`,
  );
}

function parseDateText(value: unknown, importTimeMs: number): ParsedDate | undefined {
  const text = String(value).trim().replace(/\s+/g, ' ');
  if (text.length > 100) return undefined;
  const [, year, month, day, clockText] = eastAsianDatePattern.exec(text) ?? [];
  if (year !== undefined)
    return createUnambiguousDate(computeDayStart(Number(year), Number(month), Number(day)), clockText);
  return (
    parseUnixTime(text) ?? parseCompactDate(text) ?? parseNumericDate(text, importTimeMs) ?? parseMonthNameDate(text)
  );
}

/** What the first pass of an import has found out about all dates of a column that have the same notation. */
interface NotationObservations {
  /** The orders of day, month and year that are valid for every date so far. */
  possibleOrders: DateOrder[];
  /**
   * A date to quote in error messages: the last date that excluded an order, or the first date if none did. For
   * example, `31/12/2025` excludes the orders in which the month comes first.
   */
  exampleDate: string;
  /** The first date that means different days, depending on the order. */
  ambiguousDate?: string;
  /** The first date that is invalid in all orders that the earlier dates allow. */
  contradictoryDate?: string;
}

/**
 * Parses the dates of one column in two passes. Call `observeValue` for each value, then `decideNotation` once, and
 * then `parseValue` for each value.
 */
export class DateColumnParser {
  readonly #columnName: string;
  readonly #importTimeMs: number;
  readonly #observationsByNotation = new Map<string, NotationObservations>();

  /**
   * @param importTimeMs the time of the import in Unix milliseconds, which decides which two-digit years are plausible
   */
  constructor(columnName: string, importTimeMs: number) {
    this.#columnName = columnName;
    this.#importTimeMs = importTimeMs;
  }

  /** Records the orders of day, month and year that are possible for a date of the column. */
  observeValue(sourceValue: unknown): void {
    const date = parseDateText(sourceValue, this.#importTimeMs);
    if (!date || date.notation === '') return;
    const { notation, dayStartByOrder } = date;
    const text = String(sourceValue).trim();
    const earlierObservations = this.#observationsByNotation.get(notation);
    const possibleOrders = [...dayStartByOrder.keys()].filter(
      (order) => earlierObservations?.possibleOrders.includes(order) ?? true,
    );
    const observations = earlierObservations ?? { possibleOrders, exampleDate: text };
    if (possibleOrders.length === 0) observations.contradictoryDate ??= text;
    else {
      // This date excludes an order, so error messages should quote it instead of an earlier date.
      if (possibleOrders.length < observations.possibleOrders.length) observations.exampleDate = text;
      observations.possibleOrders = possibleOrders;
    }
    if (new Set(dayStartByOrder.values()).size > 1) observations.ambiguousDate ??= text;
    this.#observationsByNotation.set(notation, observations);
  }

  /**
   * Decides the order of day, month and year for each notation in the column, e.g. for dates with slashes.
   * @throws Error that lists the possible days if the dates of the column do not determine the order
   */
  decideNotation(): void {
    for (const {
      possibleOrders,
      exampleDate,
      ambiguousDate,
      contradictoryDate,
    } of this.#observationsByNotation.values()) {
      const messageStart = `the column ${quoteValue(this.#columnName)} has days such as`;
      if (contradictoryDate !== undefined)
        throw new Error(
          `${messageStart} ${exampleDate} and ${contradictoryDate}, which are not written in the same order; write them as 2026-01-31 and import the file again`,
        );
      if (possibleOrders.length < 2 || ambiguousDate === undefined) continue;
      const dayStartByOrder = parseDateText(ambiguousDate, this.#importTimeMs)?.dayStartByOrder;
      const possibleDays = possibleOrders.flatMap((order) => dayStartByOrder?.get(order) ?? []).map(formatLongDay);
      throw new Error(
        `${messageStart} ${ambiguousDate}, which may be ${[...new Set(possibleDays)].join(' or ')}; write them as 2026-01-31 and import the file again`,
      );
    }
  }

  /**
   * Parses a date of the column, and returns it in ISO 8601 format.
   * @throws Error that quotes the value if it is not a date
   */
  parseValue(sourceValue: unknown, label = this.#columnName): string {
    const date = parseDateText(sourceValue, this.#importTimeMs);
    const dateOrder =
      date &&
      (this.#observationsByNotation.get(date.notation)?.possibleOrders[0] ?? date.dayStartByOrder.keys().next().value);
    const dayStart = dateOrder && date?.dayStartByOrder.get(dateOrder);
    if (date && dayStart !== undefined) return new Date(dayStart + date.timeOfDayMs).toISOString();
    throw new Error(
      `${label}: ${quoteValue(sourceValue)} is not a date such as 2026-01-31${buildSerialDateHint(sourceValue)}`,
    );
  }
}

/**
 * Returns a hint for an error message if a value may be a spreadsheet's serial number of a day, and an empty string
 * otherwise. Workbooks store a day as the number of days since 30 December 1899, and some programs export this number
 * unchanged.
 */
function buildSerialDateHint(sourceValue: unknown): string {
  const serialNumber = Number(sourceValue);
  if (!(serialNumber > 36_000 && serialNumber < 73_000)) return '';
  const day = new Date((Math.floor(serialNumber) - 25_569) * dayMs).toISOString().slice(0, 10);
  return `; if it is the serial number that a spreadsheet stores for ${day}, format the column as dates there and export it again`;
}

const formatLongDay = (timeMs: number) =>
  new Date(timeMs).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

let dateNames: { months: Map<string, number>; weekdays: Set<string> } | undefined;

/** Returns the long and short names of months and weekdays in 14 languages that many advertisers use. */
function getDateNames() {
  if (dateNames) return dateNames;
  const months = new Map<string, number>([['sept', 9]]);
  const weekdays = new Set<string>();
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'da', 'nb', 'cs', 'tr', 'ru']) {
    for (const nameLength of ['long', 'short'] as const) {
      // Some languages change the name of a month inside a date, e.g. Polish `styczeń` to `stycznia`. Therefore collect
      // both forms.
      const dateFormat = new Intl.DateTimeFormat(language, { day: 'numeric', month: nameLength, timeZone: 'UTC' });
      const monthFormat = new Intl.DateTimeFormat(language, { month: nameLength, timeZone: 'UTC' });
      const weekdayFormat = new Intl.DateTimeFormat(language, { weekday: nameLength, timeZone: 'UTC' });
      for (let monthIndex = 0; monthIndex < 12; monthIndex++) {
        const date = new Date(Date.UTC(2026, monthIndex, 1 + monthIndex));
        const nameInDate = dateFormat.formatToParts(date).find(({ type }) => type === 'month')?.value ?? '';
        for (const name of [nameInDate, monthFormat.format(date)].map(normalizeDateName))
          if (!months.has(name)) months.set(name, monthIndex + 1);
      }
      for (let day = 1; day <= 7; day++)
        weekdays.add(normalizeDateName(weekdayFormat.format(new Date(Date.UTC(2026, 0, day)))));
    }
  }
  dateNames = { months, weekdays };
  return dateNames;
}

const normalizeDateName = (name: string) => name.toLowerCase().replace(/\.$/, '');
