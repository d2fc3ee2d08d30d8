import * as z from 'zod';
import { dayOf } from '../present/dates.ts';
import type { DataOf } from '../present/fields.ts';
import { count } from '../present/lists.ts';
import { quote, sanitizeLine } from '../present/safe-text.ts';
import { truncate, untrustedId } from '../present/tokens.ts';
import { type DatasetContents, type Gathering, idKey } from '../state/dataset.ts';
import type { KnownAd } from './ad-rows.ts';
import { countOutside, newestGatherings, questionJson, type WholeGathering, wholeOf } from './gatherings.ts';
import { cellText } from './sql/statement.ts';

/** How much of all matching ads an answer from the dataset rests on. */
const PartialView = z
  .looseObject({
    gathering: z.string(),
    about: z.string().describe('its question'),
    found: z.number().nullable(),
    foundInParts: z.string().optional().describe('in words, where only some parts are known'),
    read: z.number(),
    removed: z.number().optional().describe('read, then removed to make room'),
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

export const CoverageView = z
  .looseObject({
    ads: z.number().describe('in the dataset'),
    gatherings: z.number().describe('in the dataset'),
    outsideAds: z.number().optional().describe('ads of searches alone'),
    partial: z.array(PartialView).optional().describe('gatherings that are not complete, newest first'),
    morePartial: z.number().optional(),
    uncovered: z
      .array(UncoveredView)
      .optional()
      .describe('advertisers of the answer that no complete gathering covers'),
    moreUncovered: z.number().optional(),
    uncoveredIn: z.string().optional().describe('dataset, where it is not known which advertisers the answer reads'),
    unlisted: z.number().optional().describe('counted for complete gatherings, and not listed when read'),
    removedAds: z.number().optional().describe('to make room'),
  })
  .meta({ title: 'Coverage' });
export type CoverageView = DataOf<typeof CoverageView>;

/** The dataset that an answer rests on, and the answer. */
export interface Answered {
  contents: DatasetContents;
  /** All its ads by their ids. */
  known: ReadonlyMap<string, KnownAd>;
  sql: string;
  /** Rows, as they are shown. */
  rows?: readonly (readonly unknown[])[];
  /** Characters of a cell. */
  cell?: number;
}

const maxPartial = 5;
const maxAdvertisers = 10;
const nameTokens = 20;
const aboutTokens = 40;

/** The newest gathering of each question counts. A gathering that is part of another is stated with the other. */
export function viewCoverage(answered: Answered): CoverageView {
  const { contents } = answered;
  const { ads, gatherings, evicted } = contents;
  const newest = newestGatherings(contents);
  const outsideAds = countOutside(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  const wholes = newest.filter(({ id }) => !parts.has(id)).map((gathering) => wholeOf(gathering, contents));
  const unlisted = wholes.reduce((sum, gathering) => sum + gathering.unlisted, 0);
  const partial = wholes.filter(({ complete }) => !complete).sort((left, right) => right.gatheredAt - left.gatheredAt);
  const { uncovered, isOfAll } = uncoveredBy(answered);
  return {
    ads: ads.length,
    gatherings: gatherings.length,
    ...(outsideAds > 0 && { outsideAds }),
    ...(partial.length > 0 && { partial: partial.slice(0, maxPartial).map(viewPartial) }),
    ...(partial.length > maxPartial && { morePartial: partial.length - maxPartial }),
    ...(uncovered.length > 0 && { uncovered: uncovered.slice(0, maxAdvertisers).map(viewUncovered) }),
    ...(uncovered.length > maxAdvertisers && { moreUncovered: uncovered.length - maxAdvertisers }),
    ...(uncovered.length > 0 && isOfAll && { uncoveredIn: 'dataset' }),
    ...(unlisted > 0 && { unlisted }),
    ...(evicted.ads > 0 && { removedAds: evicted.ads }),
  };
}

function viewPartial(gathering: WholeGathering): PartialView {
  const { id, found, foundInParts, adIds, missing, gatheredAt } = gathering;
  return {
    gathering: id,
    about: truncate(sanitizeLine(questionJson(gathering)), aboutTokens),
    found,
    ...(foundInParts && { foundInParts }),
    read: adIds.size,
    ...(missing > 0 && { removed: missing }),
    gatheredAt: dayOf(gatheredAt) ?? '',
  };
}

interface Advertiser {
  pageId: string | null;
  pageName: string | null;
  ads: number;
  outside: number;
}

/**
 * Advertisers whose numbers may be too low. Where a column of the answer holds nothing but advertisers or ads, those are
 * meant, or else those of the gatherings that the statement names; where neither tells, all of the dataset.
 */
function uncoveredBy(answered: Answered): { uncovered: Advertiser[]; isOfAll: boolean } {
  const { contents, known, sql } = answered;
  const gatherings = contents.gatherings.map((gathering) => wholeOf(gathering, contents));
  const covered = new Set(gatherings.flatMap((one) => (one.complete ? [...one.adIds] : [])));
  const advertisers = new Map<string, Advertiser>();
  const byAd = new Map<string, Advertiser>();
  for (const [key, { pageId, pageName }] of known) {
    if (pageId === null && pageName === null) continue;
    const name = JSON.stringify([pageId, pageName]);
    const advertiser = advertisers.get(name) ?? { pageId, pageName, ads: 0, outside: 0 };
    advertisers.set(name, advertiser);
    advertiser.ads++;
    if (!covered.has(key)) advertiser.outside++;
    byAd.set(key, advertiser);
  }
  const shown = advertisersIn(answered, byAd, [...advertisers.values()]);
  const isNamed = ({ id }: Gathering) => sql.includes(`'${id}'`) && !widens.test(sql);
  const named = gatherings.filter(isNamed).flatMap(({ adIds }) => [...adIds]);
  const inNamed = named.flatMap((id) => (covered.has(id) ? [] : (byAd.get(id) ?? [])));
  const all = new Set(shown ?? (named.length > 0 ? inNamed : advertisers.values()));
  const uncovered = [...all].filter(({ outside }) => outside > 0).sort((left, right) => right.outside - left.outside);
  return { uncovered, isOfAll: shown === undefined && named.length === 0 && narrows.test(sql) };
}

/** A statement with these may read others than the gatherings that it names. */
const widens = /\b(?:or|not|union|except|intersect|case|filter|iif)\b|<>|!=|\bselect\b.*\bselect\b/is;
/** Only a statement without these is sure to read all of the dataset. */
const narrows = /\b(?:where|join|having|limit|offset)\b/i;

/** The advertisers of the first column in which every cell is one of them, or one of their ads. */
function advertisersIn(
  { rows = [], cell = 0 }: Answered,
  byAd: ReadonlyMap<string, Advertiser>,
  all: readonly Advertiser[],
): Advertiser[] | undefined {
  const byCell = new Map<string, Advertiser[]>();
  const add = (text: string | null, advertiser: Advertiser) => {
    if (text === null) return;
    const shown = cellText(text, cell);
    const others = byCell.get(shown);
    if (others) others.push(advertiser);
    else byCell.set(shown, [advertiser]);
  };
  if (rows.length === 0) return;
  for (const advertiser of all) {
    add(advertiser.pageName, advertiser);
    add(advertiser.pageId, advertiser);
  }
  const meant = (value: unknown): Advertiser[] => {
    if (typeof value !== 'string') return [];
    const ofAd = byAd.get(idKey(value));
    return byCell.get(value) ?? (ofAd ? [ofAd] : []);
  };
  for (const column of rows[0]?.keys() ?? []) {
    const cells = rows.flatMap((row) => (row[column] === null ? [] : [meant(row[column])]));
    if (cells.length > 0 && cells.every(({ length }) => length > 0)) return [...new Set(cells.flat())];
  }
}

const viewUncovered = ({ pageId, pageName, ads, outside }: Advertiser): UncoveredView => ({
  ...(pageId !== null && { pageId: untrustedId(pageId) }),
  ...(pageName !== null && { pageName: truncate(sanitizeLine(pageName), nameTokens) }),
  ads,
  outside,
});

/** Which gatherings an answer rests on only in part; that it rests on no gathering; or that all are complete. */
export const coverageText = (coverage: CoverageView): string => `${gatheringsText(coverage)}${uncoveredText(coverage)}`;

/** Which advertisers of an answer no complete gathering has read, as far as is known. */
export function uncoveredText({ uncovered = [], moreUncovered = 0, uncoveredIn }: CoverageView): string {
  if (uncovered.length === 0) return '';
  const names = uncovered.map(
    ({ pageName, pageId = '', ads, outside }) =>
      `${quote(pageName ?? pageId)} (${outside === ads ? count(ads, 'ad') : `${outside} of ${count(ads, 'ad')}`})`,
  );
  const more = moreUncovered > 0 ? `, and ${moreUncovered} more` : '';
  const these = uncoveredIn
    ? 'these advertisers of the dataset, which the statement may have read'
    : 'these advertisers';
  return ` No complete gathering covers ${these}, so there may be more of their ads: ${names.join(', ')}${more}.`;
}

function gatheringsText(coverage: CoverageView): string {
  const { ads, gatherings, outsideAds = 0, partial = [], morePartial = 0, unlisted = 0, removedAds = 0 } = coverage;
  const rests = `Coverage: ${count(ads, 'ad')}`;
  const lacks = unlisted > 0 ? ` The service counts ${count(unlisted, 'ad')} more, which it did not list.` : '';
  const removed = `${lacks}${removedAds > 0 ? ` ${count(removedAds, 'ad')} removed to make room.` : ''}`;
  if (ads === 0) return `${rests}: nothing is gathered yet. gather_ads and the searches fill the dataset.${removed}`;
  if (gatherings === 0) return `${rests} from searches; no gathering covers them.${removed}`;
  const outside = outsideAds > 0 ? `, ${outsideText(outsideAds)}` : '';
  if (partial.length === 0) return `${rests}${outside}; every gathering is complete.${removed}`;
  const more = morePartial > 0 ? ` And ${morePartial} more that are not complete.` : '';
  return `${rests}${outside}. Not complete: ${partial.map(partialText).join('; ')}.${more}${removed}`;
}

const outsideText = (ads: number) =>
  `${ads} of them only from searches or earlier gatherings (to leave them out, join gathered on a gatheringId)`;

function partialText({ gathering, about, found, foundInParts, read, removed, gatheredAt }: PartialView): string {
  const total = found ?? foundInParts;
  const part = total === undefined ? `${count(read, 'ad')} of an unknown number` : `${read} of ${total}`;
  const without = removed === undefined ? '' : `, ${removed} of them removed`;
  return `${gathering} ${quote(about)} (gathered ${part}${without}, ${gatheredAt})`;
}
