import { addCollectionItem } from './add-collection-item.ts';
import type { Tool } from './define-tool.ts';
import { getAccount } from './get-account.ts';
import { getAd } from './get-ad.ts';
import { getCredits } from './get-credits.ts';
import { getPage } from './get-page.ts';
import { listCollectionItems } from './list-collection-items.ts';
import { listCollections } from './list-collections.ts';
import { searchAds } from './search-ads.ts';
import { searchPages } from './search-pages.ts';
import { whoami } from './whoami.ts';

/** One tool per operation of the API, in the order hosts list them: what a person asks for most comes first. */
export const tools: readonly Tool[] = [
  searchAds,
  getAd,
  searchPages,
  getPage,
  listCollections,
  listCollectionItems,
  addCollectionItem,
  getCredits,
  getAccount,
  whoami,
];
