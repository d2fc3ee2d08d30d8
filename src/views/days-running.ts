import * as z from 'zod';
import { countDays, parseTime, type RunDates } from './dates.ts';
import type { DataOf } from './fields.ts';

/**
 * How long an ad ran, and whether it is running. Days are calendar days in UTC, like the dates in results, so that
 * readers who count days get the same number. An ad without an end date counts as running if it was seen in the last
 * two days. After that its state is unknown, because the service looks at each ad only from time to time.
 */
export const RunView = z.looseObject({
  daysRunning: z
    .number()
    .optional()
    .describe('Days from the start of the ad to its end, or else to the day it was last seen. 0 on the first day.'),
  stillRunning: z.boolean().optional().describe('Whether the ad is still running. Missing if unknown.'),
  daysSinceSeen: z.number().optional().describe('Days since the service last saw the ad.'),
});
/** The run of an ad. */
export type Run = DataOf<typeof RunView>;

/** The most calendar days since an ad without an end date was last seen for it to count as running. */
export const maxDaysSinceSeen = 2;

/**
 * Returns how long an ad ran, and whether it is still running.
 * @param now the time of the reading, in milliseconds since the epoch. A later `lastSeenAt` counts as this time, so
 *   days in the future never count as days running.
 */
export function computeRun(dates: RunDates, now: number): Run {
  const started = parseTime(dates.startedAt);
  const lastSeen = getEarlier(parseTime(dates.lastSeenAt), now);
  const end = parseTime(dates.endDate);
  const ended = end !== undefined && end <= now;
  const lastTimeRunning = ended ? end : lastSeen;
  const sinceSeen = lastSeen === undefined ? undefined : countDays(lastSeen, now);
  const run: Run = {};
  const elapsedDays = started === undefined || lastTimeRunning === undefined ? -1 : countDays(started, lastTimeRunning);
  if (elapsedDays >= 0) run.daysRunning = elapsedDays;
  if (end !== undefined) run.stillRunning = !ended;
  else if (sinceSeen !== undefined && sinceSeen <= maxDaysSinceSeen) run.stillRunning = true;
  if (sinceSeen !== undefined && !ended) run.daysSinceSeen = sinceSeen;
  return run;
}

const getEarlier = (time: number | undefined, now: number): number | undefined =>
  time === undefined ? undefined : Math.min(time, now);
