/**
 * The maximum page size according to the API document, in items. The API document states this limit only for
 * collections. The server assumes the same limit for searches.
 */
export const maxDocumentedPageSize = 100;
/** The maximum number of items in a response. The server refuses to request a larger page. */
export const maxResponseItems = 1000;

/** The page size of a collection if the caller sets none (API document, *Limits*, rule 1). */
export const defaultCollectionPageSize = 50;

/** An operation of the API, e.g. `searchAds`. The API document lists each operation in its endpoint table. */
export interface Operation extends OperationRules {
  name: OperationName;
  method: 'GET' | 'POST';
  path: string;
}

/** The rules of an API operation, e.g. whether it costs credits, and the maximum number of retries of a failed call. */
interface OperationRules {
  /**
   * True if the operation requires credits and a subscription, and counts toward the hourly and daily limits on credits
   * (API document, *Limits* 3 and 4).
   */
  requiresCredits: boolean;
  /**
   * The maximum number of retries of a call that the service may already have performed. The value is 0 for reads that
   * cost credits, because the service may have charged for them. The value is 1 for adding an item to a collection,
   * because adding the same item twice is harmless (API document, *Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** True if the operation changes data on the service, e.g. if it adds an item to a collection. */
  changesData?: true;
  /** True if the operation returns a page of a list, and the caller can set the page size. */
  isList?: true;
  /** The page size if the caller sets none. Undefined if the API document does not state the default. */
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
  listCollectionItems: [
    'GET',
    '/v1/collections/{collectionId}/items',
    { ...paidListRules, defaultLimit: defaultCollectionPageSize },
  ],
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

/** All operations of the API by name, with their HTTP methods, their paths and their rules. */
export const operations = Object.fromEntries(
  Object.entries(operationRows).map(([name, [method, path, rules]]) => [name, { name, method, path, ...rules }]),
) as unknown as Readonly<Record<OperationName, Operation>>;

/** Returns true if a tool may cost credits, because one of its API operations requires credits. */
export const canCostCredits = ({ operations: operationNames }: { operations: readonly OperationName[] }): boolean =>
  operationNames.some((name) => operations[name].requiresCredits);
