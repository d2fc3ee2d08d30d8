import * as z from 'zod';
import { countDays, parseTime, type RunDates } from './dates.ts';
import type { DataOf } from './fields.ts';

/**
 * How long an ad has been running, and whether it is still running. Days are calendar days in UTC, like the dates in
 * results, so that readers who count the days get the same number. An ad without an end date counts as running if it
 * was seen in the last two days. After that, its state is unknown, because the service does not check every ad daily.
 */
export const RunView = z.looseObject({
  daysRunning: z
    .number()
    .optional()
    .describe('Days from the start of the ad to its end, or else to the day it was last seen. 0 on the first day.'),
  stillRunning: z.boolean().optional().describe('Whether the ad is still running. Missing if unknown.'),
  daysSinceSeen: z.number().optional().describe('Days since the service last saw the ad.'),
});
/** How long an ad has been running, and whether it is still running. */
export type Run = DataOf<typeof RunView>;

/** An ad without an end date counts as running until this many calendar days after it was last seen. */
export const maxDaysSinceSeen = 2;

/**
 * Computes how long an ad has been running, and whether it is still running.
 * @param now time at which the ad was read, in milliseconds since the Unix epoch. If `lastSeenAt` is later, `now` is
 * used instead, so that days in the future are not counted.
 */
export function computeRun(dates: RunDates, now: number): Run {
  const startedAt = parseTime(dates.startedAt);
  const lastSeen = getEarlier(parseTime(dates.lastSeenAt), now);
  const end = parseTime(dates.endDate);
  const hasEnded = end !== undefined && end <= now;
  const lastTimeRunning = hasEnded ? end : lastSeen;
  const sinceSeen = lastSeen === undefined ? undefined : countDays(lastSeen, now);
  const run: Run = {};
  const elapsedDays =
    startedAt === undefined || lastTimeRunning === undefined ? -1 : countDays(startedAt, lastTimeRunning);
  if (elapsedDays >= 0) run.daysRunning = elapsedDays;
  if (end !== undefined) run.stillRunning = !hasEnded;
  else if (sinceSeen !== undefined && sinceSeen <= maxDaysSinceSeen) run.stillRunning = true;
  if (sinceSeen !== undefined && !hasEnded) run.daysSinceSeen = sinceSeen;
  return run;
}

const getEarlier = (time: number | undefined, now: number): number | undefined =>
  time === undefined ? undefined : Math.min(time, now);
