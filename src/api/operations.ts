/**
 * Maximum number of items on a page of results. The API document defines this limit only for collections. The server
 * uses it for searches too, because the document gives no limit for them.
 */
export const maxPageSize = 100;

/**
 * An operation of the API, i.e. one row of the endpoint table in the API document. `responseSchemas` defines its
 * response type.
 */
export interface Operation extends Rules {
  name: OperationName;
  method: 'GET' | 'POST';
  path: string;
}

/** What an operation costs, and how often a failed call may be retried. */
interface Rules {
  /**
   * True if the operation requires credits and a subscription, and counts toward the hourly and daily usage limits (API
   * document, *Limits* 3 and 4).
   */
  gated: boolean;
  /**
   * Number of retries if the service may already have performed the call. A read that costs credits is never retried,
   * because the service may have charged for it. Adding an item to a collection is retried once, because adding the
   * same item twice is harmless (API document, *Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** True if the operation changes data on the service. */
  writes?: true;
  /** True if the operation returns one page of a list, and the caller can set the page size. */
  list?: true;
  /** The page size if the caller does not set one. Undefined if the API document does not define it. */
  defaultLimit?: number;
}

const freeRules = { gated: false, maxUnsafeRetries: 2 };
const gated = { gated: true, maxUnsafeRetries: 0 };
const gatedList = { ...gated, list: true } as const;

const rows = {
  whoami: ['GET', '/v1/whoami', freeRules],
  getAccount: ['GET', '/v1/account', freeRules],
  getCredits: ['GET', '/v1/credits', freeRules],
  listCollections: ['GET', '/v1/collections', freeRules],
  listCollectionItems: ['GET', '/v1/collections/{collectionId}/items', { ...gatedList, defaultLimit: 50 }],
  addCollectionItem: [
    'POST',
    '/v1/collections/{collectionId}/items',
    { ...freeRules, maxUnsafeRetries: 1, writes: true },
  ],
  searchAds: ['POST', '/v1/ads/search', gatedList],
  getAd: ['GET', '/v1/ads/{adId}', gated],
  searchPages: ['POST', '/v1/pages/search', gatedList],
  getPage: ['GET', '/v1/pages/{pageId}', gated],
} satisfies Record<string, [method: 'GET' | 'POST', path: string, rules: Rules]>;

/** The name of an operation, e.g. `searchAds`. */
export type OperationName = keyof typeof rows;

/** All operations of the API, by name. */
export const operations = Object.fromEntries(
  Object.entries(rows).map(([name, [method, path, rules]]) => [name, { name, method, path, ...rules }]),
) as unknown as Readonly<Record<OperationName, Operation>>;

/** Returns true if a tool that calls these operations may cost credits. */
export const isGated = ({ operations: names }: { operations: readonly OperationName[] }): boolean =>
  names.some((name) => operations[name].gated);
