import * as z from 'zod';
import { dayMs } from './durations.ts';
import type { DataOf } from './fields.ts';

/**
 * How long an ad ran, and whether it runs. Days are calendar days in UTC, like the dates shown, so that readers who
 * count get the same number. An ad without an end that was seen in the last two days runs. Later its state is unknown,
 * because the service looks at each ad only now and then.
 */
export const RunView = z.looseObject({
  daysRunning: z.number().optional().describe('from its start to its end or when it was last seen; same day: 0'),
  stillRunning: z.boolean().optional().describe('missing: not known'),
  daysSinceSeen: z.number().optional(),
});
export type Run = DataOf<typeof RunView>;

export interface RunDates {
  startedAt?: unknown;
  lastSeenAt?: unknown;
  endDate?: unknown;
}

/**
 * Returns how long an ad has run, and whether it still runs.
 * @param now the time of the reading, in milliseconds since the epoch. Nothing was seen after it, so a later
 *   `lastSeenAt` counts as that time, and days that have not happened never count as days running.
 */
export function computeRun(dates: RunDates, now: number): Run {
  const started = parseTime(dates.startedAt);
  const lastSeen = earlierOf(parseTime(dates.lastSeenAt), now);
  const end = parseTime(dates.endDate);
  const ended = end !== undefined && end <= now;
  const last = ended ? end : lastSeen;
  const sinceSeen = lastSeen === undefined ? undefined : days(lastSeen, now);
  const run: Run = {};
  const ran = started === undefined || last === undefined ? -1 : days(started, last);
  if (ran >= 0) run.daysRunning = ran;
  if (end !== undefined) run.stillRunning = !ended;
  else if (sinceSeen !== undefined && sinceSeen <= maxDaysSinceSeen) run.stillRunning = true;
  if (sinceSeen !== undefined && !ended) run.daysSinceSeen = sinceSeen;
  return run;
}

const earlierOf = (time: number | undefined, now: number): number | undefined =>
  time === undefined ? undefined : Math.min(time, now);

/** `2026-07-01` from an iso date-time or milliseconds; undefined if it is not a date. */
export function formatDay(date: unknown): string | undefined {
  if (typeof date === 'string' && utcDate.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : parseTime(date);
  if (time === undefined || !(Math.abs(time) <= maxTime)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/** Returns a time to the minute, such as `2026-07-01 14:02 UTC`. */
export const formatMinute = (at: string | number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** The first and last day on which ads were last seen, and for how many ads a date tells it. */
export interface SeenDays {
  first: string;
  last: string;
  ads: number;
  isAll: boolean;
}

export function findSeenDays(ads: readonly RunDates[]): SeenDays | undefined {
  const days = ads.flatMap(({ lastSeenAt }) => formatDay(lastSeenAt) ?? []).sort();
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { first, last, ads: days.length, isAll: days.length === ads.length };
}

/** `2 of them last seen 2026-05-30 to 2026-06-16`, or on the one day; without a number if it is all of them. */
export function formatSeenDays({ first, last, ads, isAll }: SeenDays): string {
  const days = first === last ? first : `${first} to ${last}`;
  return `${isAll ? '' : `${ads} of them `}last seen ${days}`;
}

/** Returns the calendar days between two dates; undefined if one is no date, or if they are in the wrong order. */
export function countDaysBetween(from: string, to: string): number | undefined {
  const [start, end] = [parseTime(from), parseTime(to)];
  const between = start === undefined || end === undefined ? -1 : days(start, end);
  return between >= 0 ? between : undefined;
}

/** A time without an offset is UTC. Undefined if it is no date, or one in a year of other than four digits. */
export function parseTime(date: unknown): number | undefined {
  if (typeof date !== 'string' || date.length > maxDate) return;
  const time = Date.parse(utcDate.test(date) ? date : inUtc(date.trim()));
  return time >= firstTime && time <= lastTime ? time : undefined;
}

function inUtc(text: string): string {
  const [, day, time = '00:00', zone = 'Z', hours, minutes = '00'] = iso.exec(text) ?? [];
  if (day !== undefined) return `${day}T${time.replace(',', '.')}${hours === undefined ? zone : `${hours}:${minutes}`}`;
  // `1 June 2025`, `Sun, 01 Jun 2025 00:30:00 GMT`: what holds no year could be any text.
  if (!yearPattern.test(text)) return '';
  return zonePattern.test(text) ? text : `${text} UTC`;
}

const maxDate = 100;
const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(Z|([+-]\d\d)(?::?(\d\d))?)?)?$/i;
const yearPattern = /\b\d{4}\b/;
const zonePattern = /\b(?:UTC?|GMT|Z|[ECMP][SD]T)\b|:\d\d ?[+-]\d/i;
const firstTime = Date.parse('0000-01-01T00:00:00Z');
const lastTime = Date.parse('9999-12-31T23:59:59.999Z');

const utcDate = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?Z)?$/;
/** How many calendar days ago an ad without an end may have been seen last to count as running. */
export const maxDaysSinceSeen = 2;
const maxTime = 8.64e15;

const days = (from: number, to: number) => Math.floor(to / dayMs) - Math.floor(from / dayMs);
