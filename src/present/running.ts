/**
 * How long an ad has run and whether it still does, as far as its three dates say so. Days are calendar days of UTC:
 * the dates are shown as such, and whoever counts between them gets the same.
 *
 * - `daysRunning`: days from `startedAt` to its end. The end is `endDate` once that is past; else the last time
 *   it was seen. An ad seen on one day only has run 0 days.
 * - `stillRunning`: false once `endDate` is past; true when `endDate` lies ahead or the ad was seen within two days.
 *   An ad last seen earlier may run or not: the service looks from time to time, so nothing is claimed.
 * - `daysSinceSeen` lets the reader judge.
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
  else if (sinceSeen !== undefined && sinceSeen <= SEEN_LATELY) run.stillRunning = true;
  if (sinceSeen !== undefined && !ended) run.daysSinceSeen = sinceSeen;
  return run;
}

/** `2026-07-01` of an ISO date-time or of milliseconds; nothing of what is no date. */
export function dayOf(date: unknown): string | undefined {
  if (typeof date === 'string' && UTC_DATE.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : timeOf(date);
  if (time === undefined || !(Math.abs(time) <= MAX_TIME)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/** Days from one day or date-time to another, none if it lies before. */
export function daysBetween(from: string, to: string): number | undefined {
  const between = days(Date.parse(from), Date.parse(to));
  return between >= 0 ? between : undefined;
}

const UTC_DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T[\d:.]+Z)?$/;
const SEEN_LATELY = 2;
const DAY = 86_400_000;
const MAX_TIME = 8.64e15;

const days = (from: number, to: number) => Math.floor(to / DAY) - Math.floor(from / DAY);

function timeOf(date: unknown): number | undefined {
  const time = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
