import { addCollectionItem } from './add-collection-item.ts';
import { checkWatches } from './check-watches.ts';
import { countAds } from './count-ads.ts';
import { exportAds } from './export-ads.ts';
import { gatherAds } from './gather-ads.ts';
import { getAccount } from './get-account.ts';
import { getAd } from './get-ad.ts';
import { getCredits } from './get-credits.ts';
import { getPage } from './get-page.ts';
import { labelAds } from './label-ads.ts';
import { listCollectionItems } from './list-collection-items.ts';
import { listCollections } from './list-collections.ts';
import { listWatches } from './list-watches.ts';
import { queryAds } from './query-ads.ts';
import { searchAds } from './search-ads.ts';
import { searchPages } from './search-pages.ts';
import type { Tool } from './tool.ts';
import { unwatchAds } from './unwatch-ads.ts';
import { viewAds } from './view-ads.ts';
import { watchAds } from './watch-ads.ts';
import { whoami } from './whoami.ts';
import { writeReport } from './write-report.ts';

/** All tools that models can call. Hosts list them in this order, so the most frequently used tools come first. */
export const tools: readonly Tool[] = [
  searchAds,
  getAd,
  searchPages,
  getPage,
  countAds,
  gatherAds,
  queryAds,
  viewAds,
  labelAds,
  exportAds,
  writeReport,
  watchAds,
  checkWatches,
  listWatches,
  unwatchAds,
  listCollections,
  listCollectionItems,
  addCollectionItem,
  getCredits,
  getAccount,
  whoami,
];
