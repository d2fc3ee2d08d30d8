import { createGathering } from '../../src/dataset/gatherings.ts';
import type { Dataset, GatheringStep } from '../../src/storage/dataset.ts';

export const createSource = (at: number) => ({ at, order: at, listedBy: 'searchAds', requestId: `r${at}` });

export const addAds = (dataset: Dataset, at: number, ...items: unknown[]): Promise<void> =>
  dataset.addItems({ ...createSource(at), type: 'ads', items: () => items });

/** A step of a gathering that is complete with it. */
export const createLastStep = (adIds: readonly string[], changes: Partial<GatheringStep> = {}): GatheringStep => ({
  ...createGathering({}, 1),
  ...{ id: 'g', listed: 0, ended: true, gatheredAt: 2, adIds, ...changes },
});
