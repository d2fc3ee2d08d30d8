import { countValues } from '../../ui/bars.tsx';
import type { Formatters } from '../../ui/formats.ts';
import { dayMs } from '../../views/durations.ts';
import { groupBy } from '../../views/group-by.ts';
import { computeMedian } from '../../views/numbers.ts';
import type { BriefAd } from '../payload.ts';
import { formatAdvertiser, getAdvertiserId, listAdvertisers } from './advertisers.ts';

/**
 * A sentence above the ads about a notable fact, e.g. which ad has run the longest. A click on the sentence opens the
 * ads that it mentions.
 */
export interface Finding {
  /** The parts of the sentence. A `name` is a text from an ad, such as the name of an advertiser or a landing page. */
  sentenceParts: readonly (string | { name: string })[];
  /**
   * What a click on the sentence opens: a variant (ads with nearly the same text), a single ad, or the ads with certain
   * filter values. `advertiser` is the result of `getAdvertiserId`.
   */
  clickTarget:
    | { variant: string }
    | { ad: string }
    | { values: { advertiser: string; month?: string; landing?: string } };
}

/**
 * Returns the id of the variant (a group of ads of one advertiser page with nearly the same text) to which an ad
 * belongs. It is the id of the earliest ad in the variant. The user interface calls a variant a "message".
 */
export const getVariantId = ({ id, variant = id }: BriefAd): string => variant;

/**
 * The minimum number of ads for which the board shows charts, filters and a sentence about a notable fact. If there are
 * fewer ads, the user can look at each of them.
 */
export const minAdsForOverview = 8;

interface FindingOptions {
  /** The time at which the ads were read, in ISO format. Undefined if unknown. */
  readAt: string | undefined;
  /**
   * True if the board has all matching ads and no filter limits the dates of the ads. Otherwise the launches of
   * different months cannot be compared.
   */
  hasAllLaunches: boolean;
  formatters: Formatters;
}

interface AdvertiserAds {
  /** The result of `getAdvertiserId`. */
  id: string;
  /** The name of the advertiser. Contains the page id if several advertiser pages have this name. */
  name: string;
  /** The ads on the board that belong to this advertiser. */
  ads: readonly BriefAd[];
}

type FindingRule = (advertisers: readonly AdvertiserAds[], options: FindingOptions) => Finding | undefined;

/**
 * Tries the rules for notable facts in order. Returns the finding of the first rule that applies, or undefined if none
 * applies.
 */
