import type { BoardAd } from '../payload.ts';

const descending = (value: (ad: BoardAd) => number | string | undefined) => (a: BoardAd, b: BoardAd) => {
  const [left, right] = [value(a), value(b)];
  if (left === right) return 0;
  if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
  return left < right ? 1 : -1;
};

/** Ways to order ads, with their names. Ads that lack a value come last. */
const orders = {
  relevance: ['As listed', () => 0],
  days: ['Days running', descending(({ daysRunning }) => daysRunning)],
  newest: ['Newest first', descending(({ startedAt }) => startedAt)],
  duplicates: ['Copies of the ad', descending(({ duplicates }) => duplicates)],
  reach: ['Reach', descending(({ audienceReach }) => audienceReach)],
  advertiser: ['Advertiser', (a: BoardAd, b: BoardAd) => (a.pageName ?? '￿').localeCompare(b.pageName ?? '￿', 'en')],
} satisfies Record<string, [string, (a: BoardAd, b: BoardAd) => number]>;

export type SortName = keyof typeof orders;
export const sortNames = Object.keys(orders) as SortName[];
export const sortTitle = (name: SortName): string => orders[name][0];
export const sorted = (ads: readonly BoardAd[], name: SortName): BoardAd[] => [...ads].sort(orders[name][1]);
