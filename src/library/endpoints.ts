/**
 * The endpoint table of the API document: method and path, whether credits gate the operation (Limits, rules 3 and 4),
 * and which credit headers its 200 carries (Endpoints, response headers).
 */
export type Endpoint = {
  method: 'GET' | 'POST';
  /** In Hono's form, `:name` for a path parameter. */
  path: string;
  gated: boolean;
  headers: { charged: boolean; remaining: boolean };
};

const none = { charged: false, remaining: false };
const charged = { charged: true, remaining: false };
const both = { charged: true, remaining: true };

export const endpoints = {
  whoami: { method: 'GET', path: '/v1/whoami', gated: false, headers: none },
  getAccount: { method: 'GET', path: '/v1/account', gated: false, headers: none },
  getCredits: { method: 'GET', path: '/v1/credits', gated: false, headers: both },
  listCollections: { method: 'GET', path: '/v1/collections', gated: false, headers: charged },
  listCollectionItems: { method: 'GET', path: '/v1/collections/:collectionId/items', gated: true, headers: both },
  addCollectionItem: { method: 'POST', path: '/v1/collections/:collectionId/items', gated: false, headers: charged },
  searchAds: { method: 'POST', path: '/v1/ads/search', gated: true, headers: both },
  getAd: { method: 'GET', path: '/v1/ads/:adId', gated: true, headers: both },
  searchPages: { method: 'POST', path: '/v1/pages/search', gated: true, headers: both },
  getPage: { method: 'GET', path: '/v1/pages/:pageId', gated: true, headers: both },
} as const satisfies Record<string, Endpoint>;

export type OperationName = keyof typeof endpoints;
export const operationNames = Object.keys(endpoints) as OperationName[];
