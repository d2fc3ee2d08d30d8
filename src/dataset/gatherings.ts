import { hash } from 'node:crypto';
import { canonical } from '../api/send.ts';
import { type DatasetContents, type Gathering, type GatheringState, idKey, type StoredItem } from '../state/dataset.ts';

type Filters = Readonly<Record<string, unknown>>;

/** What a gathering is about: ads that match filters, those of a collection, or both of several searches together. */
export interface GatheringQuestion {
  filters?: Filters | undefined;
  split?: readonly Filters[] | undefined;
  collectionId?: string | undefined;
}

/** Equal for the same question, whatever the order of its filters. */
export const questionKey = ({ filters = {}, split, collectionId }: GatheringQuestion): string =>
  hash('sha256', canonical([filters, split ?? null, collectionId?.toLowerCase() ?? null]), 'base64url');

/** The question of each part: each filter object of `split` laid over `filters`. */
export const partsOfQuestion = ({ filters = {}, split, collectionId }: GatheringQuestion): GatheringQuestion[] =>
  split?.map((part) => ({ filters: { ...filters, ...part } })) ?? [{ filters, collectionId }];

/** A gathering that starts now. Two that start at the same time with the same question are one. */
export function newGathering(question: GatheringQuestion, at: number): GatheringState {
  const key = questionKey(question);
  const { filters = {}, split, collectionId = null } = question;
  return {
    id: `g${hash('sha256', `${key} ${at}`).slice(0, 10)}`,
    question: key,
    filters: collectionId === null ? { ...filters, ...(split && { split }) } : null,
    collectionId,
    parts: [],
    found: null,
    ended: false,
    cursor: null,
    startedAt: at,
    gatheredAt: at,
  };
}

/** When a gathering reads more: later than before, even if another process read that by a clock that was fast. */
export const timeAfter = ({ gatheredAt }: GatheringState, now: number): number => Math.max(now, gatheredAt + 1);

/** All gatherings of a question, the newest first. */
export const gatheringsOf = ({ gatherings }: DatasetContents, question: GatheringQuestion): Gathering[] => {
  const key = questionKey(question);
  return gatherings.filter((gathering) => gathering.question === key).reverse();
};

/** The newest gathering of each question. */
export const newestGatherings = ({ gatherings }: DatasetContents): Gathering[] => [
  ...new Map(gatherings.map((gathering) => [gathering.question, gathering])).values(),
];

/** How many ads came from searches or earlier gatherings only; 0 where nothing was gathered. */
export function countOutside(contents: DatasetContents): number {
  if (contents.gatherings.length === 0) return 0;
  const inside = new Set(newestGatherings(contents).flatMap((gathering) => [...adIdsOf(gathering, contents)]));
  return contents.ads.filter(({ id }) => !inside.has(idKey(id))).length;
}

const partsOf = ({ parts }: Gathering, { gatherings }: DatasetContents): Gathering[] =>
  gatherings.filter(({ id }) => parts.includes(id));

/** Ids of all ads that a gathering read, those of its parts included. */
export function adIdsOf(gathering: Gathering, contents: DatasetContents): ReadonlySet<string> {
  if (gathering.parts.length === 0) return gathering.adIds;
  return new Set(partsOf(gathering, contents).flatMap(({ adIds }) => [...adIds]));
}

/** Whether the last page of all parts was reached and all their ads are kept. */
export function isComplete(gathering: Gathering, contents: DatasetContents): boolean {
  if (gathering.parts.length === 0) return gathering.complete;
  const parts = partsOf(gathering, contents);
  return gathering.ended && parts.length === new Set(gathering.parts).size && parts.every(({ complete }) => complete);
}

/** What the service says there is; the sum of the parts, and null unless all of them say it. */
export function foundBy(gathering: Gathering, contents: DatasetContents): number | null {
  if (gathering.parts.length === 0) return gathering.found;
  const parts = partsOf(gathering, contents);
  return parts.reduce<number | null>((sum, { found }) => (sum === null || found === null ? null : sum + found), 0);
}

/** In words, where only some parts say what there is: what those say. */
export function foundInParts(gathering: Gathering, contents: DatasetContents): string | undefined {
  if (foundBy(gathering, contents) !== null) return;
  const totals = partsOf(gathering, contents).flatMap((part) => part.found ?? []);
  if (totals.length === 0) return;
  const sum = totals.reduce((all, total) => all + total, 0);
  return `${sum} found in ${totals.length} of ${gathering.parts.length} parts`;
}

export interface GatheringChanges {
  /** Ads that were not in the dataset before. */
  added: string[];
  /** Ads whose content has changed. */
  updated: string[];
  /** Ads that the last gathering of the same question did not have. Null unless both are complete. */
  fresh: string[] | null;
  /** Ads of that gathering which this one did not see. Null unless both are complete. */
  gone: string[] | null;
  /** When that gathering was made. */
  before: number | null;
}

/**
 * What a gathering brought since a time, and how it differs from the last complete one of the same question that was
 * started before it.
 */
export function changesOf(gathering: Gathering, contents: DatasetContents, since: number): GatheringChanges {
  const ids = adIdsOf(gathering, contents);
  const read = contents.ads.filter(({ id }) => ids.has(idKey(id)));
  const earlier = contents.gatherings.filter(
    (other) => other.question === gathering.question && other.startedAt < gathering.startedAt,
  );
  const before = earlier.findLast((other) => isComplete(other, contents));
  const comparable = before !== undefined && isComplete(gathering, contents);
  const beforeIds = before === undefined ? new Set<string>() : adIdsOf(before, contents);
  return {
    added: idsOf(read.filter(({ firstAt }) => firstAt >= since)),
    updated: idsOf(read.filter((ad) => ad.firstAt < since && ad.since >= since)),
    fresh: comparable ? idsOf(read.filter(({ id }) => !beforeIds.has(idKey(id)))) : null,
    gone: comparable ? [...beforeIds].filter((id) => !ids.has(id)) : null,
    before: before?.gatheredAt ?? null,
  };
}

const idsOf = (ads: readonly StoredItem[]): string[] => ads.map(({ id }) => id);
