import type { Allowance, Answer, Call } from '../api/call.ts';
import type { Api, ApiAnswer } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { GatheringQuestion } from './gatherings.ts';

/** Where a page of a list begins, and how many ads it may hold. */
export interface PageRequest {
  limit: number;
  cursor: string | null;
  /** Called with the page as soon as the service has sent it, even if nobody waits for it any more. */
  onPage(page: AdPage): Promise<void>;
  /** Called with each request that may be paid for; it settles when that has ended. */
  onRequest(request: Promise<unknown>): void;
}

export interface AdPage {
  ids: string[];
  cursor: string | null;
  hasMore: boolean;
  /** What the service says there is. */
  found: number | undefined;
  /** The place of its answer among all. */
  order: number | undefined;
  /** Credits that it cost; null where the service did not say so. */
  charged: number | null;
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
  order: number | undefined;
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
  const pageOf = async (answer: ApiAnswer<'searchAds'>): Promise<AdPage> => {
    const { items, cursor, hasMore } = answer.value;
    return { ids: idsOf(items), cursor, hasMore, found: totalOf(answer), ...copiesOf(answer) };
  };
  return {
    operation: 'searchAds',
    maxLimit,
    async read({ limit, cursor, ...page }) {
      const body = { ...filters, limit, ...(cursor !== null && { cursor }) };
      return pageOf(await api.searchAds({ body, fresh, allowance, around: handedTo(page, pageOf) }));
    },
  };
}

function collected(collectionId: string, { api, allowance, fresh }: AdListOptions): AdList {
  const pageOf = async (answer: ApiAnswer<'listCollectionItems'>): Promise<AdPage> => {
    // Loaded with the first call, like everything that reads answers.
    const { readAds } = await import('../api/client.ts');
    const { cursor, hasMore, collection } = answer.value;
    return {
      ids: idsOf(readAds(answer)),
      cursor,
      hasMore,
      found: wholeNumber(collection?.adCount),
      ...copiesOf(answer),
    };
  };
  return {
    operation: 'listCollectionItems',
    maxLimit: 100,
    async read({ limit, cursor, ...page }) {
      const query = { itemType: 'ads', limit, ...(cursor !== null && { cursor }) };
      const path = { collectionId };
      return pageOf(await api.listCollectionItems({ path, query, fresh, allowance, around: handedTo(page, pageOf) }));
    },
  };
}

/** What goes wrong with the page is for whoever waits for it. */
function handedTo<Received extends Answer>(
  { onPage, onRequest }: Pick<PageRequest, 'onPage' | 'onRequest'>,
  pageOf: (answer: Received) => Promise<AdPage>,
): Call['around'] {
  return (send) => {
    const request = send().then(async (answer) => {
      await pageOf(answer as Received)
        .then(onPage)
        .catch(() => {});
      return answer;
    });
    onRequest(request);
    return request;
  };
}

function copiesOf({
  uncache,
  raw,
  order,
  receipt: { age, requestId, charged },
}: Answer): Pick<AdPage, 'order' | 'charged' | 'uncache' | 'replayed'> {
  const { items } = raw as { items: readonly unknown[] };
  return { order, charged, uncache, ...(age !== undefined && { replayed: { items, requestId, age, order } }) };
}

/** An id is a UUID in the document. What is much longer is none, and would only take room. */
const maxIdLength = 200;

const idsOf = (items: readonly { id: string }[]): string[] =>
  items.map(({ id }) => id).filter((id) => id.length <= maxIdLength);

/** Pages that a service is asked for in turn when it refuses a larger one. */
const smallerLimits = [50, 20, 10];

/** The next page size to try where the service refuses one. */
export const smallerLimit = (limit: number): number | undefined => smallerLimits.find((smaller) => smaller < limit);

/** Whether a failure is about the page size. */
export function refusesLimit(error: unknown): boolean {
  if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') return false;
  const { serviceMessage = '', details } = error.failure;
  return isAboutLimit(`${serviceMessage} ${JSON.stringify(details ?? '')}`.slice(0, 2000));
}

/** Not where `limit` is only one of the keys that a service lists. */
const isAboutLimit = (text: string): boolean =>
  text.length < 100 ? /limit/i.test(text) : /limit[^.]{0,60}\d|\d[^.]{0,60}limit/i.test(text);

/** A number of things as a service states it; undefined for what cannot be one. */
export const wholeNumber = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** How many ads match, as the service says with some of them; undefined if it says fewer than came. */
export function totalOf({ value: { items, totalHits } }: Pick<ApiAnswer<'searchAds'>, 'value'>): number | undefined {
  const total = wholeNumber(totalHits);
  return total !== undefined && total >= items.length ? total : undefined;
}