export function selectFinding(ads: readonly BriefAd[], options: FindingOptions): Finding | undefined {
  if (ads.length < minAdsForOverview) return undefined;
  const adsByAdvertiserId = groupBy(ads, getAdvertiserId);
  const advertisers = [...listAdvertisers(ads)].map(([id, advertiser]) => ({
    id,
    name: formatAdvertiser(advertiser),
    ads: adsByAdvertiserId.get(id) ?? [],
  }));
  for (const rule of findingRules) {
    const finding = rule(advertisers, options);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

const findingRules: readonly FindingRule[] = [
  findRepeatedVariant,
  findLongestRun,
  findLaunchChange,
  findSharedLandingPage,
];

const formatAdCountOnBoard = (ads: readonly BriefAd[], { formatCount }: Formatters): string =>
  `its ${formatCount(ads.length, 'ad')} here`;

/**
 * Finds the ad text that one advertiser uses in the most ads. At least four ads, and at least 10% of the advertiser's
 * ads, must contain the text.
 */
function findRepeatedVariant(
  advertisers: readonly AdvertiserAds[],
  { formatters }: FindingOptions,
): Finding | undefined {
  const { formatCount, formatNumber } = formatters;
  const candidates = advertisers.flatMap(({ name, ads }) => {
    const [variant, variantAds] = findLargestGroup(groupBy(ads, getVariantId)) ?? [];
    if (variant === undefined || variantAds === undefined) return [];
    if (variantAds.length < 4 || variantAds.length < ads.length / 10) return [];
    return [{ name, ads, variant, variantAds }];
  });
  const largestCandidate = findMaxBy(candidates, ({ variantAds }) => variantAds.length);
  if (largestCandidate === undefined) return undefined;
  const { name, ads, variant, variantAds } = largestCandidate;
  const longestRunDays = variantAds.reduce((longest, { daysRunning = 0 }) => Math.max(longest, daysRunning), 0);
  const longestRunText = longestRunDays > 1 ? `; the longest ran ${formatCount(longestRunDays, 'day')}` : '';
  const text = ` repeats one message in ${formatNumber(variantAds.length)} of ${formatAdCountOnBoard(ads, formatters)}${longestRunText}.`;
  return { sentenceParts: [{ name }, text], clickTarget: { variant } };
}

/**
 * Finds the ad that has run the longest, except for ads that have ended. The ad must have run for at least 30 days, and
 * for more than twice as long as the median ad of its advertiser.
 */
function findLongestRun(advertisers: readonly AdvertiserAds[], { formatters }: FindingOptions): Finding | undefined {
  const { formatCount } = formatters;
  const candidates = advertisers.flatMap(({ name, ads }) => {
    const adsWithDaysRunning = ads.filter(({ daysRunning }) => daysRunning !== undefined);
    if (adsWithDaysRunning.length < minAdsForOverview) return [];
    const medianDays = computeMedian(adsWithDaysRunning.map(({ daysRunning = 0 }) => daysRunning));
    const longestRunningAd = findMaxBy(
      adsWithDaysRunning.filter(({ active }) => active !== false),
      ({ daysRunning = 0 }) => daysRunning,
    );
    const longestRunDays = longestRunningAd?.daysRunning ?? 0;
    return longestRunningAd !== undefined && longestRunDays >= 30 && longestRunDays > 2 * medianDays
      ? [{ name, ads, adsWithDaysRunning, medianDays, longestRunningAd, longestRunDays }]
      : [];
  });
  const longestCandidate = findMaxBy(candidates, ({ longestRunDays }) => longestRunDays);
  if (longestCandidate === undefined) return undefined;
  const { name, ads, adsWithDaysRunning, medianDays, longestRunningAd, longestRunDays } = longestCandidate;
  const stateText = longestRunningAd.active === true ? ' and still runs it' : ' or more';
  const medianAdsText =
    adsWithDaysRunning.length === ads.length
      ? formatAdCountOnBoard(ads, formatters)
      : `its ${formatCount(adsWithDaysRunning.length, 'ad')} here with known days`;
  const medianText = `half of ${medianAdsText} ran ${formatCount(medianDays, 'day')} or less`;
  return {
    sentenceParts: [{ name }, ` has run one ad for ${formatCount(longestRunDays, 'day')}${stateText}; ${medianText}.`],
    clickTarget: { ad: longestRunningAd.id },
  };
}

/**
 * Finds the largest change in the number of launched ads between two successive full months within the last year. One
 * of the two numbers must be at least 5, and at least twice the other. The rule needs all ads of an advertiser,
 * including ended ads.
 */
function findLaunchChange(
  advertisers: readonly AdvertiserAds[],
  { readAt, hasAllLaunches, formatters: { formatMonth, formatNumber } }: FindingOptions,
): Finding | undefined {
  if (!hasAllLaunches || readAt === undefined) return undefined;
  const changes = advertisers.flatMap(({ id, name, ads }) => {
    const lastKnownDay = findLastKnownDay(ads, readAt);
    return lastKnownDay === undefined
      ? []
      : listLaunchChanges(ads, lastKnownDay).map((change) => ({ id, name, ...change }));
  });
  const largestChange = findMaxBy(changes, ({ previousLaunches, launches }) => Math.abs(launches - previousLaunches));
  if (largestChange === undefined) return undefined;
  const { id, name, month, previousMonth, previousLaunches, launches } = largestChange;
  const changeText = `${launches > previousLaunches ? 'rose' : 'fell'} from ${formatNumber(previousLaunches)} in ${formatMonth(previousMonth)}`;
  return {
    sentenceParts: ['Launches of ', { name }, ` ${changeText} to ${formatNumber(launches)} in ${formatMonth(month)}.`],
    clickTarget: { values: { advertiser: id, month: launches > previousLaunches ? month : previousMonth } },
  };
}

/**
 * Returns each pair of successive full months, within the year before `lastKnownDay`, between which the number of
 * launched ads at least doubled or halved. At least five ads must have been launched in one of the two months.
 */
function listLaunchChanges(ads: readonly BriefAd[], lastKnownDay: string) {
  const launchCountsByMonth = countValues(ads.map(({ startedAt }) => startedAt?.slice(0, 7)));
  // Omit the first month and the month of `lastKnownDay`, because the known ads may cover only part of them.
  const [earliestMonth = ''] = [...launchCountsByMonth.keys()].sort();
  const months = Array.from({ length: 12 }, (_, index) => subtractMonths(lastKnownDay, index + 1)).filter(
    (month) => month > earliestMonth,
  );
  const monthPairs = months.slice(0, -1).map((month, index) => {
    const previousMonth = months[index + 1] ?? '';
    return {
      month,
      previousMonth,
      previousLaunches: launchCountsByMonth.get(previousMonth) ?? 0,
      launches: launchCountsByMonth.get(month) ?? 0,
    };
  });
  return monthPairs.filter(
    ({ previousLaunches, launches }) =>
      Math.max(previousLaunches, launches) >= 5 &&
      Math.max(previousLaunches, launches) >= 2 * Math.min(previousLaunches, launches),
  );
}

/**
 * If the service last saw at least this share of the ads (0 to 1) on the same day, the list counts as incomplete. Such
 * a list probably lacks ads that ended before that day.
 */
const minSameDayShareOfIncompleteList = 0.8;

/**
 * Returns the last day for which the ads are known. This is the day on which they were read, or the last day on which
 * the service saw one of them, if that is earlier. Returns undefined if most ads were last seen on the same day, long
 * before they were read. Such a list lacks ads that ended earlier, so launches in earlier months cannot be compared.
 */
function findLastKnownDay(ads: readonly BriefAd[], readAt: string): string | undefined {
  const adCountsByDay = countValues(ads.map(({ lastSeenAt }) => lastSeenAt?.slice(0, 10)));
  const [lastDay] = [...adCountsByDay.keys()].sort().slice(-1);
  const readDay = readAt.slice(0, 10);
  if (lastDay === undefined || lastDay >= readDay) return readDay;
  const isLongAgo = Date.parse(readDay) - Date.parse(lastDay) > 2 * dayMs;
  const largestDayCount = [...adCountsByDay.values()].reduce((largest, count) => Math.max(largest, count), 0);
  return isLongAgo && largestDayCount >= minSameDayShareOfIncompleteList * ads.length ? undefined : lastDay;
}

/**
 * Finds the landing page to which one advertiser links from the largest number of different ad texts. At least five ad
 * texts must link to the page.
 */
function findSharedLandingPage(
  advertisers: readonly AdvertiserAds[],
  { formatters }: FindingOptions,
): Finding | undefined {
  const { formatNumber } = formatters;
  const candidates = advertisers.flatMap(({ id, name, ads }) =>
    [...groupBy(ads, ({ landing }) => landing)].flatMap(([landingPage, adsOfLandingPage]) => {
      const variantCount = new Set(adsOfLandingPage.map(getVariantId)).size;
      return landingPage === undefined || variantCount < 5
        ? []
        : [{ id, name, ads, landingPage, adsOfLandingPage, variantCount }];
    }),
  );
  const largestCandidate = findMaxBy(candidates, ({ variantCount }) => variantCount);
  if (largestCandidate === undefined) return undefined;
  const { id, name, ads, landingPage, adsOfLandingPage, variantCount } = largestCandidate;
  const adsText = `in ${formatNumber(adsOfLandingPage.length)} of ${formatAdCountOnBoard(ads, formatters)}`;
  const text = ` leads ${formatNumber(variantCount)} different messages, ${adsText}, to `;
  return {
    sentenceParts: [{ name }, text, { name: landingPage }, '.'],
    clickTarget: { values: { advertiser: id, landing: landingPage } },
  };
}

const findLargestGroup = <Key, Item>(groups: ReadonlyMap<Key, Item[]>): [Key, Item[]] | undefined =>
  findMaxBy([...groups], ([, { length }]) => length);

/**
 * Returns the item for which `getNumber` returns the highest number. If several items have this number, returns the
 * first of them.
 */
const findMaxBy = <Item>(items: readonly Item[], getNumber: (item: Item) => number): Item | undefined =>
  items.reduce<Item | undefined>(
    (maxItem, item) => (maxItem === undefined || getNumber(item) > getNumber(maxItem) ? item : maxItem),
    undefined,
  );

/** Returns the month that lies `monthCount` months before the month of a day, e.g. `2026-09` for `2026-11-20` and 2. */
function subtractMonths(isoDay: string, monthCount: number): string {
  const monthStartMs = Date.UTC(Number(isoDay.slice(0, 4)), Number(isoDay.slice(5, 7)) - 1 - monthCount);
  return Number.isNaN(monthStartMs) ? '' : new Date(monthStartMs).toISOString().slice(0, 7);
}
