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

/** One row of the document's endpoint table. `responseSchemas` describes its answer. */
export interface Operation {
  name: OperationName;
  method: 'GET' | 'POST';
  /** Path parameters in braces. */
  path: string;
  /** Gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often it may be repeated if it is unknown whether it was carried out. Never for a gated read, which may have
   * been charged. Once for adding an item, because adding it twice is harmless (*Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** Changes data of the service. */
  writes?: true;
  /** Returns a page of a list, with as many items as the call asks for. */
  list?: true;
  /** Items of such a page if the call asks for no number, where the document says it. */
  defaultLimit?: number;
}

export const operations: Readonly<Record<OperationName, Operation>> = {
  whoami: { name: 'whoami', method: 'GET', path: '/v1/whoami', gated: false, maxUnsafeRetries: 2 },
  getAccount: { name: 'getAccount', method: 'GET', path: '/v1/account', gated: false, maxUnsafeRetries: 2 },
  getCredits: { name: 'getCredits', method: 'GET', path: '/v1/credits', gated: false, maxUnsafeRetries: 2 },
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
    defaultLimit: 50,
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
  getAd: { name: 'getAd', method: 'GET', path: '/v1/ads/{adId}', gated: true, maxUnsafeRetries: 0 },
  searchPages: {
    name: 'searchPages',
    method: 'POST',
    path: '/v1/pages/search',
    list: true,
    gated: true,
    maxUnsafeRetries: 0,
  },
  getPage: { name: 'getPage', method: 'GET', path: '/v1/pages/{pageId}', gated: true, maxUnsafeRetries: 0 },
};
