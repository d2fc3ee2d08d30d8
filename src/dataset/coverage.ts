import type { DatasetContents, Gathering } from '../state/dataset.ts';
import { adIdsOf, foundBy, isComplete } from './gatherings.ts';

/** How much of what there is lies in a dataset. */
export interface Coverage {
  ads: number;
  gatherings: number;
  /** Gatherings that are not complete, the newest first. */
  partial: PartialGathering[];
  /** Ads that were removed for want of room. */
  letGo: number;
}

export interface PartialGathering {
  id: string;
  filters: Gathering['filters'];
  collectionId: string | null;
  found: number | null;
  read: number;
  /** Ads that were read and are no longer kept. */
  missing: number;
  gatheredAt: number;
}

/** The newest gathering of each question counts; one that is part of another is stated with that. */
export function coverageOf(contents: DatasetContents): Coverage {
  const newest = new Map(contents.gatherings.map((gathering) => [gathering.question, gathering]));
  const parts = new Set([...newest.values()].flatMap((gathering) => gathering.parts));
  const partial = [...newest.values()]
    .filter((gathering) => !parts.has(gathering.id) && !isComplete(gathering, contents))
    .sort((left, right) => right.gatheredAt - left.gatheredAt)
    .map((gathering) => partialGathering(gathering, contents));
  return {
    ads: contents.ads.length,
    gatherings: contents.gatherings.length,
    partial,
    letGo: contents.letGo.ads,
  };
}

function partialGathering(gathering: Gathering, contents: DatasetContents): PartialGathering {
  const { id, filters, collectionId, gatheredAt } = gathering;
  const ids = adIdsOf(gathering, contents);
  const parts = contents.gatherings.filter((other) => gathering.parts.includes(other.id));
  const missing = [gathering, ...parts].reduce((sum, part) => sum + part.missing, 0);
  return { id, filters, collectionId, found: foundBy(gathering, contents), read: ids.size, missing, gatheredAt };
}
