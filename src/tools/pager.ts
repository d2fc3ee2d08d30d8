import * as z from 'zod';
import { formatPrice } from '../credits/credit-text.ts';
import type { PriceBounds } from '../credits/prices.ts';
import { type AdTextCache, type AdView, formatAdList, viewAd } from '../views/ad.ts';
import { formatDay } from '../views/dates.ts';
import { type Detail, dataTokensPerTextToken } from '../views/full-view.ts';
import { findAppUrlPattern, formatServiceNotes, type ListFrame, readServiceNotes } from '../views/lists.ts';
import { formatPageList, type PageView, viewPage } from '../views/page.ts';
import { countFittingItems } from '../views/tokens.ts';
import {
  type Cursors,
  isOwnCursor,
  type ListRequest,
  type PageListing,
  readCursor,
  rememberCursor,
  type SearchParams,
  writeCursor,
} from './cursors.ts';
import type { ToolContext, ToolOutput } from './tool.ts';

type PageParams = SearchParams & { limit?: number; cursor?: string };

interface PagerRequest<View, Heading> extends ListRequest {
  views: ItemViews<View>;
  /** Reads a page of the service. */
  fetch(params: PageParams, size: { hasDefaultSize: boolean }): Promise<ListAnswer<Heading>>;
}

/**
 * Reads a page of a list and returns it as data and as text that fits the token budget. The cursor continues with the next
 * item: on the same page of the service, which is cached and not charged again, or on the next page.
 */
export async function paginate<View, Heading = object>(
  request: PagerRequest<View, Heading>,
  context: ToolContext,
): Promise<ListPage<View, Heading> & ToolOutput> {
  const { views } = request;
  const { cursors } = context;
  const listing = await readCursor(request, cursors);
  const { limit, serviceCursor } = listing.position;
  const params = {
    ...listing.searchParams,
    ...(limit !== undefined && { limit }),
    ...(serviceCursor !== undefined && { cursor: serviceCursor }),
  };
  // A cursor of this server names the page size if one was requested.
  const hasDefaultSize = limit === undefined && isOwnCursor(request.cursor);
  const answer = await request.fetch(params, { hasDefaultSize });
  // The next page is requested in the size of this one.
  const price = await context.getPagePrice(request.list, limit ?? getSentItems(answer).length);
  const page = fitPage({ answer, listing, views, price }, context);
  const { cursor } = page.data;
  if (cursor !== null && page.next) await rememberCursor(cursor, page.next, cursors);
  return { price, ...page };
}

const freePrice: PriceBounds = { atLeast: 0, atMost: 0 };

/**
 * Returns the data of a page for the board, with the price of the next page. The board may request the next page when the
 * cached answer has expired, so the price assumes that nothing is cached.
 */
export function listForBoard(data: object, { price }: Pick<ToolOutput, 'price'>): object {
  const { items, itemType, cursor, totalHits, nextPage } = data as Paging & {
    items: { id?: string }[];
    itemType?: string;
  };
  return {
    ...(itemType === 'pages' ? { isPages: true } : { ids: items.map(({ id }) => id) }),
    cursor,
    ...(totalHits !== undefined && { totalHits }),
    ...(cursor !== null && price && { nextCredits: nextPage?.credits === 0 ? { ...price, atLeast: 0 } : price }),
  };
}

/** The price of the next page. The fields are named as in the estimates of `gather_ads`. */
const PriceView = z
  .looseObject({
    credits: z.number().nullable().describe('Credits of the next page. null if only the range is known.'),
    atLeast: z.number().optional().describe('Least credits. Missing if credits is known.'),
    atMost: z.number().optional().describe('Most credits. Missing if credits is known.'),
  })
  .meta({ title: 'Price' });

const viewPrice = (price: PriceBounds): z.infer<typeof PriceView> =>
  price.atLeast === price.atMost ? { credits: price.atMost } : { credits: null, ...price };

export const paging = {
  cursor: z.string().nullable().describe('Cursor of the next page. null at the end.'),
  hasMore: z.boolean().describe('true if there is a next page.'),
  totalHits: z.number().optional().describe('Number of all matching items.'),
  shown: z
    .looseObject({
      from: z.number().describe('Number of the first item, from 1.'),
      to: z.number().describe('Number of the last item.'),
      of: z.number().describe('Number of items that the service sent.'),
    })
    .meta({ title: 'Shown' })
    .optional()
    .describe('Which items are shown, if the page was cut to fit.'),
  nextPage: PriceView.optional().describe('Price of the next page. Missing if free or unknown.'),
  asOf: z.string().optional().describe('Day of this answer. Days ago are counted from this day.'),
  appUrlPattern: z.string().optional().describe('URL of an item in the app of the service. <id> stands for the id.'),
  notes: z.array(z.string()).optional().describe('Notes from the service.'),
};
type Paging = z.infer<z.ZodObject<typeof paging>>;

interface ListPage<View, Heading> {
  data: Paging & { items: View[] } & Heading;
  text: string;
  next: PageListing | undefined;
}

interface FitOptions<View, Heading> {
  answer: ListAnswer<Heading>;
  listing: PageListing;
  price: PriceBounds | undefined;
  views: ItemViews<View>;
}

