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

const PartialView = z
  .looseObject({
    gathering: z.string(),
    about: z.string().describe('its question'),
    found: z.number().nullable(),
    foundInParts: z.string().optional().describe('in words'),
    read: z.number(),
    removed: z.number().optional().describe('to make room'),
    repeats: z.number().optional().describe('ads that found counts again, because parts overlap'),
    gatheredAt: z.string(),
  })
  .meta({ title: 'Partial' });
type PartialView = DataOf<typeof PartialView>;

const UncoveredView = z
  .looseObject({
    pageId: z.string().optional().describe('the advertiser'),
    pageName: z.string().optional(),
    ads: z.number().describe('in the dataset'),
    outside: z.number().describe('those that no complete gathering read'),
  })
  .meta({ title: 'Uncovered' });
type UncoveredView = DataOf<typeof UncoveredView>;

const CurrentView = z
  .looseObject({
    ads: z.number(),
    firstDay: z.string(),
    lastDay: z.string(),
  })
  .meta({ title: 'Current' });

export const CoverageView = z
  .looseObject({
    ads: z.number().describe('in the dataset'),
    gatherings: z.number().describe('in the dataset'),
    outsideAds: z.number().optional().describe('ads of searches alone'),
    current: CurrentView.optional().describe('current_ads'),
    partial: z.array(PartialView).optional().describe('gatherings that are not complete, newest first'),
    morePartial: z.number().optional(),
    uncovered: z.array(UncoveredView).optional().describe('advertisers of the rows that no complete gathering covers'),
    moreUncovered: z.number().optional(),
    unlisted: z.number().optional().describe('counted by the service, not listed'),
    removedAds: z.number().optional().describe('to make room'),
  })
  .meta({ title: 'Coverage' });
export type CoverageView = DataOf<typeof CoverageView>;

/** The same for tools that write files. Only `query_ads` lists its fields, to keep the list of tools small. */
export const FileCoverageView = z.looseObject({}).describe('what it rests on, as in query_ads');

export interface CoverageInput {
  contents: DatasetContents;
  /** What is known of each ad of the dataset, by `normalizeAdId`. */
  facts: ReadonlyMap<string, KnownAdFacts>;
  columns?: readonly string[];
  rows?: readonly (readonly unknown[])[];
  maxCellChars?: number;
}

const maxPartial = 5;
const maxAdvertisers = 10;
const nameTokens = 20;
const aboutTokens = 40;

