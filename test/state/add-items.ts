import type { Dataset } from '../../src/state/dataset.ts';

export const about = (at: number) => ({ at, order: at, listedBy: 'searchAds', requestId: `r${at}` });

export const add = (dataset: Dataset, at: number, ...items: unknown[]): Promise<void> =>
  dataset.addItems({ ...about(at), type: 'ads', items: () => items });
