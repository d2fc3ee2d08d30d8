import type * as z from 'zod';
import {
  AccountAnswer,
  AdAnswer,
  AddCollectionItemAnswer,
  AdListAnswer,
  CollectionItemsAnswer,
  CollectionListAnswer,
  CreditStatusAnswer,
  IdentityAnswer,
  PageAnswer,
  PageListAnswer,
} from './response-schemas.ts';

/** One row of the document's endpoint table. */
export interface Operation<Answer extends z.ZodType = z.ZodType> {
  name: string;
  method: 'GET' | 'POST';
  /** Path parameters in braces. */
  path: string;
  answer: Answer;
  /** Gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often it may be sent again when nobody knows whether it was carried out. A gated read may have been charged,
   * so never; adding an item twice leaves it there once (*Endpoints*, rule 1), so once.
   */
  maxUnsafeRetries: number;
  /** Changes something at the service. */
  writes?: true;
}

const define = <Answer extends z.ZodType>(operation: Operation<Answer>) => operation;

export const operations = {
  whoami: define({
    name: 'whoami',
    method: 'GET',
    path: '/v1/whoami',
    answer: IdentityAnswer,
    gated: false,
    maxUnsafeRetries: 2,
  }),
  getAccount: define({
    name: 'getAccount',
    method: 'GET',
    path: '/v1/account',
    answer: AccountAnswer,
    gated: false,
    maxUnsafeRetries: 2,
  }),
  getCredits: define({
    name: 'getCredits',
    method: 'GET',
    path: '/v1/credits',
    answer: CreditStatusAnswer,
    gated: false,
    maxUnsafeRetries: 2,
  }),
  listCollections: define({
    name: 'listCollections',
    method: 'GET',
    path: '/v1/collections',
    answer: CollectionListAnswer,
    gated: false,
    maxUnsafeRetries: 2,
  }),
  listCollectionItems: define({
    name: 'listCollectionItems',
    method: 'GET',
    path: '/v1/collections/{collectionId}/items',
    answer: CollectionItemsAnswer,
    gated: true,
    maxUnsafeRetries: 0,
  }),
  addCollectionItem: define({
    name: 'addCollectionItem',
    method: 'POST',
    path: '/v1/collections/{collectionId}/items',
    answer: AddCollectionItemAnswer,
    gated: false,
    maxUnsafeRetries: 1,
    writes: true,
  }),
  searchAds: define({
    name: 'searchAds',
    method: 'POST',
    path: '/v1/ads/search',
    answer: AdListAnswer,
    gated: true,
    maxUnsafeRetries: 0,
  }),
  getAd: define({
    name: 'getAd',
    method: 'GET',
    path: '/v1/ads/{adId}',
    answer: AdAnswer,
    gated: true,
    maxUnsafeRetries: 0,
  }),
  searchPages: define({
    name: 'searchPages',
    method: 'POST',
    path: '/v1/pages/search',
    answer: PageListAnswer,
    gated: true,
    maxUnsafeRetries: 0,
  }),
  getPage: define({
    name: 'getPage',
    method: 'GET',
    path: '/v1/pages/{pageId}',
    answer: PageAnswer,
    gated: true,
    maxUnsafeRetries: 0,
  }),
} as const;

export type OperationName = keyof typeof operations;
export type AnswerOf<Name extends OperationName> = z.output<(typeof operations)[Name]['answer']>;
