import type { ItemType } from '../api/schemas.ts';
import type { GatheringStep } from './dataset.ts';
import type { ItemRecord } from './item-history.ts';

/** What changes a dataset. Records may come in any order and more than once. */
export type DatasetRecord = (ItemRecord & { kind: ItemType }) | (GatheringStep & { kind: 'gathering' });
