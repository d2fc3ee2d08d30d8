import * as z from 'zod';
import { type DatasetContents, type Gathering, normalizeAdId, sumOf } from '../storage/dataset.ts';
import { formatDay } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { quote } from '../views/safe-text.ts';
import { sanitizeId, truncateLine } from '../views/tokens.ts';
import type { KnownAdFacts } from './ad-rows.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import {
  countAdsOutsideGatherings,
  countRepeats,
  countUnlistedAds,
  formatFoundInParts,
  formatQuestionJson,
  selectCurrentGatherings,
  selectNewestGatherings,
} from './gatherings.ts';
import { cleanCell } from './sql/statement.ts';

/** The number of matching ads in the parts of a gathering, as `formatFoundInParts` writes it. */
export const FoundInPartsView = z
  .string()
  .optional()
  .describe('If found is null: the number of ads in the parts whose number is known, in words.');

/** A gathering that is not complete, as results state it. */
const PartialView = z
  .looseObject({
    gathering: z.string().describe('Id of the gathering.'),
    about: z.string().describe('Question of the gathering.'),
    found: z.number().nullable().describe('Number of matching ads. null if unknown.'),
    foundInParts: FoundInPartsView,
    read: z.number().describe('Number of ads that were read.'),
    removed: z.number().optional().describe('Number of ads that were read and then removed to make room.'),
    repeats: z.number().optional().describe('Number of ads that found counts again, because parts overlap.'),
    gatheredAt: z.string().describe('Day of the gathering.'),
  })
  .meta({ title: 'Partial' });
type PartialView = DataOf<typeof PartialView>;

/** An advertiser with ads that no complete gathering read. */
const UncoveredView = z
  .looseObject({
    pageId: z.string().optional().describe('Id of the advertiser page.'),
    pageName: z.string().optional().describe('Name of the advertiser.'),
    ads: z.number().describe('Number of its ads in the dataset.'),
    outside: z.number().describe('Number of its ads that no complete gathering read.'),
  })
  .meta({ title: 'Uncovered' });
type UncoveredView = DataOf<typeof UncoveredView>;

/** The ads in the view `current_ads`, and the days on which they were read. */
const CurrentView = z
  .looseObject({
    ads: z.number().describe('Number of ads.'),
    firstDay: z.string().describe('Day on which the oldest of them was read.'),
    lastDay: z.string().describe('Day on which the newest of them was read.'),
  })
  .meta({ title: 'Current' });

/** The coverage of the dataset behind an answer: its ads, its gatherings and its gaps. */
export const CoverageView = z
  .looseObject({
    ads: z.number().describe('Number of ads in the dataset.'),
    gatherings: z.number().describe('Number of gatherings in the dataset.'),
    outsideAds: z.number().optional().describe('Number of ads that only searches or earlier gatherings returned.'),
    current: CurrentView.optional().describe('The ads of the SQL view current_ads.'),
    partial: z.array(PartialView).optional().describe('Gatherings that are not complete, newest first.'),
    morePartial: z.number().optional().describe('Number of further gatherings that are not complete.'),
    uncovered: z.array(UncoveredView).optional().describe('Advertisers in the rows that no complete gathering covers.'),
    moreUncovered: z.number().optional().describe('Number of further advertisers that no complete gathering covers.'),
    unlisted: z.number().optional().describe('Number of ads that the service counts and did not list.'),
    removedAds: z.number().optional().describe('Number of ads that were removed to make room.'),
  })
  .meta({ title: 'Coverage' });
export type CoverageView = DataOf<typeof CoverageView>;

/**
 * The schema of `coverage` for tools that write files. Only `query_ads` lists the fields, to keep the list of tools
 * small.
 */
export const FileCoverageView = z
  .looseObject({})
  .describe('Which ads the file is based on, and what is missing. The fields are as in query_ads.');

/** The dataset and the result whose coverage is stated. */
export interface CoverageInput {
  contents: DatasetContents;
  /** The facts about each ad of the dataset, by `normalizeAdId`. */
  facts: ReadonlyMap<string, KnownAdFacts>;
  /** The columns and rows of the result. Without them, coverage describes the whole dataset. */
  columns?: readonly string[];
  rows?: readonly (readonly unknown[])[];
  /** The length to which cells of the rows were cut, in characters. */
  maxCellChars?: number;
}

const maxPartial = 5;
const maxAdvertisers = 10;
const nameTokens = 20;
const aboutTokens = 40;

/**
 * Builds the coverage of an answer. Only the newest gathering of each question counts. A gathering that is a part of
 * another one is not listed by itself.
 */
