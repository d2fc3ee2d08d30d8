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

interface Terms {
  scope?: Scope;
  /** Credits per call, or per started group of `perItems` items in the answer (then an empty answer is free). */
  price?: { credits: number; perItems?: number };
  /** Which credit headers its 200 carries (document, *Endpoints*). */
  tells: { charged: boolean; remaining: boolean };
}

const nothing = { charged: false, remaining: false };
const charged = { charged: true, remaining: false };
const both = { charged: true, remaining: true };
const perItems = { credits: 1, perItems: 10 };
const perCall = { credits: 1 };

/** What the document leaves open, scopes and prices among it, so a real service may differ; README.md lists it. */
export const terms: Record<OperationName, Terms> = {
  whoami: { tells: nothing },
  getAccount: { tells: nothing, scope: 'account:read' },
  getCredits: { tells: both, scope: 'credits:read' },
  listCollections: { tells: charged, scope: 'collections:read' },
  listCollectionItems: { tells: both, scope: 'collections:read', price: perItems },
  addCollectionItem: { tells: charged, scope: 'collections:write' },
  searchAds: { tells: both, scope: 'ads:read', price: perItems },
  getAd: { tells: both, scope: 'ads:read', price: perCall },
  searchPages: { tells: both, scope: 'pages:read', price: perItems },
  getPage: { tells: both, scope: 'pages:read', price: perCall },
};

/** Defaults for the account of a new key. */
export const plan = { planId: 'library', credits: 10_000, hourlyLimit: 1_000, dailyLimit: 5_000 };

export const maxBodyBytes = 64 * 1024;