/** The newest gathering of each question counts. A gathering that is part of another is stated with the other. */
export function viewCoverage(answered: CoverageInput): CoverageView {
  const { contents } = answered;
  const { ads, gatherings, evicted } = contents;
  const newest = selectNewestGatherings(contents);
  const outsideAds = countAdsOutsideGatherings(contents);
  const current = viewCurrent(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  const wholes = newest.filter(({ id }) => !parts.has(id));
  const unlisted = sumOf(wholes.map(countUnlistedAds));
  const partial = wholes.filter(({ complete }) => !complete).sort((left, right) => right.gatheredAt - left.gatheredAt);
  const { named, others } = uncoveredBy(answered);
  return {
    ads: ads.length,
    gatherings: gatherings.length,
    ...(outsideAds > 0 && { outsideAds }),
    ...(current && { current }),
    ...(partial.length > 0 && { partial: partial.slice(0, maxPartial).map(viewPartial) }),
    ...(partial.length > maxPartial && { morePartial: partial.length - maxPartial }),
    ...(named.length > 0 && { uncovered: named.map(viewUncovered) }),
    ...(others > 0 && { moreUncovered: others }),
    ...(unlisted > 0 && { unlisted }),
    ...(evicted.ads > 0 && { removedAds: evicted.ads }),
  };
}

/** Returns how many ads the newest complete gatherings list, and on which days these were read. */
function viewCurrent(contents: DatasetContents): DataOf<typeof CurrentView> | undefined {
  const gatherings = selectCurrentGatherings(contents);
  const days = gatherings.flatMap(({ gatheredAt }) => formatDay(gatheredAt) ?? []).sort();
  const [firstDay, lastDay] = [days[0], days.at(-1)];
  if (firstDay === undefined || lastDay === undefined) return;
  return { ads: new Set(gatherings.flatMap(({ adIds }) => [...adIds])).size, firstDay, lastDay };
}

function viewPartial(gathering: Gathering): PartialView {
  const { id, found, adIds, missing, gatheredAt } = gathering;
  const [inParts, repeats] = [formatFoundInParts(gathering), countRepeats(gathering)];
  return {
    gathering: id,
    about: truncateLine(formatQuestionJson(gathering), aboutTokens),
    found,
    ...(inParts && { foundInParts: inParts }),
    read: adIds.size,
    ...(missing > 0 && { removed: missing }),
    ...(repeats > 0 && { repeats }),
    gatheredAt: formatDay(gatheredAt) ?? '',
  };
}

interface Advertiser extends Pick<KnownAdFacts, 'pageId' | 'pageName'> {
  ads: number;
  /** How many of its ads no complete gathering read. */
  outside: number;
  isInRows: boolean;
}

/**
 * Returns the advertisers with ads that no complete gathering read. If the rows have ids of ads or advertisers, they are
 * the advertisers of the rows, by name. Otherwise all advertisers of the dataset are counted, and none is named.
 */
function uncoveredBy({ contents, facts, columns = [], rows = [], maxCellChars = 0 }: CoverageInput) {
  const covered = new Set(contents.gatherings.flatMap((one) => (one.complete ? [...one.adIds] : [])));
  const cellsOf = (...names: string[]): unknown[] =>
    columns.flatMap((column, at) => (names.includes(column) ? rows.map((row) => row[at]) : []));
  const names = new Set(cellsOf('pageId', 'pageName'));
  const ids = new Set(cellsOf('id', 'adId').map((id) => normalizeAdId(String(id))));
  const keyOf = createAdvertiserKeyFinder(facts.values());
  const isNamed = (text: string | null) => text !== null && names.has(cleanCell(text, maxCellChars));
  const advertisers = new Map<string, Advertiser>();
  for (const [key, { pageId, pageName }] of facts) {
    const advertiserKey = keyOf({ pageId, pageName });
    if (advertiserKey === null) continue;
    const one = advertisers.get(advertiserKey) ?? { pageId, pageName, ads: 0, outside: 0, isInRows: false };
    // The ads come in the order of their newest versions, so a renamed page has its newest name.
    one.pageId ??= pageId;
    one.pageName = pageName ?? one.pageName;
    one.ads++;
    if (!covered.has(key)) one.outside++;
    one.isInRows ||= ids.has(key) || isNamed(pageId) || isNamed(pageName);
    advertisers.set(advertiserKey, one);
  }
  const uncovered = [...advertisers.values()].filter(({ outside }) => outside > 0);
  // The ids of a table such as gatherings are no ids of ads, and tell no advertiser.
  const hasAdIds = columns.some((column) => column === 'id' || column === 'adId') && isAdIds(ids, facts);
  const namesAdvertisers = hasAdIds || columns.some((column) => column === 'pageId' || column === 'pageName');
  if (!namesAdvertisers) return { named: [], others: uncovered.length };
  const shown = uncovered.filter(({ isInRows }) => isInRows).sort((left, right) => right.outside - left.outside);
  return { named: shown.slice(0, maxAdvertisers), others: Math.max(0, shown.length - maxAdvertisers) };
}

/** Returns whether ids of rows are ids of ads. A result without rows is taken for one of ads. */
const isAdIds = (ids: ReadonlySet<string>, facts: CoverageInput['facts']): boolean =>
  ids.size === 0 || [...ids].some((id) => facts.has(id));

const viewUncovered = ({ pageId, pageName, ads, outside }: Advertiser): UncoveredView => ({
  ...(pageId !== null && { pageId: sanitizeId(pageId) }),
  ...(pageName !== null && { pageName: truncateLine(pageName, nameTokens) }),
  ads,
  outside,
});

export const formatCoverage = (coverage: CoverageView): string =>
  `${gatheringsText(coverage)}${currentText(coverage)}${formatUncovered(coverage)}`;

function currentText({ current, gatherings }: CoverageView): string {
  if (gatherings === 0) return '';
  if (current === undefined) return ' No gathering is complete, so current_ads is empty.';
  const { ads, firstDay, lastDay } = current;
  const days = firstDay === lastDay ? `on ${firstDay}` : `from ${firstDay} to ${lastDay}`;
  return ` current_ads: ${formatCount(ads, 'ad')} that the newest complete gathering of each question listed, read ${days}.`;
}

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

function gatheringsText(coverage: CoverageView): string {
  const { ads, gatherings, outsideAds = 0, partial = [], morePartial = 0, unlisted = 0, removedAds = 0 } = coverage;
  const rests = `Coverage: ${formatCount(ads, 'ad')}`;
  const lacks = unlisted > 0 ? ` The service counts ${formatCount(unlisted, 'ad')} more, which it did not list.` : '';
  const removed = `${lacks}${removedAds > 0 ? ` ${formatCount(removedAds, 'ad')} removed to make room.` : ''}`;
  if (ads === 0) return `${rests}: nothing is gathered yet. gather_ads and the searches fill the dataset.${removed}`;
  if (gatherings === 0) return `${rests} from searches; no gathering covers them.${removed}`;
  const outside = outsideAds > 0 ? `, ${outsideText(outsideAds)}` : '';
  if (partial.length === 0) return `${rests}${outside}; every gathering is complete.${removed}`;
  const more = morePartial > 0 ? ` And ${morePartial} more that are not complete.` : '';
  return `${rests}${outside}. Not complete: ${partial.map(partialText).join('; ')}.${more}${removed}`;
}

const outsideText = (ads: number) => `${formatNumber(ads)} of them only from searches or earlier gatherings`;

function partialText({
  gathering,
  about,
  found,
  foundInParts,
  read,
  removed,
  repeats,
  gatheredAt,
}: PartialView): string {
  const stated = found === null ? foundInParts : formatNumber(found);
  const total =
    stated && repeats ? `${stated}, which counts ${formatCount(repeats, 'ad')} of several parts again` : stated;
  const part =
    total === undefined ? `${formatCount(read, 'ad')} of an unknown number` : `${formatNumber(read)} of ${total}`;
  const without = removed === undefined ? '' : `, ${formatNumber(removed)} of them removed`;
  return `${gathering} ${quote(about)} (gathered ${part}${without}, ${gatheredAt})`;
}
