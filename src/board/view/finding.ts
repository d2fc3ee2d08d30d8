import { countValues } from '../../ui/bars.tsx';
import type { Formats } from '../../ui/formats.ts';
import { dayMs } from '../../views/durations.ts';
import { computeMedian } from '../../views/numbers.ts';
import type { BriefAd } from '../payload.ts';

/** One sentence about an advertiser, with the numbers it rests on, and the filter, message or ad that a click opens. */
export interface Finding {
  /** The parts of the sentence. A name is text of others: the advertiser, or a landing page. */
  sentence: readonly (string | { name: string })[];
  opens: { message: string } | { ad: string } | { values: { advertiser: string; month?: string; landing?: string } };
}

/** Returns the id of the message of an ad: a message is the ads of one page whose copy is nearly the same. */
export const messageOf = ({ id, variant = id }: BriefAd): string => variant;

/** With fewer ads, a reader sees everything at a glance. */
export const minAds = 8;

interface Basis {
  /** When the ads were read, in ISO text; undefined if unknown. */
  readAt: string | undefined;
  /** The ads are all that match, and no filter leaves some out for when they ran. */
  hasAllLaunches: boolean;
  formats: Formats;
}

interface Advertiser {
  name: string;
  /** The ads of the advertiser on the board. */
  ads: readonly BriefAd[];
}

type Rule = (advertisers: readonly Advertiser[], basis: Basis) => Finding | undefined;

