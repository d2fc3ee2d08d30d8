import * as z from 'zod';
import { canonical } from '../api/send.ts';
import { quote } from '../present/fence.ts';
import { truncate } from '../present/fit.ts';
import { count } from '../present/list-text.ts';
import { dayOf } from '../present/running.ts';
import { sanitizeLine } from '../present/text.ts';
import type { DatasetContents, Gathering } from '../state/dataset.ts';
import { adIdsOf, countOutside, foundBy, foundInParts, isComplete, newestGatherings } from './gatherings.ts';

/** How much of what there is an answer from the dataset rests on. */
export const CoverageView = z.looseObject({
  ads: z.number(),
  gatherings: z.number(),
  partial: z.array(z.looseObject({ gathering: z.string(), read: z.number() })).optional(),
});
export type CoverageView = {
  ads: number;
  gatherings: number;
  /** Ads that the newest gatherings of all questions did not read. */
  outsideAds?: number;
  /** Gatherings that are not complete, the newest first. */
  partial?: PartialView[];
  /** How many more there are. */
  morePartial?: number;
  /** Ads that were removed to make room. */
  removedAds?: number;
};

interface PartialView {
  gathering: string;
  /** What was asked for, as JSON. */
  about: string;
  found: number | null;
  /** In words, where that is not known of all parts. */
  foundInParts?: string;
  read: number;
  /** Ads that were read and removed to make room. */
  removed?: number;
  gatheredAt: string;
}

const MAX_PARTIAL = 5;
const ABOUT_TOKENS = 40;

/** The newest gathering of each question counts; one that is part of another is stated with that. */
export function viewCoverage(contents: DatasetContents): CoverageView {
  const { ads, gatherings, letGo } = contents;
  const newest = newestGatherings(contents);
  const outsideAds = countOutside(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  const partial = newest
    .filter((gathering) => !parts.has(gathering.id) && !isComplete(gathering, contents))
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
  return {
    ads: ads.length,
    gatherings: gatherings.length,
    ...(outsideAds > 0 && { outsideAds }),
    ...(partial.length > 0 && { partial: partial.slice(0, MAX_PARTIAL).map((one) => viewPartial(one, contents)) }),
    ...(partial.length > MAX_PARTIAL && { morePartial: partial.length - MAX_PARTIAL }),
    ...(letGo.ads > 0 && { removedAds: letGo.ads }),
  };
}

function viewPartial(gathering: Gathering, contents: DatasetContents): PartialView {
  const { id, filters, collectionId, parts, gatheredAt } = gathering;
  const about = collectionId === null ? canonical(filters ?? {}) : `collection ${collectionId}`;
  const inParts = foundInParts(gathering, contents);
  const removed = contents.gatherings
    .filter((other) => other === gathering || parts.includes(other.id))
    .reduce((sum, { missing }) => sum + missing, 0);
  return {
    gathering: id,
    about: truncate(sanitizeLine(about), ABOUT_TOKENS),
    found: foundBy(gathering, contents),
    ...(inParts && { foundInParts: inParts }),
    read: adIdsOf(gathering, contents).size,
    ...(removed > 0 && { removed }),
    gatheredAt: dayOf(gatheredAt) ?? '',
  };
}

/** Which gatherings an answer rests on only in part; that it rests on no gathering; or that all are complete. */
export function coverageText(coverage: CoverageView): string {
  const { ads, gatherings, outsideAds = 0, partial = [], morePartial = 0, removedAds = 0 } = coverage;
  const rests = `Coverage: ${count(ads, 'ad')}`;
  const removed = removedAds > 0 ? ` ${count(removedAds, 'ad')} removed to make room.` : '';
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
