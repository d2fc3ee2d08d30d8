import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import { formatIsoTime } from './tables.ts';

/**
 * The first and the last date on which any ad of a search was seen running, as table cells. Both are null if no ad has
 * such a date.
 */
export interface LastSeenRange {
  lastSeenFrom: string | null;
  lastSeenTo: string | null;
}

/**
 * Returns the first and the last date on which any ad of each gathering (the stored ads of one search) was seen
 * running, by gathering id. A date after the gathering comes from a later call, so the time of the gathering is used
 * instead.
 * @param getLastSeenTime returns when an ad was last seen, in milliseconds since the Unix epoch; the ad id is in lower
 * case
 */
export async function findLastSeenRanges(
  gatherings: readonly Gathering[],
  getLastSeenTime: (id: string) => number | null | undefined,
): Promise<ReadonlyMap<string, LastSeenRange>> {
  const lastSeenRanges = new Map<string, LastSeenRange>();
  const yieldToEventLoop = createEventLoopYielder();
  for (const { id, adIds, state } of gatherings) {
    let [earliest, latest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const adId of adIds) {
      const lastSeenTime = getLastSeenTime(adId);
      if (typeof lastSeenTime !== 'number') continue;
      const time = Math.min(lastSeenTime, state.gatheredAt);
      earliest = Math.min(earliest, time);
      latest = Math.max(latest, time);
    }
    const hasDates = earliest <= latest;
    lastSeenRanges.set(id, {
      lastSeenFrom: hasDates ? formatIsoTime(earliest) : null,
      lastSeenTo: hasDates ? formatIsoTime(latest) : null,
    });
    await yieldToEventLoop();
  }
  return lastSeenRanges;
}

/**
 * Returns, for each ad, the gathering (the stored ads of one search) that read the ad last. The keys are ad ids in
 * lower case. The parts (smaller searches) of a split search do not count, because only the whole search shows how long
 * the service observed ads.
 */
export async function findLastGatherings({
  gatherings,
}: Pick<DatasetContents, 'gatherings'>): Promise<ReadonlyMap<string, Gathering>> {
  const partIds = new Set(gatherings.flatMap((gathering) => gathering.partGatheringIds));
  const gatheringsNewestFirst = gatherings
    .filter(({ id }) => !partIds.has(id))
    .sort(
      (left, right) => right.state.gatheredAt - left.state.gatheredAt || right.sequenceNumber - left.sequenceNumber,
    );
  const lastGatheringByAd = new Map<string, Gathering>();
  const yieldToEventLoop = createEventLoopYielder();
  for (const gathering of gatheringsNewestFirst) {
    for (const adId of gathering.adIds) if (!lastGatheringByAd.has(adId)) lastGatheringByAd.set(adId, gathering);
    await yieldToEventLoop();
  }
  return lastGatheringByAd;
}

/**
 * Returns 1 if an ad was running when its search was read, 0 if not, and null if unknown. Compares the ad's dates with
 * `lastSeenTo`, the last date on which any ad of the search was seen.
 *
 * This value is often known even if `active` is unknown, because a service may have stopped observing its ads months
 * before they were read.
 */
export function computeActiveWhenLastRead(
  { lastSeenAt, endDate }: { lastSeenAt: string | null; endDate: string | null },
  lastSeenTo: string | null,
): number | null {
  if (lastSeenTo === null) return null;
  const lastDay = getDatePart(lastSeenTo);
  if (endDate !== null && getDatePart(endDate) < lastDay) return 0;
  return lastSeenAt === null ? null : Number(getDatePart(lastSeenAt) >= lastDay);
}

/** Returns the date part of an ISO date and time, e.g. `2026-06-01`. */
const getDatePart = (isoTime: string): string => isoTime.slice(0, 10);
