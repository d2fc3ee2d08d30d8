import { dayMs } from './durations.ts';

/** The dates of an ad, as the service sent them. They can have any type. */
export interface AdDates {
  startedAt?: unknown;
  lastSeenAt?: unknown;
  endDate?: unknown;
}

/**
 * Formats a date as a day in UTC, e.g. `2026-07-01`.
 * @param date an ISO date and time, or milliseconds since the Unix epoch
 * @returns undefined if the value is not a date
 */
export function formatDay(date: unknown): string | undefined {
  if (typeof date === 'string' && alwaysValidUtcDatePattern.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : parseTime(date);
  if (time === undefined || !(Math.abs(time) <= maxTimestamp)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/**
 * Formats the date in a field from the service as a day in UTC. Returns undefined for a number, because the API
 * document defines dates of ads as texts. The unit of a number is unknown.
 */
export const formatDayOfField = (fieldValue: unknown): string | undefined =>
  typeof fieldValue === 'string' ? formatDay(fieldValue) : undefined;

/** Formats a time in UTC to the minute, e.g. `2026-07-01 14:02 UTC`. */
export const formatMinute = (time: string | number) =>
  `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/**
 * The earliest and the latest day on which the ads of a list were last seen running. `adCount` is the number of ads for
 * which this day is known.
 */
export interface LastSeenDays {
  firstDay: string;
  lastDay: string;
  adCount: number;
  isKnownForAll: boolean;
}

/** Summarizes the days on which ads were last seen running. Returns undefined if the day is unknown for all ads. */
export function summarizeLastSeenDays(ads: readonly AdDates[]): LastSeenDays | undefined {
  const days = ads.flatMap(({ lastSeenAt }) => formatDayOfField(lastSeenAt) ?? []).sort();
  const [firstDay, lastDay] = [days[0], days.at(-1)];
  if (firstDay === undefined || lastDay === undefined) return undefined;
  return { firstDay, lastDay, adCount: days.length, isKnownForAll: days.length === ads.length };
}

/**
 * Formats the days on which ads were last seen running, e.g. `2 of them last seen 2026-05-30 to 2026-06-16`. Omits the
 * number of ads if the day is known for all ads.
 */
export function formatLastSeenDays({ firstDay, lastDay, adCount, isKnownForAll }: LastSeenDays): string {
  const daysText = firstDay === lastDay ? firstDay : `${firstDay} to ${lastDay}`;
  return `${isKnownForAll ? '' : `${adCount} of them `}last seen ${daysText}`;
}

/**
 * Counts the calendar days between two dates. Returns undefined if one of the dates is invalid or if `endDate` is
 * before `startDate`.
 */
export function countDaysBetween(startDate: string, endDate: string): number | undefined {
  const [startTime, endTime] = [parseTime(startDate), parseTime(endDate)];
  const days = startTime === undefined || endTime === undefined ? -1 : countDays(startTime, endTime);
  return days >= 0 ? days : undefined;
}

/**
 * Parses a date and returns milliseconds since the Unix epoch. Interprets a time without a UTC offset as UTC. Returns
 * undefined if the text is not a date, if its day does not exist, or if the year is not between 0 and 9999.
 */
export function parseTime(date: unknown): number | undefined {
  if (typeof date !== 'string' || date.length > maxDateChars) return;
  const time = Date.parse(alwaysValidUtcDatePattern.test(date) ? date : addUtcOffset(date.trim()));
  return time >= firstTimestamp && time <= lastTimestamp ? time : undefined;
}

function addUtcOffset(text: string): string {
  const [, day, time = '00:00', offset = 'Z', hours, minutes = '00'] = isoDatePattern.exec(text) ?? [];
  // Every month has at least 28 days, so most days need no check.
  if (day !== undefined)
    return day.slice(-2) <= '28' || isExistingDay(day)
      ? `${day}T${time.replace(',', '.')}${hours === undefined ? offset : `${hours}:${minutes}`}`
      : '';
  // `Date.parse` also accepts formats such as `1 June 2025` or `Sun, 01 Jun 2025 00:30:00 GMT`, and even finds dates in
  // ordinary text. For a text without a year, therefore return an empty string, which `Date.parse` rejects.
  if (!yearPattern.test(text)) return '';
  const textWithOffset = zonePattern.test(text) ? text : `${text} UTC`;
  return hasNonexistentDay(textWithOffset) ? '' : textWithOffset;
}

/**
 * Returns true if the day of a date does not exist, as in `30 Feb 2026` or `2026/02/30`. `Date.parse` turns this day
 * into 2 March. Therefore compares the day with the length of its month, which `Date.parse` finds for the 15th day.
 */
function hasNonexistentDay(text: string): boolean {
  const [day] = lateDayPattern.exec(text) ?? [];
  if (day === undefined) return false;
  const monthMiddle = new Date(Date.parse(text.replace(lateDayPattern, '15')));
  const monthEnd = new Date(monthMiddle);
  monthEnd.setUTCMonth(monthMiddle.getUTCMonth() + 1, 0);
  return Number(day) > monthEnd.getUTCDate();
}

const maxDateChars = 100;
const isoDatePattern = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(Z|([+-]\d\d)(?::?(\d\d))?)?)?$/i;
/** Matches a day after the 28th, but no minutes, seconds or fraction of a second. */
const lateDayPattern = /(?<!\d|:|:\d\d\.)(?:29|30|31)(?![\d:])/;
const yearPattern = /\b\d{4}\b/;
const zonePattern = /\b(?:UTC?|GMT|Z|[ECMP][SD]T)\b|:\d\d ?[+-]\d/i;
const firstTimestamp = Date.parse('0000-01-01T00:00:00Z');
const lastTimestamp = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Matches a UTC date, such as `2026-06-14`, whose day is at most 28 and therefore exists in every month. Most dates
 * match and need no slower validation.
 */
const alwaysValidUtcDatePattern =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?Z)?$/;
const maxTimestamp = 8.64e15;

/**
 * Returns true if a day in ISO format, such as `2026-02-28`, exists. JavaScript accepts 31 February and turns it into 3
 * March. Therefore compares the parsed day with the text.
 */
export function isExistingDay(day: string): boolean {
  const dayStartMs = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(dayStartMs) && new Date(dayStartMs).toISOString().startsWith(day);
}

/** Counts the calendar days in UTC between two times. Both times are in milliseconds since the Unix epoch. */
export const countDays = (startMs: number, endMs: number) => Math.floor(endMs / dayMs) - Math.floor(startMs / dayMs);
