/** One row of the document's endpoint table. `responseSchemas` describes its answer. */
export interface Operation extends Rules {
  name: OperationName;
  method: 'GET' | 'POST';
  path: string;
}

interface Rules {
  /** Gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often it may be repeated if it is unknown whether it was carried out. Never for a gated read, which may have
   * been charged. Once for adding an item, because adding it twice is harmless (*Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  writes?: true;
  /** Returns a page of a list, with as many items as the call asks for. */
  list?: true;
  /** Items of such a page if the call asks for no number, where the document says it. */
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

export type OperationName = keyof typeof rows;

export const operations = Object.fromEntries(
  Object.entries(rows).map(([name, [method, path, rules]]) => [name, { name, method, path, ...rules }]),
) as unknown as Readonly<Record<OperationName, Operation>>;

/** Whether what makes these calls may be charged. */
export const isGated = ({ operations: made }: { operations: readonly OperationName[] }): boolean =>
  made.some((name) => operations[name].gated);
