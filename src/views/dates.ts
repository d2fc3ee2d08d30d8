import { dayMs } from './durations.ts';

/** The dates of an ad, as the service sent them. */
export interface RunDates {
  startedAt?: unknown;
  lastSeenAt?: unknown;
  endDate?: unknown;
}

/**
 * Formats a date as `2026-07-01`, in UTC.
 * @param date an ISO date and time, or milliseconds since the epoch
 * @returns undefined if the value is not a date
 */
export function formatDay(date: unknown): string | undefined {
  if (typeof date === 'string' && utcDate.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : parseTime(date);
  if (time === undefined || !(Math.abs(time) <= maxTimestamp)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/** Formats a time to the minute, such as `2026-07-01 14:02 UTC`. */
export const formatMinute = (at: string | number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** The first and last day on which ads were last seen, and the number of ads with such a date. */
export interface SeenDays {
  first: string;
  last: string;
  ads: number;
  isAll: boolean;
}

/** Finds the days on which ads were last seen. Returns undefined if no ad has such a date. */
export function findSeenDays(ads: readonly RunDates[]): SeenDays | undefined {
  const days = ads.flatMap(({ lastSeenAt }) => formatDay(lastSeenAt) ?? []).sort();
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { first, last, ads: days.length, isAll: days.length === ads.length };
}

/**
 * Formats the days on which ads were last seen, for example `2 of them last seen 2026-05-30 to 2026-06-16`. The number
 * is left out if all ads have a date.
 */
export function formatSeenDays({ first, last, ads, isAll }: SeenDays): string {
  const days = first === last ? first : `${first} to ${last}`;
  return `${isAll ? '' : `${ads} of them `}last seen ${days}`;
}

/**
 * Returns the number of calendar days between two dates. Returns undefined if a date is invalid or if the dates are in
 * reverse order.
 */
export function countDaysBetween(from: string, to: string): number | undefined {
  const [start, end] = [parseTime(from), parseTime(to)];
  const between = start === undefined || end === undefined ? -1 : countDays(start, end);
  return between >= 0 ? between : undefined;
}

/**
 * Parses a date and returns milliseconds since the epoch. A time without an offset is in UTC. Returns undefined for a
 * text that is not a date, and for years outside 0 to 9999.
 */
export function parseTime(date: unknown): number | undefined {
  if (typeof date !== 'string' || date.length > maxDateChars) return;
  const time = Date.parse(utcDate.test(date) ? date : addUtcOffset(date.trim()));
  return time >= firstTimestamp && time <= lastTimestamp ? time : undefined;
}

function addUtcOffset(text: string): string {
  const [, day, time = '00:00', zone = 'Z', hours, minutes = '00'] = isoDate.exec(text) ?? [];
  if (day !== undefined) return `${day}T${time.replace(',', '.')}${hours === undefined ? zone : `${hours}:${minutes}`}`;
  // `Date.parse` also reads other formats, such as `1 June 2025` or `Sun, 01 Jun 2025 00:30:00 GMT`. A text without a
  // year is refused, because it could be any text.
  if (!yearPattern.test(text)) return '';
  return zonePattern.test(text) ? text : `${text} UTC`;
}

const maxDateChars = 100;
const isoDate = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(Z|([+-]\d\d)(?::?(\d\d))?)?)?$/i;
const yearPattern = /\b\d{4}\b/;
const zonePattern = /\b(?:UTC?|GMT|Z|[ECMP][SD]T)\b|:\d\d ?[+-]\d/i;
const firstTimestamp = Date.parse('0000-01-01T00:00:00Z');
const lastTimestamp = Date.parse('9999-12-31T23:59:59.999Z');

/** Matches a date in UTC that exists in every month, which needs no further check. */
const utcDate = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?Z)?$/;
const maxTimestamp = 8.64e15;

/** Returns the number of calendar days from one time to another, both in milliseconds since the epoch. */
export const countDays = (from: number, to: number) => Math.floor(to / dayMs) - Math.floor(from / dayMs);
