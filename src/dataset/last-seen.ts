import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import { formatIsoTime } from './tables.ts';

/** The first and the last time at which any ad of a gathering was seen, as cells. Null if no ad has such a date. */
export interface SeenRange {
  lastSeenFrom: string | null;
  lastSeenTo: string | null;
}

/**
 * Returns when the ads of each gathering were last seen, by the id of the gathering. A time after the reading counts as
 * the time of the reading, because another call may have read the ad again since.
 * @param lastSeenById the time at which each ad was last seen, in milliseconds since the epoch, by `normalizeAdId`
 */
export async function findSeenRanges(
  gatherings: readonly Gathering[],
  lastSeenById: (id: string) => number | null | undefined,
): Promise<ReadonlyMap<string, SeenRange>> {
  const ranges = new Map<string, SeenRange>();
  const pause = createEventLoopYielder();
  for (const { id, adIds, state } of gatherings) {
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const adId of adIds) {
      const seenAt = lastSeenById(adId);
      if (typeof seenAt !== 'number') continue;
      const time = Math.min(seenAt, state.gatheredAt);
      first = Math.min(first, time);
      last = Math.max(last, time);
    }
    const isKnown = first <= last;
    ranges.set(id, {
      lastSeenFrom: isKnown ? formatIsoTime(first) : null,
      lastSeenTo: isKnown ? formatIsoTime(last) : null,
    });
    await pause();
  }
  return ranges;
}

/**
 * Returns the gathering that read each ad last, by `normalizeAdId`. An ad of a question in parts belongs to the whole
 * question, because only the whole question shows until when the service saw ads.
 */
export async function findLastGatherings({
  gatherings,
}: Pick<DatasetContents, 'gatherings'>): Promise<ReadonlyMap<string, Gathering>> {
  const parts = new Set(gatherings.flatMap((gathering) => gathering.parts));
  const newestFirst = gatherings
    .filter(({ id }) => !parts.has(id))
    .sort((left, right) => right.state.gatheredAt - left.state.gatheredAt || right.order - left.order);
  const lastGatherings = new Map<string, Gathering>();
  const pause = createEventLoopYielder();
  for (const gathering of newestFirst) {
    for (const adId of gathering.adIds) if (!lastGatherings.has(adId)) lastGatherings.set(adId, gathering);
    await pause();
  }
  return lastGatherings;
}

/**
 * Returns whether an ad was running when its gathering read it, measured against the last day on which the gathering
 * saw any ad. A service that sends an archive may have stopped looking months before the reading, so `active` is unknown
 * for most of its ads. Returns null if the day is unknown.
 */
export function computeActiveWhenLastRead(
  { lastSeenAt, endDate }: { lastSeenAt: string | null; endDate: string | null },
  lastSeenTo: string | null,
): number | null {
  if (lastSeenTo === null) return null;
  const lastDay = getDay(lastSeenTo);
  if (endDate !== null && getDay(endDate) < lastDay) return 0;
  return lastSeenAt === null ? null : Number(getDay(lastSeenAt) >= lastDay);
}

/** Returns the day of an ISO date and time. */
const getDay = (time: string): string => time.slice(0, 10);
