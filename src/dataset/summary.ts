import { type SeenDays, seenDays } from '../present/dates.ts';
import { sanitizeLine } from '../present/safe-text.ts';
import { truncate } from '../present/tokens.ts';
import type { AdRow, Row } from './columns.ts';

/** How often a value stands in the ads; null where an ad has none. */
export interface ValueCount {
  value: string | null;
  ads: number;
}

/** The values of a column, each ad counted under its own. */
export interface Breakdown {
  /** How many different values there are, "none" not among them. */
  distinct: number;
  counts: ValueCount[];
  /** Values that are not listed, and how often they stand in ads. */
  left: { values: number; ads: number };
}

export interface Spread {
  /** Ads of which it is known. */
  ads: number;
  unknown: number;
  min: number | null;
  median: number | null;
  p90: number | null;
  max: number | null;
}

/** What a gathering brought. Texts in it are third parties', cleaned and bounded. */
export interface Summary {
  ads: number;
  /** `lastSeen` is of the unknown ones. */
  active: { running: number; ended: number; unknown: number; lastSeen?: SeenDays };
  advertisers: Breakdown;
  formats: Breakdown;
  callsToAction: Breakdown;
  /** The newest first. */
  monthsStarted: Breakdown;
  domains: Breakdown;
  /** An ad counts for each of its countries. */
  countries: Breakdown;
  languages: Breakdown;
  daysRunning: Spread;
  /** Ads that tell it at all. */
  known: { reach: number; spend: number; revenue: number };
  firstLines: Breakdown;
  variants: { distinct: number; adsWithoutCopy: number };
}

/** What a summary needs of an ad. Without its long texts, since all ads of a gathering are held at once. */
const COLUMNS = [
  'id',
  'pageId',
  'pageName',
  'active',
  'lastSeenAt',
  'displayFormat',
  'ctaType',
  'startedMonth',
  'landingDomain',
  'language',
  'daysRunning',
  'firstLine',
  'variant',
  'audienceReach',
  'adSpendMin',
  'adSpendMax',
  'revenueMin',
  'revenueMax',
] as const satisfies (keyof AdRow)[];

export type SummaryRow = Pick<AdRow, (typeof COLUMNS)[number]>;

export const summaryRow = (ad: AdRow): SummaryRow =>
  Object.fromEntries(COLUMNS.map((column) => [column, ad[column]])) as SummaryRow;

export interface GatheredRows {
  ads: readonly SummaryRow[];
  countries: readonly Row<'ad_countries'>[];
}

export function summarize({ ads, countries }: GatheredRows): Summary {
  const of = (column: keyof SummaryRow, max: number) =>
    breakdown(
      ads.map((ad) => ad[column] as string | null),
      max,
    );
  const ids = new Set(ads.map(({ id }) => id));
  const placed = countries.filter(({ id }) => id !== null && ids.has(id));
  const nowhere = ids.size - new Set(placed.map(({ id }) => id)).size;
  const variants = ads.flatMap(({ variant }) => (variant === null ? [] : [variant]));
  const known = (of: (ad: SummaryRow) => number | null) => ads.filter((ad) => of(ad) !== null).length;
  const active = (state: number | null) => ads.filter((ad) => ad.active === state).length;
  const lastSeen = seenDays(ads.filter((ad) => ad.active === null));
  return {
    ads: ads.length,
    active: { running: active(1), ended: active(0), unknown: active(null), ...(lastSeen && { lastSeen }) },
    advertisers: breakdown(
      ads.map(({ pageName, pageId }) => pageName ?? pageId),
      10,
    ),
    formats: of('displayFormat', 8),
    callsToAction: of('ctaType', 8),
    monthsStarted: breakdown(
      ads.map(({ startedMonth }) => startedMonth),
      18,
      newestFirst,
    ),
    domains: of('landingDomain', 10),
    countries: breakdown([...placed.map(({ country }) => country), ...Array.from({ length: nowhere }, () => null)], 12),
    languages: of('language', 12),
    daysRunning: spreadOf(ads.map(({ daysRunning }) => daysRunning)),
    known: {
      reach: known(({ audienceReach }) => audienceReach),
      spend: known(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax),
      revenue: known(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax),
    },
    firstLines: of('firstLine', 6),
    variants: { distinct: new Set(variants).size, adsWithoutCopy: ads.length - variants.length },
  };
}

type Order = (left: ValueCount, right: ValueCount) => number;

const byName: Order = (left, right) => ((left.value ?? '') < (right.value ?? '') ? -1 : 1);
const commonestFirst: Order = (left, right) => right.ads - left.ads || byName(left, right);
const newestFirst: Order = (left, right) => byName(right, left);

const VALUE_TOKENS = 24;

function breakdown(values: readonly (string | null)[], max: number, order: Order = commonestFirst): Breakdown {
  const numbers = new Map<string | null, number>();
  for (const value of values) numbers.set(value, (numbers.get(value) ?? 0) + 1);
  const none = numbers.get(null);
  numbers.delete(null);
  const sorted = [...numbers].map(([value, ads]) => ({ value: value ?? '', ads })).sort(order);
  // Cut only now: values that differ behind the cut are different ones.
  const listed = sorted.slice(0, max).map(({ value, ads }) => ({ value: shortened(value), ads }));
  const left = sorted.slice(max);
  return {
    distinct: sorted.length,
    counts: none === undefined ? listed : [...listed, { value: null, ads: none }],
    left: { values: left.length, ads: left.reduce((sum, { ads }) => sum + ads, 0) },
  };
}

function shortened(value: string): string {
  const start = sanitizeLine(value.slice(0, MAX_CHARS));
  return truncate(start, VALUE_TOKENS, Math.max(0, value.length - MAX_CHARS));
}

/** The rest is not even read. */
const MAX_CHARS = 400;

function spreadOf(values: readonly (number | null)[]): Spread {
  const known = values.filter((value) => value !== null).sort((left, right) => left - right);
  const at = (index: number) => known[index] ?? null;
  const middle = (known.length - 1) / 2;
  const [low, high] = [at(Math.floor(middle)), at(Math.ceil(middle))];
  return {
    ads: known.length,
    unknown: values.length - known.length,
    min: at(0),
    median: low === null || high === null ? null : (low + high) / 2,
    p90: at(Math.ceil(0.9 * known.length) - 1),
    max: at(known.length - 1),
  };
}
