import type { Api } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Allowance, Answer } from '../api/send.ts';
import type { GatheringQuestion } from './gatherings.ts';

/** Where a page of a list begins, and how many ads it may hold. */
export interface PageRequest {
  limit: number;
  cursor: string | null;
}

export interface AdPage {
  ids: string[];
  cursor: string | null;
  hasMore: boolean;
  /** What the service says there is. */
  found: number | undefined;
  /** Takes it out of the cache of answers. */
  uncache?: (() => Promise<void>) | undefined;
  /** Its ads, if it comes from that cache: the dataset may have lost them since. */
  replayed?: ReplayedAds | undefined;
}

export interface ReplayedAds {
  items: readonly unknown[];
  requestId: string | null;
  /** Milliseconds since they came. */
  age: number;
}

/** Ads that the service lists page by page. */
export interface AdList {
  operation: 'searchAds' | 'listCollectionItems';
  /** The largest page that the service gives, as far as is known. */
  maxLimit: number;
  read(page: PageRequest): Promise<AdPage>;
}

export interface AdListOptions {
  api: Api;
  allowance: Allowance;
  fresh: boolean;
  maxLimit: number;
}

export const adListOf = (question: GatheringQuestion, options: AdListOptions): AdList =>
  question.collectionId === undefined
    ? searched(question.filters ?? {}, options)
    : collected(question.collectionId, options);

function searched(filters: object, { api, allowance, fresh, maxLimit }: AdListOptions): AdList {
  return {
    operation: 'searchAds',
    maxLimit,
    async read({ limit, cursor }) {
      const body = { ...filters, limit, ...(cursor !== null && { cursor }) };
      const answer = await api.searchAds({ body, fresh, allowance });
      const { items, cursor: next, hasMore, totalHits } = answer.value;
      return { ids: idsOf(items), cursor: next, hasMore, found: wholeNumber(totalHits), ...copiesOf(answer) };
    },
  };
}

function collected(collectionId: string, { api, allowance, fresh }: AdListOptions): AdList {
  return {
    operation: 'listCollectionItems',
    maxLimit: 100,
    async read({ limit, cursor }) {
      const query = { itemType: 'ads', limit, ...(cursor !== null && { cursor }) };
      const answer = await api.listCollectionItems({ path: { collectionId }, query, fresh, allowance });
      // Loaded with the first call, like everything that reads answers.
      const { readAds } = await import('../api/read-items.ts');
      const { cursor: next, hasMore, collection } = answer.value;
      return {
        ids: idsOf(readAds(answer)),
        cursor: next,
        hasMore,
        found: wholeNumber(collection?.adCount),
        ...copiesOf(answer),
      };
    },
  };
}

function copiesOf({ uncache, raw, receipt: { age, requestId } }: Answer): Pick<AdPage, 'uncache' | 'replayed'> {
  const { items } = raw as { items: readonly unknown[] };
  return { uncache, ...(age !== undefined && { replayed: { items, requestId, age } }) };
}

/** An id is a UUID in the document. What is much longer is none, and would only take room. */
const maxIdLength = 200;

const idsOf = (items: readonly { id: string }[]): string[] =>
  items.map(({ id }) => id).filter((id) => id.length <= maxIdLength);

/** Pages that a service is asked for in turn when it refuses a larger one. */
const smallerLimits = [50, 20, 10];

/** The next page size to try after a failure; undefined if the failure is about something else. */
export function smallerLimit(error: unknown, limit: number): number | undefined {
  if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') return undefined;
  const { serviceMessage = '', details } = error.failure;
  const text = `${serviceMessage} ${JSON.stringify(details ?? '')}`.slice(0, 2000);
  return isAboutLimit(text) ? smallerLimits.find((smaller) => smaller < limit) : undefined;
}

/** Not where `limit` is only one of the keys that a service lists. */
const isAboutLimit = (text: string): boolean =>
  text.length < 100 ? /limit/i.test(text) : /limit[^.]{0,60}\d|\d[^.]{0,60}limit/i.test(text);

/** A number of things as a service states it; undefined for what cannot be one. */
export const wholeNumber = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
