import type { OperationName } from '../../api/call.ts';

/** Scope names of the API document (Authentication, rule 5), and `collections:write`, which is this library's choice. */
export const scopeNames = [
  'account:read',
  'credits:read',
  'collections:read',
  'collections:write',
  'ads:read',
  'pages:read',
] as const;
export type Scope = (typeof scopeNames)[number];

/** Credits per call, or per started group of `perItems` items in the answer (then an empty answer is free). */
export type Price = { credits: number; perItems?: number };

/** Everything the document leaves open, so a real service may differ; README.md lists it. */
export type LibraryConfig = {
  /** Base of `appUrl` on list items; absent: the address the request came in at. */
  appUrl: string | undefined;
  /** Base of the library's own media; absent: `/media` at the address the request came in at. */
  mediaUrl: string | undefined;
  prices: Partial<Record<OperationName, Price>>;
  scopes: Partial<Record<OperationName, Scope>>;
  searchLimit: { default: number; maximum: number };
  bodyBytes: number;
  /** Defaults for the account of a new key. */
  plan: { planId: string; credits: number; hourlyLimit: number; dailyLimit: number };
};

export const defaultConfig: LibraryConfig = {
  appUrl: undefined,
  mediaUrl: undefined,
  prices: {
    listCollectionItems: { credits: 1, perItems: 10 },
    searchAds: { credits: 1, perItems: 10 },
    getAd: { credits: 1 },
    searchPages: { credits: 1, perItems: 10 },
    getPage: { credits: 1 },
  },
  scopes: {
    getAccount: 'account:read',
    getCredits: 'credits:read',
    listCollections: 'collections:read',
    listCollectionItems: 'collections:read',
    addCollectionItem: 'collections:write',
    searchAds: 'ads:read',
    getAd: 'ads:read',
    searchPages: 'pages:read',
    getPage: 'pages:read',
  },
  searchLimit: { default: 20, maximum: 100 },
  bodyBytes: 64 * 1024,
  plan: { planId: 'library', credits: 10_000, hourlyLimit: 1_000, dailyLimit: 5_000 },
};
