import * as z from 'zod';
import { createLazyGetter } from '../lazy-getter.ts';
import { type AdDates, countDays, parseTime } from './dates.ts';
import type { DataOf } from './fields.ts';

/**
 * Schema of the time for which an ad has been running, and whether it is still running. Days are calendar days in UTC,
 * like the dates in results, so that readers who count the days get the same number.
 *
 * An ad without an end date counts as running if it was seen in the last two days. After that, its state is unknown,
 * because the service does not check every ad daily.
 */
export const getRunningTimeSchema = createLazyGetter(() =>
  z.looseObject({
    daysRunning: z
      .number()
      .optional()
      .describe('Days from the start of the ad to its end, or else to the day it was last seen. 0 on the first day.'),
    stillRunning: z.boolean().optional().describe('Whether the ad is still running. Missing if unknown.'),
    daysSinceSeen: z.number().optional().describe('Days since the service last saw the ad.'),
  }),
);
/**
 * The time for which an ad has been running, and whether it is still running, e.g. `{ daysRunning: 92, stillRunning:
 * true }`.
 */
export type RunningTime = DataOf<ReturnType<typeof getRunningTimeSchema>>;

/** The number of calendar days for which an ad without an end date still counts as running after it was last seen. */
export const maxDaysSinceSeen = 2;

/**
 * Computes how long an ad has been running, and whether it is still running.
 * @param now the time at which the ad was read, in milliseconds since the Unix epoch. If `lastSeenAt` is later, `now`
 * is used instead, so that days in the future are not counted.
 */
export function computeRunningTime(dates: AdDates, now: number): RunningTime {
  const startedAt = parseTime(dates.startedAt);
  const lastSeenAt = capAtNow(parseTime(dates.lastSeenAt), now);
  const endedAt = parseTime(dates.endDate);
  const hasEnded = endedAt !== undefined && endedAt <= now;
  const lastTimeRunning = hasEnded ? endedAt : lastSeenAt;
  const daysSinceSeen = lastSeenAt === undefined ? undefined : countDays(lastSeenAt, now);
  const runningTime: RunningTime = {};
  const elapsedDays =
    startedAt === undefined || lastTimeRunning === undefined ? -1 : countDays(startedAt, lastTimeRunning);
  if (elapsedDays >= 0) runningTime.daysRunning = elapsedDays;
  if (endedAt !== undefined) runningTime.stillRunning = !hasEnded;
  else if (daysSinceSeen !== undefined && daysSinceSeen <= maxDaysSinceSeen) runningTime.stillRunning = true;
  if (daysSinceSeen !== undefined && !hasEnded) runningTime.daysSinceSeen = daysSinceSeen;
  return runningTime;
}

const capAtNow = (time: number | undefined, now: number): number | undefined =>
  time === undefined ? undefined : Math.min(time, now);
