/**
 * The largest page of a list, in items. The document states it for items of a collection. For searches, the document
 * states no limit, so the server requests no larger pages.
 */
export const maxPageSize = 100;

/** An operation of the API: one row of the document's endpoint table. `responseSchemas` describes its answer. */
export interface Operation extends Rules {
  name: OperationName;
  method: 'GET' | 'POST';
  path: string;
}

/** What an operation costs, and when a failed call may be repeated. */
interface Rules {
  /** The operation is gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often a call may be repeated if the service may already have carried it out. A gated read is never repeated,
   * because the service may have charged for it. Adding an item is repeated once, because adding it twice is harmless
   * (document, *Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** The operation changes data of the service. */
  writes?: true;
  /** The operation returns one page of a list. The call can set the number of items. */
  list?: true;
  /** The number of items on a page without a limit, if the document states it. */
  defaultLimit?: number;
}

const free = { gated: false, maxUnsafeRetries: 2 };
const gated = { gated: true, maxUnsafeRetries: 0 };
const gatedList = { ...gated, list: true } as const;

const rows = {
  whoami: ['GET', '/v1/whoami', free],
  getAccount: ['GET', '/v1/account', free],
  getCredits: ['GET', '/v1/credits', free],
  listCollections: ['GET', '/v1/collections', free],
  listCollectionItems: ['GET', '/v1/collections/{collectionId}/items', { ...gatedList, defaultLimit: 50 }],
  addCollectionItem: ['POST', '/v1/collections/{collectionId}/items', { ...free, maxUnsafeRetries: 1, writes: true }],
  searchAds: ['POST', '/v1/ads/search', gatedList],
  getAd: ['GET', '/v1/ads/{adId}', gated],
  searchPages: ['POST', '/v1/pages/search', gatedList],
  getPage: ['GET', '/v1/pages/{pageId}', gated],
} satisfies Record<string, [method: 'GET' | 'POST', path: string, rules: Rules]>;

/** The name of an operation, such as `searchAds`. */
export type OperationName = keyof typeof rows;

/** All operations of the API by their names. */
export const operations = Object.fromEntries(
  Object.entries(rows).map(([name, [method, path, rules]]) => [name, { name, method, path, ...rules }]),
) as unknown as Readonly<Record<OperationName, Operation>>;

/** Returns whether the service may charge for a tool that calls these operations. */
export const isGated = ({ operations: names }: { operations: readonly OperationName[] }): boolean =>
  names.some((name) => operations[name].gated);