/** Returns a page with the first items that fit into the token budget. The measured text is also the returned text. */
function fitPage<View, Heading>(
  { answer, listing, price, views }: FitOptions<View, Heading>,
  { cursors, resultTokens }: { cursors: Cursors; resultTokens: number },
): ListPage<View, Heading> {
  const { cursor, hasMore, totalHits } = answer.value;
  const { position } = listing;
  const sentItems = getSentItems(answer);
  const remainingItems = sentItems.slice(position.shown);
  const sharedFacts = views.findSharedFacts?.(sentItems);
  const notes = position.shown === 0 ? readServiceNotes(answer.raw) : {};

  const buildPage = (items: View[]): ListPage<View, Heading> => {
    const total = sentItems.length;
    const to = position.shown + items.length;
    const nextPagePosition = hasMore && cursor ? { serviceCursor: cursor, shown: 0 } : undefined;
    const nextPosition = to < total ? { shown: to } : nextPagePosition;
    const next = nextPosition && { ...listing, position: { ...position, ...nextPosition } };
    // The remaining items of a cached page are free.
    const nextPrice = next && (to < total && answer.isCached ? freePrice : price);
    const page = { cursor: next ? writeCursor(next, cursors) : null, hasMore: to < total || hasMore };
    const shownPart = items.length < total ? { firstNumber: position.shown + 1, sentCount: total } : undefined;
    const priceText = nextPrice && formatPrice(nextPrice);
    const list = views.formatList({ total: totalHits, price: priceText, items, ...page, ...shownPart, ...sharedFacts });
    return {
      next,
      text: [answer.heading?.text, ...formatServiceNotes(notes), list].filter(Boolean).join('\n'),
      data: {
        ...(answer.heading?.data as Heading),
        items,
        ...page,
        ...(totalHits !== undefined && { totalHits }),
        ...(nextPrice && { nextPage: viewPrice(nextPrice) }),
        ...(shownPart && { shown: { from: shownPart.firstNumber, to, of: total } }),
        ...sharedFacts,
        ...notes,
      },
    };
  };
  let lastPage: ListPage<View, Heading> | undefined;
  const buildPageOnce = (leading: readonly View[]) => {
    const page = lastPage?.data.items.length === leading.length ? lastPage : buildPage([...leading]);
    lastPage = page;
    return page;
  };

  const items: View[] = [];
  const { batchSize = remainingItems.length } = views;
  let fittingCount = 0;
  // Condenses a few items at a time, because only the first few objects of a full page fit.
  while (fittingCount === items.length && fittingCount < remainingItems.length) {
    const moreItems = remainingItems.slice(fittingCount, fittingCount + Math.max(batchSize, fittingCount));
    items.push(...moreItems.map((item) => views.viewItem(item)));
    const readableItems = items.slice(
      0,
      countFittingItems({ items, budget: resultTokens, render: (leading) => buildPageOnce(leading).text }),
    );
    const budget = dataTokensPerTextToken * resultTokens;
    fittingCount = countFittingItems({ items: readableItems, budget, render: (leading) => JSON.stringify(leading) });
  }
  return buildPageOnce(items.slice(0, fittingCount));
}

interface ListAnswer<Heading> {
  value: { cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  /** The body as it was received: items are shown with whatever fields they have. */
  raw: unknown;
  isCached?: true | undefined;
  heading?: { data: Heading; text: string | undefined };
}

const getSentItems = ({ raw }: { raw: unknown }): readonly object[] => (raw as { items: object[] }).items;

/** Facts that all items of a list share: the day of the answer, and the pattern of their links. */
interface SharedFacts {
  asOf?: string;
  appUrlPattern?: string;
}

export interface ItemViews<View> {
  /** Condenses an item as the service sent it, whatever its fields hold. */
  viewItem(item: object): View;
  findSharedFacts?(items: readonly object[]): SharedFacts;
  formatList(list: { items: readonly View[] } & ListFrame): string;
  /** How many items to condense before checking whether more fit. Only a few full items fit. */
  batchSize?: number;
}

type ViewOptions = Pick<ToolContext, 'now' | 'resultTokens'>;

export function createAdViews(detail: Detail, { now, resultTokens }: ViewOptions): ItemViews<AdView> {
  const asOf = formatDay(now);
  const dayOfAnswer: SharedFacts = asOf === undefined ? {} : { asOf };
  const textCache: AdTextCache = new Map();
  return {
    viewItem: (ad) => viewAd(ad, { detail, now, budget: getItemTokens(resultTokens) }),
    findSharedFacts: (ads) => (detail === 'full' ? dayOfAnswer : { ...dayOfAnswer, ...findLinkPattern(ads, 'id') }),
    formatList: (list) => formatAdList({ detail, budget: getItemTokens(resultTokens), textCache, ...list }),
    batchSize: detail === 'full' ? 4 : Math.ceil(resultTokens / smallAdTokens),
  };
}

/** The tokens of a brief ad with a short text. A page condenses no more ads than would fit at this size. */
const smallAdTokens = 120;

export function createPageViews(detail: Detail, { resultTokens }: ViewOptions): ItemViews<PageView> {
  return {
    viewItem: (page) => viewPage(page, { detail, budget: getItemTokens(resultTokens) }),
    findSharedFacts: (pages) => (detail === 'full' ? {} : findLinkPattern(pages, 'pageId')),
    formatList: (list) => formatPageList({ detail, budget: getItemTokens(resultTokens), ...list }),
    ...(detail === 'full' && { batchSize: 4 }),
  };
}

function findLinkPattern(items: readonly object[], idName: 'id' | 'pageId'): SharedFacts {
  const pattern = findAppUrlPattern(items, idName);
  return pattern === undefined ? {} : { appUrlPattern: pattern };
}

/** The tokens of a single item, which leave room for the frame around it. */
export const getItemTokens = (resultTokens: number): number => Math.floor(resultTokens * 0.9);
