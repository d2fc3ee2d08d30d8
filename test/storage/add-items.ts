import { createGathering } from '../../src/dataset/gatherings.ts';
import type { Dataset, GatheringStep } from '../../src/storage/dataset.ts';

/** Describes an API response that arrived at time `at`, which is also its sequence number. */
export const createSource = (at: number) => ({ at, sequenceNumber: at, listedBy: 'searchAds', requestId: `r${at}` });

/** Adds ads to a dataset. */
export const addAds = (dataset: Dataset, at: number, ...items: unknown[]): Promise<void> =>
  dataset.addItems({ ...createSource(at), type: 'ads', parseItems: () => items });

/** Creates the last step of a gathering (the stored ad list of a search). */
export const createLastStep = (adIds: readonly string[], changes: Partial<GatheringStep> = {}): GatheringStep => ({
  ...createGathering({}, 1),
  ...{ id: 'g', listedCount: 0, hasReadLastPage: true, gatheredAt: 2, adIds, ...changes },
});
