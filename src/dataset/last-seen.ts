import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import { formatIsoTime } from './tables.ts';

/**
 * The first and the last date on which the service saw any ad of a gathering running, as table cells. Null if no ad has
 * such a date.
 */
export interface SeenRange {
  lastSeenFrom: string | null;
  lastSeenTo: string | null;
}

/**
 * Returns when the ads of each gathering were last seen running, by the id of the gathering. A date after the gathering
 * was read is replaced by the time of reading, because another call may have read the ad again since then.
 * @param lastSeenById returns when an ad was last seen, in milliseconds since the epoch, for a normalized ad id
 */
export async function findSeenRanges(
  gatherings: readonly Gathering[],
  lastSeenById: (id: string) => number | null | undefined,
): Promise<ReadonlyMap<string, SeenRange>> {
  const ranges = new Map<string, SeenRange>();
  const pause = createEventLoopYielder();
  for (const { id, adIds, state } of gatherings) {
    let [earliest, latest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const adId of adIds) {
      const seenAt = lastSeenById(adId);
      if (typeof seenAt !== 'number') continue;
      const time = Math.min(seenAt, state.gatheredAt);
      earliest = Math.min(earliest, time);
      latest = Math.max(latest, time);
    }
    const isKnown = earliest <= latest;
    ranges.set(id, {
      lastSeenFrom: isKnown ? formatIsoTime(earliest) : null,
      lastSeenTo: isKnown ? formatIsoTime(latest) : null,
    });
    await pause();
  }
  return ranges;
}

/**
 * Returns, by normalized ad id, the gathering that read each ad last. For a question with `split`, this is the
 * gathering of the whole question, because only the whole question shows up to which date the service saw ads.
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
 * Computes whether an ad was running when its gathering was read: 1, 0, or null if unknown. Compares the ad's dates
 * with `lastSeenTo`, the last day on which any ad of the gathering was seen.
 *
 * A service with archived ads may have stopped observing them months before the gathering. `active` is then unknown for
 * most ads, while this value is known.
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

/** Returns the date part of an ISO date and time. */
const getDay = (time: string): string => time.slice(0, 10);
