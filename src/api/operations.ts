export type OperationName =
  | 'whoami'
  | 'getAccount'
  | 'getCredits'
  | 'listCollections'
  | 'listCollectionItems'
  | 'addCollectionItem'
  | 'searchAds'
  | 'getAd'
  | 'searchPages'
  | 'getPage';

/** One row of the document's endpoint table. `responseSchemas` has what it answers with. */
export interface Operation {
  name: OperationName;
  method: 'GET' | 'POST';
  /** Path parameters in braces. */
  path: string;
  /** Gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often it may be sent again when nobody knows whether it was carried out. A gated read may have been charged,
   * so never; adding an item twice leaves it there once (*Endpoints*, rule 1), so once.
   */
  maxUnsafeRetries: number;
  /** Changes something at the service. */
  writes?: true;
  /** Answers with a page of a list, of as many items as its call asks for. */
  list?: true;
}

export const operations: Readonly<Record<OperationName, Operation>> = {
  whoami: {
    name: 'whoami',
    method: 'GET',
    path: '/v1/whoami',
    gated: false,
    maxUnsafeRetries: 2,
  },
  getAccount: {
    name: 'getAccount',
    method: 'GET',
    path: '/v1/account',
    gated: false,
    maxUnsafeRetries: 2,
  },
  getCredits: {
    name: 'getCredits',
    method: 'GET',
    path: '/v1/credits',
    gated: false,
    maxUnsafeRetries: 2,
  },
  listCollections: {
    name: 'listCollections',
    method: 'GET',
    path: '/v1/collections',
    gated: false,
    maxUnsafeRetries: 2,
  },
  listCollectionItems: {
    name: 'listCollectionItems',
    method: 'GET',
    path: '/v1/collections/{collectionId}/items',
    list: true,
    gated: true,
    maxUnsafeRetries: 0,
  },
  addCollectionItem: {
    name: 'addCollectionItem',
    method: 'POST',
    path: '/v1/collections/{collectionId}/items',
    gated: false,
    maxUnsafeRetries: 1,
    writes: true,
  },
  searchAds: {
    name: 'searchAds',
    method: 'POST',
    path: '/v1/ads/search',
    list: true,
    gated: true,
    maxUnsafeRetries: 0,
  },
  getAd: {
    name: 'getAd',
    method: 'GET',
    path: '/v1/ads/{adId}',
    gated: true,
    maxUnsafeRetries: 0,
  },
  searchPages: {
    name: 'searchPages',
    method: 'POST',
    path: '/v1/pages/search',
    list: true,
    gated: true,
    maxUnsafeRetries: 0,
  },
  getPage: {
    name: 'getPage',
    method: 'GET',
    path: '/v1/pages/{pageId}',
    gated: true,
    maxUnsafeRetries: 0,
  },
};
