import type { Price } from '../present/list-text.ts';
import { MARKER, rememberCursor, type SearchParams } from './cursor.ts';
import type { Paging } from './cut-page.ts';
import { fitPage, type ListPage } from './cut-page.ts';
import type { Rendered } from './define-tool.ts';
import { type ItemViews, itemsOf, type ListAnswer } from './item-views.ts';
import { type ListRequest, readCursor } from './read-cursor.ts';
import type { ToolContext } from './tool-context.ts';

type PageParams = SearchParams & { limit?: number; cursor?: string };

interface PageRequest<View> extends ListRequest {
  views: ItemViews<View>;
  /** Fetches a page of the service. */
  fetch(params: PageParams, size: { usualSize: boolean }): Promise<ListAnswer>;
}

/**
 * A page of a list, as data and as text that fits. Its cursor continues with the next item: on the same page of the
 * service, which is cached and not charged again, or on the next one.
 */
export async function paginate<View>(request: PageRequest<View>, context: ToolContext): Promise<ListPage & Rendered> {
  const { views } = request;
  const { cursors, viewMemo } = context;
  const listing = await readCursor(request, cursors);
  const { limit, serviceCursor } = listing.position;
  const params = {
    ...listing.searchParams,
    ...(limit !== undefined && { limit }),
    ...(serviceCursor !== undefined && { cursor: serviceCursor }),
  };
  // A cursor of this server names the size of its page, if one was asked for.
  const usualSize = limit === undefined && request.cursor?.startsWith(MARKER) === true;
  const answer = await request.fetch(params, { usualSize });
  const { cacheId } = answer;
  // The next page is asked for like this one. What is left of one that is kept is free.
  const price = await context.priceOf(request.list, limit ?? itemsOf(answer).length);
  const prices = { rest: cacheId === undefined ? price : free, next: answer.value.cursor === null ? undefined : price };
  const write = () => ({ ...fitPage({ answer, listing, views, prices }, context), price });
  // The same cached answer, shown from the same item in the same view at the same price, gives the same text.
  const name = () => `${views.name} ${JSON.stringify([listing, price])}`;
  const page = cacheId === undefined ? write() : viewMemo.page(cacheId, name(), write);
  const { cursor } = page.data;
  if (cursor !== null && page.next) await rememberCursor(cursor, page.next, cursors);
  return page;
}

const free: Price = { most: 0, isExact: true };

/** What the board needs of a page of a list, and of the one after it. It may ask for that when nothing is kept any more. */
export function listForBoard(data: object, { price }: Pick<Rendered, 'price'>): object {
  const { items, itemType, cursor, totalHits, nextPage } = data as Paging & {
    items: { id?: string }[];
    itemType?: string;
  };
  return {
    ...(itemType === 'pages' ? { isPages: true } : { ids: items.map(({ id }) => id) }),
    cursor,
    ...(totalHits !== undefined && { totalHits }),
    ...(cursor !== null && price && { nextCredits: price.most, nextIsMost: nextPage?.credits !== price.most }),
  };
}
