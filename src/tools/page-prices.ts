import type { OperationName } from '../api/operations.ts';
import type { PageListing } from './cursor.ts';
import type { ListAnswer } from './list-answer.ts';

/** The expected cost of a page of a list, in credits; undefined if it is not known yet. */
export type PriceOf = (list: OperationName, page: RequestedPage) => Promise<number | undefined>;

interface RequestedPage {
  limit: number | undefined;
  cursor: string | undefined;
}

/** What the rest of a page, if it is cut to fit, and the page after it are expected to cost. */
export interface PagePrices {
  rest: number | undefined;
  next: number | undefined;
}

/** A page that is cached is free. */
export async function pricesAfter(
  { list, position: { limit, serviceCursor } }: PageListing,
  { value: { cursor }, cacheId }: ListAnswer,
  priceOf: PriceOf,
): Promise<PagePrices> {
  const rest = cacheId === undefined ? await priceOf(list, { limit, cursor: serviceCursor }) : 0;
  return { rest, next: cursor === null ? undefined : await priceOf(list, { limit, cursor }) };
}
