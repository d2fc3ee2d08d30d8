import type { ItemType } from '../api/schemas.ts';
import { adType } from './ad-type.ts';
import { pageType } from './page-type.ts';
import type { RecordType } from './record-type.ts';

export const recordTypes: Record<ItemType, RecordType> = { ads: adType, pages: pageType };
