import { createGathering } from '../../src/dataset/gatherings.ts';
import type { Dataset, GatheringStep } from '../../src/storage/dataset.ts';

export const about = (at: number) => ({ at, order: at, listedBy: 'searchAds', requestId: `r${at}` });

export const add = (dataset: Dataset, at: number, ...items: unknown[]): Promise<void> =>
  dataset.addItems({ ...about(at), type: 'ads', items: () => items });

/** A step of a gathering that is complete with it. */
export const lastStep = (adIds: readonly string[], changes: Partial<GatheringStep> = {}): GatheringStep => ({
  ...createGathering({}, 1),
  ...{ id: 'g', listed: 0, ended: true, gatheredAt: 2, adIds, ...changes },
});
