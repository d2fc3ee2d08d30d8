/**
 * The maximum number of items on a page of results. The API document defines this limit only for collections. The
 * server uses it for searches too, because the document gives no limit for them.
 */
export const maxPageSize = 100;

/**
 * An operation of the API, i.e. one row of the endpoint table in the API document. `responseSchemas` defines its
 * response type.
 */
export interface Operation extends OperationRules {
  name: OperationName;
  method: 'GET' | 'POST';
  path: string;
}

/** The rules for an operation: whether it costs credits, and how often a failed call may be retried. */
interface OperationRules {
  /**
   * True if the operation requires credits and a subscription, and counts toward the hourly and daily usage limits (API
   * document, *Limits* 3 and 4).
   */
  requiresCredits: boolean;
  /**
   * How often a call is retried if the service may already have performed it. A read that costs credits is never
   * retried, because the service may have charged for it. Adding an item to a collection is retried once, because
   * adding the same item twice is harmless (API document, *Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** True if the operation changes data on the service, e.g. adds an item to a collection. */
  changesData?: true;
  /** True if the operation returns one page of a list, and the caller can set the page size. */
  isList?: true;
  /** The page size if the caller does not set one. Undefined if the API document does not define it. */
  defaultLimit?: number;
}

const freeRules = { requiresCredits: false, maxUnsafeRetries: 2 };
const paidRules = { requiresCredits: true, maxUnsafeRetries: 0 };
const paidListRules = { ...paidRules, isList: true } as const;

const operationRows = {
  whoami: ['GET', '/v1/whoami', freeRules],
  getAccount: ['GET', '/v1/account', freeRules],
  getCredits: ['GET', '/v1/credits', freeRules],
  listCollections: ['GET', '/v1/collections', freeRules],
  listCollectionItems: ['GET', '/v1/collections/{collectionId}/items', { ...paidListRules, defaultLimit: 50 }],
  addCollectionItem: [
    'POST',
    '/v1/collections/{collectionId}/items',
    { ...freeRules, maxUnsafeRetries: 1, changesData: true },
  ],
  searchAds: ['POST', '/v1/ads/search', paidListRules],
  getAd: ['GET', '/v1/ads/{adId}', paidRules],
  searchPages: ['POST', '/v1/pages/search', paidListRules],
  getPage: ['GET', '/v1/pages/{pageId}', paidRules],
} satisfies Record<string, [method: 'GET' | 'POST', path: string, rules: OperationRules]>;

/** The name of an operation of the API, e.g. `searchAds` or `getCredits`. */
export type OperationName = keyof typeof operationRows;

/** All operations of the API, by name. Each one has its HTTP method, its path and its rules for cost and retries. */
export const operations = Object.fromEntries(
  Object.entries(operationRows).map(([name, [method, path, rules]]) => [name, { name, method, path, ...rules }]),
) as unknown as Readonly<Record<OperationName, Operation>>;

/** Returns true if calls of a tool may cost credits, because one of the tool's API operations requires credits. */
export const canCostCredits = ({ operations: names }: { operations: readonly OperationName[] }): boolean =>
  names.some((name) => operations[name].requiresCredits);