export function viewCoverage(answered: CoverageInput): CoverageView {
  const { contents } = answered;
  const { ads, gatherings, evicted } = contents;
  const newest = selectNewestGatherings(contents);
  const outsideAds = countAdsOutsideGatherings(contents);
  const current = viewCurrentAds(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  const topLevelGatherings = newest.filter(({ id }) => !parts.has(id));
  const unlisted = sumOf(topLevelGatherings.map(countUnlistedAds));
  const incomplete = topLevelGatherings
    .filter(({ complete }) => !complete)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
  const { named, others } = findUncovered(answered);
  return {
    ads: ads.length,
    gatherings: gatherings.length,
    ...(outsideAds > 0 && { outsideAds }),
    ...(current && { current }),
    ...(incomplete.length > 0 && { partial: incomplete.slice(0, maxPartial).map(viewPartial) }),
    ...(incomplete.length > maxPartial && { morePartial: incomplete.length - maxPartial }),
    ...(named.length > 0 && { uncovered: named.map(viewUncovered) }),
    ...(others > 0 && { moreUncovered: others }),
    ...(unlisted > 0 && { unlisted }),
    ...(evicted.ads > 0 && { removedAds: evicted.ads }),
  };
}

/** Returns how many ads the newest complete gatherings list, and on which days these were read. */
function viewCurrentAds(contents: DatasetContents): DataOf<typeof CurrentView> | undefined {
  const gatherings = selectCurrentGatherings(contents);
  const days = gatherings.flatMap(({ gatheredAt }) => formatDay(gatheredAt) ?? []).sort();
  const [firstDay, lastDay] = [days[0], days.at(-1)];
  if (firstDay === undefined || lastDay === undefined) return;
  return { ads: new Set(gatherings.flatMap(({ adIds }) => [...adIds])).size, firstDay, lastDay };
}

/** Builds the view of an incomplete gathering. */
function viewPartial(gathering: Gathering): PartialView {
  const { id, found, adIds, missing, gatheredAt } = gathering;
  const [foundInParts, repeats] = [formatFoundInParts(gathering), countRepeats(gathering)];
  return {
    gathering: id,
    about: truncateLine(formatQuestionJson(gathering), aboutTokens),
    found,
    ...(foundInParts && { foundInParts }),
    read: adIds.size,
    ...(missing > 0 && { removed: missing }),
    ...(repeats > 0 && { repeats }),
    gatheredAt: formatDay(gatheredAt) ?? '',
  };
}

interface Advertiser extends Pick<KnownAdFacts, 'pageId' | 'pageName'> {
  ads: number;
  /** The number of its ads that no complete gathering read. */
  outside: number;
  isInRows: boolean;
}

/**
 * Finds the advertisers with ads that no complete gathering read. If the rows have ids of ads or advertisers, only the
 * advertisers in the rows count, and they are named. Otherwise all advertisers of the dataset count, and none is named.
 */
function findUncovered({ contents, facts, columns = [], rows = [], maxCellChars = 0 }: CoverageInput) {
  const coveredIds = new Set(contents.gatherings.flatMap((one) => (one.complete ? [...one.adIds] : [])));
  const listCells = (...names: string[]): unknown[] =>
    columns.flatMap((column, at) => (names.includes(column) ? rows.map((row) => row[at]) : []));
  const namesInRows = new Set(listCells('pageId', 'pageName'));
  const idsInRows = new Set(listCells('id', 'adId').map((id) => normalizeAdId(String(id))));
  const findAdvertiserKey = createAdvertiserKeyFinder(facts.values());
  const isInNames = (text: string | null) => text !== null && namesInRows.has(cleanCell(text, maxCellChars));
  const advertisers = new Map<string, Advertiser>();
  for (const [key, { pageId, pageName }] of facts) {
    const advertiserKey = findAdvertiserKey({ pageId, pageName });
    if (advertiserKey === null) continue;
    const advertiser = advertisers.get(advertiserKey) ?? { pageId, pageName, ads: 0, outside: 0, isInRows: false };
    // Ads are sorted by the time of their newest version, so a renamed page ends up with its newest name.
    advertiser.pageId ??= pageId;
    advertiser.pageName = pageName ?? advertiser.pageName;
    advertiser.ads++;
    if (!coveredIds.has(key)) advertiser.outside++;
    advertiser.isInRows ||= idsInRows.has(key) || isInNames(pageId) || isInNames(pageName);
    advertisers.set(advertiserKey, advertiser);
  }
  const uncovered = [...advertisers.values()].filter(({ outside }) => outside > 0);
  // The ids of a table such as `gatherings` are not ids of ads, so they do not point to an advertiser.
  const hasAdIds = columns.some((column) => column === 'id' || column === 'adId') && areAdIds(idsInRows, facts);
  const hasAdvertiserColumns = hasAdIds || columns.some((column) => column === 'pageId' || column === 'pageName');
  if (!hasAdvertiserColumns) return { named: [], others: uncovered.length };
  const uncoveredInRows = uncovered
    .filter(({ isInRows }) => isInRows)
    .sort((left, right) => right.outside - left.outside);
  return {
    named: uncoveredInRows.slice(0, maxAdvertisers),
    others: Math.max(0, uncoveredInRows.length - maxAdvertisers),
  };
}

/** Returns whether the ids in the rows are ids of ads. A result without rows counts as a result of ads. */
const areAdIds = (ids: ReadonlySet<string>, facts: CoverageInput['facts']): boolean =>
  ids.size === 0 || [...ids].some((id) => facts.has(id));

const viewUncovered = ({ pageId, pageName, ads, outside }: Advertiser): UncoveredView => ({
  ...(pageId !== null && { pageId: sanitizeId(pageId) }),
  ...(pageName !== null && { pageName: truncateLine(pageName, nameTokens) }),
  ads,
  outside,
});

/** Formats the coverage for the text of a result. */
export const formatCoverage = (coverage: CoverageView): string =>
  `${formatGatherings(coverage)}${formatCurrent(coverage)}${formatUncovered(coverage)}`;

function formatCurrent({ current, gatherings }: CoverageView): string {
  if (gatherings === 0) return '';
  if (current === undefined) return ' No gathering is complete, so current_ads is empty.';
  const { ads, firstDay, lastDay } = current;
  const days = firstDay === lastDay ? `on ${firstDay}` : `from ${firstDay} to ${lastDay}`;
  return ` current_ads: ${formatCount(ads, 'ad')} that the newest complete gathering of each question listed, read ${days}.`;
}

/** Formats the advertisers that no complete gathering covers. Returns an empty text if there are none. */
export function formatUncovered({ uncovered = [], moreUncovered = 0 }: CoverageView): string {
  if (uncovered.length + moreUncovered === 0) return '';
  const names = uncovered.map(
    ({ pageName, pageId = '', ads, outside }) =>
      `${quote(pageName ?? pageId)} (${outside === ads ? '' : `${formatNumber(outside)} of `}${formatCount(ads, 'ad')})`,
  );
  if (names.length === 0)
    return ` No complete gathering covers ${formatCount(moreUncovered, 'advertiser')} of the dataset, so there may be more of their ads.`;
  const more = moreUncovered > 0 ? `, and ${formatNumber(moreUncovered)} more` : '';
  return ` No complete gathering covers these advertisers, so there may be more of their ads: ${names.join(', ')}${more}.`;
}

function formatGatherings(coverage: CoverageView): string {
  const { ads, gatherings, outsideAds = 0, partial = [], morePartial = 0, unlisted = 0, removedAds = 0 } = coverage;
  const start = `Coverage: ${formatCount(ads, 'ad')}`;
  const unlistedText =
    unlisted > 0 ? ` The service counts ${formatCount(unlisted, 'ad')} more, which it did not list.` : '';
  const notes = `${unlistedText}${removedAds > 0 ? ` ${formatCount(removedAds, 'ad')} removed to make room.` : ''}`;
  if (ads === 0) return `${start}: nothing is gathered yet. gather_ads and the searches fill the dataset.${notes}`;
  if (gatherings === 0) return `${start} from searches; no gathering covers them.${notes}`;
  const outside = outsideAds > 0 ? `, ${formatOutside(outsideAds)}` : '';
  if (partial.length === 0) return `${start}${outside}; every gathering is complete.${notes}`;
  const more = morePartial > 0 ? ` And ${morePartial} more that are not complete.` : '';
  return `${start}${outside}. Not complete: ${partial.map(formatPartial).join('; ')}.${more}${notes}`;
}

const formatOutside = (ads: number) => `${formatNumber(ads)} of them only from searches or earlier gatherings`;

function formatPartial({
  gathering,
  about,
  found,
  foundInParts,
  read,
  removed,
  repeats,
  gatheredAt,
}: PartialView): string {
  const foundText = found === null ? foundInParts : formatNumber(found);
  const total =
    foundText && repeats
      ? `${foundText}, which counts ${formatCount(repeats, 'ad')} of several parts again`
      : foundText;
  const progressText =
    total === undefined ? `${formatCount(read, 'ad')} of an unknown number` : `${formatNumber(read)} of ${total}`;
  const removedText = removed === undefined ? '' : `, ${formatNumber(removed)} of them removed`;
  return `${gathering} ${quote(about)} (gathered ${progressText}${removedText}, ${gatheredAt})`;
}
