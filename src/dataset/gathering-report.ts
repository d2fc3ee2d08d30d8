import { count } from '../present/list-text.ts';
import { constant, quote, sanitizeLine, word } from '../present/safe-text.ts';
import { estimateTokens, truncate } from '../present/tokens.ts';
import { type SeenDays, seenDays, seenText } from '../present/values.ts';
import { type DatasetContents, type Gathering, idKey } from '../state/dataset.ts';
import type { AdRowReader } from './ad-rows.ts';
import type { StopReason } from './gather.ts';
import { adIdsOf, differences, foundBy, foundInParts, isComplete, lastComplete } from './gatherings.ts';
import type { AdRow, Row } from './tables.ts';

/** How a gathering stands, as data. */
interface GatheringResult {
  gathering: string;
  found: number | null;
  /** In words, where that is not known of all parts. */
  foundInParts?: string;
  read: number;
  added: number;
  updated: number;
  gone: string[] | null;
  complete: boolean;
  gatheredAt: string;
  /** Ads that were read and are no longer kept. */
  missing?: number;
  sinceLast?: SinceLast;
  summary: string;
}

/** What differs from the last complete gathering of the same question. */
interface SinceLast {
  gatheredAt: string;
  fresh: number;
  updated: number;
  gone: number;
}

interface ResultOptions {
  contents: DatasetContents;
  adRows: AdRowReader;
  tenantId: string;
  /** What there was before this call, and the ids of the ads that it has read. */
  before: DatasetContents;
  brought: ReadonlySet<string>;
}

/** Ids that are listed; the others are counted. */
const maxGone = 40;

export async function resultOf(gathering: Gathering, options: ResultOptions): Promise<GatheringResult> {
  const { contents, before, brought } = options;
  const ids = adIdsOf(gathering, contents);
  const read = contents.ads.filter(({ id }) => brought.has(idKey(id)));
  const earlier = new Map(before.ads.map(({ id, sinceOrder }) => [idKey(id), sinceOrder]));
  const rows = await rowsOf(ids, options);
  const inParts = foundInParts(gathering, contents);
  const missing = ids.size - rows.ads.length;
  const isWhole = isComplete(gathering, contents);
  const last = isWhole ? lastComplete(gathering, contents) : undefined;
  const changes = last && differences(last, gathering, contents);
  return {
    gathering: gathering.id,
    found: foundBy(gathering, contents),
    ...(inParts && { foundInParts: inParts }),
    read: ids.size,
    added: read.filter(({ id }) => !earlier.has(idKey(id))).length,
    updated: read.filter(({ id, sinceOrder }) => sinceOrder !== (earlier.get(idKey(id)) ?? sinceOrder)).length,
    gone: changes?.gone.slice(0, maxGone).map(cleanId) ?? null,
    complete: isWhole,
    gatheredAt: isoDate(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(changes && {
      sinceLast: {
        gatheredAt: isoDate(last.gatheredAt),
        fresh: changes.fresh.length,
        updated: changes.updated.length,
        gone: changes.gone.length,
      },
    }),
    summary: summaryText(summarize(rows)),
  };
}

async function rowsOf(ids: ReadonlySet<string>, { contents, adRows, tenantId }: ResultOptions): Promise<GatheredRows> {
  const ads: SummaryRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows.read(tenantId, contents, { json: false, ids }))
    for (const { ad, countries } of part) {
      ads.push(summaryRow(ad));
      places.push(...countries);
    }
  return { ads, countries: places };
}

const cleanId = (id: string) => truncate(sanitizeLine(id.slice(0, 200)), 60);

const isoDate = (at: number) => new Date(at).toISOString();

/** What a call of `gather_ads` gives, as data. */
export interface GatherOutput extends Omit<GatheringResult, 'gathering' | 'gatheredAt'> {
  gathering: string | null;
  gatheredAt?: string;
  stopped: StopReason;
  /** The kind of the error that stopped it, and what it says. */
  error?: string;
  problem?: string;
  /** How to continue. */
  next?: string;
  /** What came of an earlier one. */
  note?: string;
  /** `atMost` where the price of a page is known only within bounds. */
  estimate?: { ads: number | null; pages: number | null; credits: number | null; atMost?: number };
}

export function gatheringText(output: GatherOutput): string {
  const { estimate, summary, gathering, added, updated, sinceLast, gone, problem, next, note } = output;
  if (gathering === null) return [summary, next].filter(Boolean).join('\n');
  return [
    headline(output),
    estimate && 'Estimate: 0 credits, since nothing is left to read.',
    note,
    problem,
    next,
    `This call added ${count(added, 'ad')} to the dataset and updated ${updated}.`,
    sinceLast && changesText(sinceLast, gone ?? []),
    summary,
  ]
    .filter(Boolean)
    .join('\n');
}

function headline(output: GatherOutput): string {
  const { gathering, read, found, foundInParts, complete, stopped, gatheredAt = '', missing } = output;
  const total = found === null ? foundInParts : `${found} found`;
  const of = total === undefined ? 'total not stated' : `of ${total}`;
  const state = complete ? `complete, last read ${minute(gatheredAt)}` : `not complete, stopped: ${stopped}`;
  const lost = missing ? ` ${missing} of them are no longer kept.` : '';
  return `Gathering ${gathering}: ${read} ads read, ${of}; ${state}.${lost}`;
}

