import { maxDaysSinceSeen } from '../views/days-running.ts';
import { dayMs } from '../views/durations.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import { formatIsoTime } from './tables.ts';

/** An ad whose last-seen day is compared with the day of its reading. Times are in milliseconds since the epoch. */
interface SeenAd {
  pageId: string | null;
  pageName: string | null;
  lastSeenAt: number | null;
  readAt: number;
}

/** An advertiser whose ads the service saw for the last time on one day, long before they were read. */
export interface OneDayAdvertiser {
  pageId: string | null;
  pageName: string | null;
  /** The number of ads of the advertiser. */
  ads: number;
  /** How many of these ads were last seen on `day`. */
  seenOnDay: number;
  day: string;
}

/** The smallest share and the smallest number of an advertiser's ads that share their last-seen day. */
const minShare = 0.8;
const minAds = 10;

/**
 * Finds the advertisers whose ads were nearly all last seen on one day that is more than two days before the reading.
 * Such ads come from one look at the advertiser: the service did not see how they went on, and it holds none of the ads
 * that had ended before. On a live service, running ads are all last seen on the day of the reading, so this
 * day does not count.
 * @returns the advertisers by their keys, the one with the most ads first
 */
export function findOneDayAdvertisers(ads: readonly SeenAd[]): ReadonlyMap<string, OneDayAdvertiser> {
  const findAdvertiserKey = createAdvertiserKeyFinder(ads);
  const advertisers = new Map<string, { pageId: string | null; pageName: string | null; ads: number; days: Days }>();
  for (const ad of ads) {
    const key = findAdvertiserKey(ad);
    if (key === null) continue;
    const advertiser = advertisers.get(key) ?? { pageId: null, pageName: null, ads: 0, days: new Map() };
    advertiser.pageId ??= ad.pageId;
    // Ads are sorted by the time of their newest version, so a renamed page ends up with its newest name.
    advertiser.pageName = ad.pageName ?? advertiser.pageName;
    advertiser.ads++;
    const day = findDayBeforeReading(ad);
    if (day !== undefined) advertiser.days.set(day, (advertiser.days.get(day) ?? 0) + 1);
    advertisers.set(key, advertiser);
  }
  const found = [...advertisers].flatMap(([key, { days, ...advertiser }]): [string, OneDayAdvertiser][] => {
    const [[day, seenOnDay] = [0, 0]] = [...days].sort(([, left], [, right]) => right - left);
    if (seenOnDay < minAds || seenOnDay < minShare * advertiser.ads) return [];
    return [[key, { ...advertiser, seenOnDay, day: formatIsoTime(day * dayMs).slice(0, 10) }]];
  });
  return new Map(found.sort(([, left], [, right]) => right.ads - left.ads));
}

/** The number of ads by the number of the day. */
type Days = Map<number, number>;

/** Returns the number of the day on which an ad was last seen, if the ad was read more than two days later. */
function findDayBeforeReading({ lastSeenAt, readAt }: SeenAd): number | undefined {
  if (lastSeenAt === null) return undefined;
  const day = Math.floor(lastSeenAt / dayMs);
  return Math.floor(readAt / dayMs) - day > maxDaysSinceSeen ? day : undefined;
}
