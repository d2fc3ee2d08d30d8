/**
 * How long an ad has run and whether it is still running, as far as its three dates tell. Days are calendar days in
 * UTC, like the dates shown, so that readers who count get the same number.
 *
 * - `daysRunning`: days from `startedAt` to the end. The end is `endDate` if that is past, and otherwise the last time
 *   it was seen. An ad seen on a single day has run 0 days.
 * - `stillRunning`: false if `endDate` is past; true if `endDate` lies ahead or the ad was seen within two days. Otherwise
 *   it is unknown, because the service only looks from time to time.
 * - `daysSinceSeen`: lets the reader judge.
 */
export interface Run {
  daysRunning?: number;
  stillRunning?: boolean;
  daysSinceSeen?: number;
}

export interface RunDates {
  startedAt?: unknown;
  lastSeenAt?: unknown;
  endDate?: unknown;
}

export function runOf(dates: RunDates, now: number): Run {
  const started = timeOf(dates.startedAt);
  const seen = timeOf(dates.lastSeenAt);
  const end = timeOf(dates.endDate);
  const ended = end !== undefined && end <= now;
  const last = ended ? end : seen;
  const sinceSeen = seen === undefined ? undefined : Math.max(0, days(seen, now));
  const run: Run = {};
  const ran = started === undefined || last === undefined ? -1 : days(started, last);
  if (ran >= 0) run.daysRunning = ran;
  if (end !== undefined) run.stillRunning = !ended;
  else if (sinceSeen !== undefined && sinceSeen <= MAX_DAYS_SINCE_SEEN) run.stillRunning = true;
  if (sinceSeen !== undefined && !ended) run.daysSinceSeen = sinceSeen;
  return run;
}

/** `2026-07-01` from an ISO date-time or milliseconds; undefined if it is not a date. */
export function dayOf(date: unknown): string | undefined {
  if (typeof date === 'string' && UTC_DATE.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : timeOf(date);
  if (time === undefined || !(Math.abs(time) <= MAX_TIME)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/** Days from one day or date-time to another; undefined if the second is earlier. */
export function daysBetween(from: string, to: string): number | undefined {
  const between = days(Date.parse(from), Date.parse(to));
  return between >= 0 ? between : undefined;
}

const UTC_DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T[\d:.]+Z)?$/;
const MAX_DAYS_SINCE_SEEN = 2;
const DAY = 86_400_000;
const MAX_TIME = 8.64e15;

const days = (from: number, to: number) => Math.floor(to / DAY) - Math.floor(from / DAY);

function timeOf(date: unknown): number | undefined {
  const time = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
