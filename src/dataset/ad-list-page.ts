import type { ApiResponse } from '../api/client.ts';
import { parseCount, readTotalHits } from '../api/counts.ts';
import { maxIdLength } from '../api/url.ts';
import type { AdQuery } from './gatherings.ts';

/** The response of the service to a request for one page of a search or of a collection. */
export type AdListResponse = ApiResponse<'searchAds'> | ApiResponse<'listCollectionItems'>;

/**
 * The position and size of a page of results: the `cursor` at which the page starts, or null for the first page, and
 * the maximum number of ads on the page (`limit`).
 */
export interface RequestedPage {
  limit: number;
  cursor: string | null;
}

/** Returns the name of the API operation that lists the ads of a search or of a collection. */
export const getListOperationName = ({ collectionId }: AdQuery) =>
  collectionId === undefined ? 'searchAds' : 'listCollectionItems';

/** Builds the path, query and body of the API request for one page of a search or of a collection. */
export function buildPageRequest({ collectionId, filters }: AdQuery, { limit, cursor }: RequestedPage) {
  const pageArguments = { limit, ...(cursor !== null && { cursor }) };
  if (collectionId === undefined) return { path: {}, query: {}, body: { ...filters, ...pageArguments } };
  return { path: { collectionId }, query: { itemType: 'ads', ...pageArguments } };
}

/**
 * Returns the ids of the ads on a page, and the total number of ads in the search or collection if the service states
 * it. Omits ids that are too long to be stored.
 */
export async function readAdIdsAndMatchingCount({ collectionId }: AdQuery, response: AdListResponse) {
  // Import the API client on first use, so that the process starts faster.
  const { parseAds } = await import('../api/client.ts');
  const collectionResponse = response as ApiResponse<'listCollectionItems'>;
  const ids = parseAds(collectionResponse).map(({ id }) => id);
  return {
    ids: ids.filter(({ length }) => length <= maxIdLength),
    matchingCount:
      collectionId === undefined
        ? readTotalHits(response as ApiResponse<'searchAds'>)
        : parseCount(collectionResponse.validatedBody.collection?.adCount),
  };
}

/**
 * Returns the time at which the service sent a response, in milliseconds since the Unix epoch. Subtracts the age of a
 * cached response from `now`; a response without an age counts as sent at `now`.
 */
export const getResponseTime = ({ receipt }: Pick<AdListResponse, 'receipt'>, now: number): number =>
  now - (receipt.ageMs ?? 0);
