import type { Dataset, GatheringState } from '../../src/state/dataset.ts';
import { MemoryDatasets } from '../../src/state/memory-state.ts';
import { add } from '../state/add-items.ts';

export { add };

export const newDataset = (): Promise<Dataset> => new MemoryDatasets().of({ tenantId: 't' });

/** Gathers these ads to the last page, in one step. */
export async function gather(dataset: Dataset, state: GatheringState, ads: readonly ({ id: string } & object)[]) {
  await add(dataset, state.startedAt, ...ads);
  const adIds = ads.map(({ id }) => id);
  await dataset.saveGathering({ ...state, found: ads.length, ended: true, answerOrder: state.startedAt, adIds });
}
