import { maxDaysSinceSeen } from '../views/days-running.ts';
import { dayMs } from '../views/durations.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import { formatIsoTime } from './tables.ts';

/**
 * An ad with the time at which it was last seen running and the time at which it was read, both in milliseconds since
 * the Unix epoch.
 */
interface ObservedAd {
  pageId: string | null;
  pageName: string | null;
  lastSeenAt: number | null;
  hasEndDatePassed: boolean;
  readAt: number;
}

/**
 * An advertiser whose ads were nearly all last seen running on the same day, more than two days before they were read.
 * The running times of these ads are unreliable.
 */
export interface OneDayAdvertiser {
  pageId: string | null;
  pageName: string | null;
  adCount: number;
  /** The number of the advertiser's ads that were last seen running on `day`, an ISO day such as `2026-05-11`. */
  adsSeenOnDay: number;
  day: string;
}

/**
 * An advertiser is reported if at least 80 % of its ads, and at least ten of its ads, were last seen running on the
 * same day.
 */
const minShareOnDay = 0.8;
const minAdsOnDay = 10;

/**
 * Finds the advertisers whose ads were nearly all last seen running on the same day, more than two days before they
 * were read. The service has probably looked at such an advertiser only once. The service then does not know how long
 * the ads ran after that day, and lacks ads that had already ended. Ads with an end date in the past do not count as
 * seen on a day, because the service knows how long they ran.
 *
 * Recent days do not count. If a service observes ads continuously, running ads are last seen on the day of reading.
 * @returns the advertisers by key, with the largest number of ads first
 */
export function findOneDayAdvertisers(ads: readonly ObservedAd[]): ReadonlyMap<string, OneDayAdvertiser> {
  const findAdvertiserKey = createAdvertiserKeyFinder(ads);
  const advertisers = new Map<
    string,
    { pageId: string | null; pageName: string | null; adCount: number; adCountsByDay: AdCountsByDay }
  >();
  for (const ad of ads) {
    const key = findAdvertiserKey(ad);
    if (key === null) continue;
    const advertiser = advertisers.get(key) ?? { pageId: null, pageName: null, adCount: 0, adCountsByDay: new Map() };
    advertiser.pageId ??= ad.pageId;
    // The newest ad comes last and sets the name, so that an advertiser page that was renamed gets its current name.
    advertiser.pageName = ad.pageName ?? advertiser.pageName;
    advertiser.adCount++;
    const day = findLastSeenDay(ad);
    if (day !== undefined) advertiser.adCountsByDay.set(day, (advertiser.adCountsByDay.get(day) ?? 0) + 1);
    advertisers.set(key, advertiser);
  }
  const oneDayAdvertisers = [...advertisers].flatMap(
    ([key, { adCountsByDay, ...advertiser }]): [string, OneDayAdvertiser][] => {
      const [[day, adsSeenOnDay] = [0, 0]] = [...adCountsByDay].sort(([, left], [, right]) => right - left);
      if (adsSeenOnDay < minAdsOnDay || adsSeenOnDay < minShareOnDay * advertiser.adCount) return [];
      return [[key, { ...advertiser, adsSeenOnDay, day: formatIsoTime(day * dayMs).slice(0, 10) }]];
    },
  );
  return new Map(oneDayAdvertisers.sort(([, left], [, right]) => right.adCount - left.adCount));
}

/** The number of ads that were last seen running on each day. The keys are days since the Unix epoch. */
type AdCountsByDay = Map<number, number>;

/**
 * Returns the day on which an ad was last seen running, in days since the Unix epoch. Returns undefined unless the ad
 * was read more than two days later, or if its end date is known and has passed.
 */
function findLastSeenDay({ lastSeenAt, hasEndDatePassed, readAt }: ObservedAd): number | undefined {
  if (lastSeenAt === null || hasEndDatePassed) return undefined;
  const day = Math.floor(lastSeenAt / dayMs);
  return Math.floor(readAt / dayMs) - day > maxDaysSinceSeen ? day : undefined;
}