function changesText({ gatheredAt, fresh, updated, gone }: SinceLast, ids: readonly string[]): string {
  const listed = ids.length === 0 ? '' : `: ${ids.map(word).join(', ')}${gone > ids.length ? ' …' : ''}`;
  return `Since the last complete gathering of ${minute(gatheredAt)}: ${fresh} new, ${updated} changed, ${gone} not seen any more (which does not mean that they ended)${listed}`;
}

export const minute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

/** What to do when the service refuses to continue from where a gathering stands. */
export const startOver =
  'If the service no longer takes its own cursor, start over with fresh: true, which is charged again.';

export const beginsAnew =
  'The last one with fresh: true was stopped and is more than a day old, so this one started over.';

export const readAgain = 'To have them again, call with fresh: true, which is charged again.';

export const noRoom = (maxAds: number, isInParts: boolean) =>
  `There is no room for more than ${maxAds} ads of one gathering${isInParts ? ', counted in each of its parts' : ''}. Narrow the filters to read others.`;

/** How to continue after each way to stop. */
export const nextSteps: Record<StopReason, string | undefined> = {
  end: undefined,
  estimate: undefined,
  maxAds: 'To continue, call again with a larger maxAds. What was read is not charged again.',
  maxCredits: 'The next page may not fit into maxCredits. To continue, call again with the same question.',
  budget: "The next page does not fit into this server's budget. To continue later, call again with the same question.",
  usage_limit: 'To continue when the usage window has room, call again with the same question.',
  deadline: 'Time was short. To continue, call again with the same question. What was read is not charged again.',
  error: 'To continue, call again with the same question. What was read is not charged again.',
  shutdown: 'The server is shutting down. To continue, call again with the same question.',
};

/** How often a value stands in the ads; null where an ad has none. */
interface ValueCount {
  value: string | null;
  ads: number;
}

/** The values of a column, each ad counted under its own. */
interface Breakdown {
  /** How many different values there are, "none" not among them. */
  distinct: number;
  counts: ValueCount[];
  /** Values that are not listed, and how often they stand in ads. */
  left: { values: number; ads: number };
}

interface Spread {
  /** Ads of which it is known. */
  ads: number;
  unknown: number;
  min: number | null;
  median: number | null;
  p90: number | null;
  max: number | null;
}

/** What a gathering brought. Texts in it are third parties', cleaned and bounded. */
interface Summary {
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

type SummaryRow = Pick<AdRow, (typeof COLUMNS)[number]>;

const summaryRow = (ad: AdRow): SummaryRow =>
  Object.fromEntries(COLUMNS.map((column) => [column, ad[column]])) as SummaryRow;

interface GatheredRows {
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

/**
 * The summary for a reader, within so many tokens: one line a label, every value with its number of ads, and the number
 * of what is left out. What does not fit is left out evenly, and counted too.
 */
export function summaryText(summary: Summary, maxTokens = 700): string {
  for (let share = 1; ; share *= 0.8) {
    const text = linesOf(summary, share).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

function linesOf(summary: Summary, share: number): string[] {
  const { active, known, variants } = summary;
  const line = (label: string, breakdown: Breakdown, show: (value: string) => string) =>
    `${label} (${breakdown.distinct}): ${valuesText(breakdown, { share, show })}`;
  return [
    `${count(summary.ads, 'ad')}: ${active.running} still running, ${active.ended} ended, ${active.unknown} unknown${active.lastSeen ? `, ${seenText(active.lastSeen)}` : ''}.`,
    line('Advertisers', summary.advertisers, quote),
    line('Formats', summary.formats, constant),
    line('Calls to action', summary.callsToAction, constant),
    line('Months started, newest first', summary.monthsStarted, word),
    line('Landing domains', summary.domains, word),
    line('Countries (an ad may count for several)', summary.countries, word),
    line('Languages of the copy', summary.languages, word),
    spreadText(summary.daysRunning),
    `Known of so many ads: reach ${known.reach}, spend ${known.spend}, revenue ${known.revenue}`,
    `Variants (copy of a page nearly the same): ${variants.distinct}; ads without copy: ${variants.adsWithoutCopy}`,
    line('First lines', summary.firstLines, quote),
  ];
}

function valuesText(
  { counts, left }: Breakdown,
  { share, show }: { share: number; show: (value: string) => string },
): string {
  const named = counts.filter(({ value }) => value !== null);
  const none = counts.find(({ value }) => value === null);
  const shown = named.slice(0, Math.round(share * named.length));
  const rest = named.slice(shown.length);
  const values = left.values + rest.length;
  const ads = left.ads + rest.reduce((sum, one) => sum + one.ads, 0);
  const text = ({ value, ads: number }: ValueCount) => `${show(value ?? '')} ${number}`;
  const parts = [
    ...shown.map(text),
    ...(values > 0 ? [`${count(values, 'other')} ${ads}`] : []),
    ...(none ? [`none ${none.ads}`] : []),
  ];
  return parts.join(', ') || 'none';
}

function spreadText({ ads, unknown, min, median, p90, max }: Spread): string {
  if (ads === 0) return `Days running: unknown of ${count(unknown, 'ad')}`;
  return `Days running: min ${min}, median ${median}, 90th percentile ${p90}, max ${max}; unknown of ${count(unknown, 'ad')}`;
}
