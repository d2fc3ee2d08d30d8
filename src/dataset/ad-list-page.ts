import type { ApiResponse } from '../api/client.ts';
import { parseCount, readTotalHits } from '../api/counts.ts';
import { maxIdLength } from '../api/url.ts';
import type { GatheringQuestion } from './gatherings.ts';

/** The response of the service to a request for one page of a search or collection. */
export type AdListResponse = ApiResponse<'searchAds'> | ApiResponse<'listCollectionItems'>;

/** Where a page of results starts (`cursor`), and the maximum number of ads on it (`limit`). */
export interface PagePosition {
  limit: number;
  cursor: string | null;
}

/** Returns the API operation that lists the ads: `searchAds`, or `listCollectionItems` for a collection. */
export const getListOperation = ({ collectionId }: GatheringQuestion) =>
  collectionId === undefined ? 'searchAds' : 'listCollectionItems';

/** Builds the API request for one page of a search or collection. */
export function buildPageRequest({ collectionId, filters }: GatheringQuestion, { limit, cursor }: PagePosition) {
  const position = { limit, ...(cursor !== null && { cursor }) };
  if (collectionId === undefined) return { path: {}, query: {}, body: { ...filters, ...position } };
  return { path: { collectionId }, query: { itemType: 'ads', ...position } };
}

/**
 * Returns the ids of the ads on a page, and the total number of matching ads if the service states it. Omits ids that
 * are too long to be stored.
 */
export async function readAdIdsAndTotal({ collectionId }: GatheringQuestion, response: AdListResponse) {
  // Import the API client on first use, so that the process starts faster.
  const { parseAds } = await import('../api/client.ts');
  const collectionResponse = response as ApiResponse<'listCollectionItems'>;
  const ids = parseAds(collectionResponse).map(({ id }) => id);
  return {
    ids: ids.filter(({ length }) => length <= maxIdLength),
    totalAds:
      collectionId === undefined
        ? readTotalHits(response as ApiResponse<'searchAds'>)
        : parseCount(collectionResponse.value.collection?.adCount),
  };
}

/**
 * Returns the time at which the service sent a response, in milliseconds since the Unix epoch. A cached response has an
 * `age`.
 */
export const getResponseTime = ({ receipt }: Pick<AdListResponse, 'receipt'>, now: number): number =>
  now - (receipt.age ?? 0);