/** Returns the finding of the first rule whose conditions an advertiser meets; undefined where none does. */
export function findingOf(ads: readonly BriefAd[], basis: Basis): Finding | undefined {
  if (ads.length < minAds) return undefined;
  const named = ads.filter(({ pageName }) => pageName !== undefined);
  const advertisers = [...groupsBy(named, ({ pageName = '' }) => pageName)].map(([name, ads]) => ({ name, ads }));
  for (const rule of rules) {
    const finding = rule(advertisers, basis);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

const rules: readonly Rule[] = [repeatedMessage, longestRun, changeOfLaunches, sharedLandingPage];

const adsHere = (ads: readonly BriefAd[], { formatCount }: Formats): string =>
  `its ${formatCount(ads.length, 'ad')} here`;

/** One message in at least four ads, and in at least a tenth of the ads of its advertiser. */
function repeatedMessage(advertisers: readonly Advertiser[], { formats }: Basis): Finding | undefined {
  const { formatCount, formatNumber } = formats;
  const largest = advertisers.flatMap(({ name, ads }) => {
    const [message, group] = largestOf(groupsBy(ads, messageOf)) ?? [];
    if (message === undefined || group === undefined || group.length < 4 || group.length < ads.length / 10) return [];
    return [{ name, ads, message, group }];
  });
  const most = maxBy(largest, ({ group }) => group.length);
  if (most === undefined) return undefined;
  const { name, ads, message, group } = most;
  const longest = group.reduce((days, { daysRunning = 0 }) => Math.max(days, daysRunning), 0);
  const run = longest > 1 ? `; the longest ran ${formatCount(longest, 'day')}` : '';
  const text = ` repeats one message in ${formatNumber(group.length)} of ${adsHere(ads, formats)}${run}.`;
  return { sentence: [{ name }, text], opens: { message } };
}

/**
 * A run of at least thirty days that has not ended, as far as is known, and is more than twice as long as half of the
 * runs of its advertiser.
 */
function longestRun(advertisers: readonly Advertiser[], { formats }: Basis): Finding | undefined {
  const { formatCount } = formats;
  const runs = advertisers.flatMap(({ name, ads }) => {
    const dated = ads.filter(({ daysRunning }) => daysRunning !== undefined);
    if (dated.length < minAds) return [];
    const median = computeMedian(dated.map(({ daysRunning = 0 }) => daysRunning));
    const ad = maxBy(
      dated.filter(({ active }) => active !== false),
      ({ daysRunning = 0 }) => daysRunning,
    );
    const days = ad?.daysRunning ?? 0;
    return ad !== undefined && days >= 30 && days > 2 * median ? [{ name, dated, median, ad, days }] : [];
  });
  const longest = maxBy(runs, ({ days }) => days);
  if (longest === undefined) return undefined;
  const { name, dated, median, ad, days } = longest;
  const state = ad.active === true ? ' and still runs it' : ' or more';
  const rest = `half of ${adsHere(dated, formats)} ran ${formatCount(median, 'day')} or less`;
  return {
    sentence: [{ name }, ` has run one ad for ${formatCount(days, 'day')}${state}; ${rest}.`],
    opens: { ad: ad.id },
  };
}

/**
 * From one full month to the next, in the last year: at least five launches, and twice as many as in the other. Only of
 * an advertiser whose ads are all on the board, those that have ended included.
 */
function changeOfLaunches(
  advertisers: readonly Advertiser[],
  { readAt, hasAllLaunches, formats: { formatMonth, formatNumber } }: Basis,
): Finding | undefined {
  if (!hasAllLaunches || readAt === undefined) return undefined;
  const changes = advertisers.flatMap(({ name, ads }) => {
    const knownTo = lastKnownDay(ads, readAt);
    return knownTo === undefined ? [] : launchChanges(ads, knownTo).map((change) => ({ name, ...change }));
  });
  const largest = maxBy(changes, ({ from, to }) => Math.abs(to - from));
  if (largest === undefined) return undefined;
  const { name, month, before, from, to } = largest;
  const change = `${to > from ? 'rose' : 'fell'} from ${formatNumber(from)} in ${formatMonth(before)}`;
  return {
    sentence: ['Launches of ', { name }, ` ${change} to ${formatNumber(to)} in ${formatMonth(month)}.`],
    opens: { values: { advertiser: name, month: to > from ? month : before } },
  };
}

/** The pairs of full months before a day, within a year, whose launches doubled or halved. */
function launchChanges(ads: readonly BriefAd[], knownTo: string) {
  const counts = countValues(ads.map(({ startedAt }) => startedAt?.slice(0, 7)));
  // The first month may have begun before the first known ad, and the month of the last known day may not have ended.
  const [earliest = ''] = [...counts.keys()].sort();
  const months = Array.from({ length: 12 }, (_, ago) => monthBefore(knownTo, ago + 1)).filter(
    (month) => month > earliest,
  );
  const pairs = months.slice(0, -1).map((month, at) => {
    const before = months[at + 1] ?? '';
    return { month, before, from: counts.get(before) ?? 0, to: counts.get(month) ?? 0 };
  });
  return pairs.filter(({ from, to }) => Math.max(from, to) >= 5 && Math.max(from, to) >= 2 * Math.min(from, to));
}

/** The share of ads last seen on one day from which on ads that ended earlier are likely to be missing. */
const maxShareOnOneDay = 0.8;

/**
 * Returns the last day about which the ads say something: the day of the reading, or the day on which the service last
 * saw one of the ads, if that is earlier. Returns undefined where the ads are what was left on one day before the
 * reading: launches of earlier months are then those of the ads that lasted.
 */
function lastKnownDay(ads: readonly BriefAd[], readAt: string): string | undefined {
  const days = countValues(ads.map(({ lastSeenAt }) => lastSeenAt?.slice(0, 10)));
  const [lastDay] = [...days.keys()].sort().slice(-1);
  const read = readAt.slice(0, 10);
  if (lastDay === undefined || lastDay >= read) return read;
  const isOldDay = Date.parse(read) - Date.parse(lastDay) > 2 * dayMs;
  const most = [...days.values()].reduce((most, count) => Math.max(most, count), 0);
  return isOldDay && most >= maxShareOnOneDay * ads.length ? undefined : lastDay;
}

/** One landing page behind at least five messages of an advertiser. */
function sharedLandingPage(advertisers: readonly Advertiser[], { formats }: Basis): Finding | undefined {
  const { formatNumber } = formats;
  const pages = advertisers.flatMap(({ name, ads }) =>
    [...groupsBy(ads, ({ landing }) => landing)].flatMap(([page, leading]) => {
      const messages = new Set(leading.map(messageOf)).size;
      return page === undefined || messages < 5 ? [] : [{ name, ads, page, leading, messages }];
    }),
  );
  const most = maxBy(pages, ({ messages }) => messages);
  if (most === undefined) return undefined;
  const { name, ads, page, leading, messages } = most;
  const before = ` leads ${formatNumber(messages)} different messages, in ${formatNumber(leading.length)} of ${adsHere(ads, formats)}, to `;
  return {
    sentence: [{ name }, before, { name: page }, '.'],
    opens: { values: { advertiser: name, landing: page } },
  };
}

/** Returns the items of each key, in the order of the first of them. */
export function groupsBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

const largestOf = <Key, Item>(groups: ReadonlyMap<Key, Item[]>): [Key, Item[]] | undefined =>
  maxBy([...groups], ([, { length }]) => length);

const maxBy = <Item>(items: readonly Item[], measure: (item: Item) => number): Item | undefined =>
  items.reduce<Item | undefined>(
    (most, item) => (most === undefined || measure(item) > measure(most) ? item : most),
    undefined,
  );

/** `2026-11-20` and 2 as `2026-09`. */
function monthBefore(iso: string, months: number): string {
  const time = Date.UTC(Number(iso.slice(0, 4)), Number(iso.slice(5, 7)) - 1 - months);
  return Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 7);
}
