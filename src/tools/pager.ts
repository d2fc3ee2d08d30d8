import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { maxResponseItems } from '../api/operations.ts';
import { formatPrice } from '../credits/credit-text.ts';
import { freePriceBounds, type PriceBounds } from '../credits/prices.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import { type AdTextCache, type AdView, buildAdView, formatAdList } from '../views/ad.ts';
import { formatDay } from '../views/dates.ts';
import { type DetailLevel, dataTokensPerTextToken } from '../views/full-view.ts';
import { findAppUrlPattern, formatServiceNotes, type ListFrame, readServiceNotes } from '../views/lists.ts';
import { buildPageView, formatPageList, type PageView } from '../views/page.ts';
import { countFittingItems } from '../views/tokens.ts';
import {
  buildCursor,
  type ListPosition,
  type ListRequest,
  type PositionedList,
  readCursor,
  type SearchParams,
  saveCursor,
} from './cursors.ts';
import type { ToolContext, ToolOutput } from './tool.ts';

type PageParams = SearchParams & { limit?: number; cursor?: string };

interface PagerRequest<View, Heading> extends ListRequest {
  views: ItemViews<View>;
  /** Returns one page of the list, either from the cache or from the service. */
  fetchPage(pageParams: PageParams, sizeOptions: { usesDefaultPageSize: boolean }): Promise<FetchedListPage<Heading>>;
}

/**
 * Returns one page of a list as data and as text that fits in the token budget. If some items do not fit, the cursor
 * points to the rest of this page, which is cached and costs nothing. Otherwise, the cursor points to the next page.
 */
export async function readFittingPage<View, Heading = object>(
  request: PagerRequest<View, Heading>,
  context: ToolContext,
): Promise<ListPage<View, Heading> & ToolOutput> {
  const { views } = request;
  const { cursors } = context;
  const listing = await readCursor(request, cursors);
  const { pageSize: requestedSize, serviceCursor } = listing.position;
  const limit = typeof requestedSize === 'number' ? requestedSize : undefined;
  const pageParams = {
    ...listing.searchParams,
    ...(limit !== undefined && { limit }),
    ...(serviceCursor !== undefined && { cursor: serviceCursor }),
  };
  if (Number(pageParams.limit) > maxResponseItems)
    throw createInvalidRequestError(`limit: this server reads at most ${maxResponseItems} items on one page.`);
  const response = await request.fetchPage(pageParams, { usesDefaultPageSize: requestedSize === 'default' });
  // The next page will probably have as many items as this page. Therefore, use this number to estimate the price. The
  // size of the next page is unknown if this page is empty.
  const pageSize = limit ?? (getReceivedItems(response).length || undefined);
  const nextPagePrice = await context.getPagePrice(request.operation, pageSize);
  const page = fitPage({ response, listing, views, nextPagePrice }, context);
  const { cursor } = page.data;
  if (cursor !== null && page.nextListing) await saveCursor(cursor, page.nextListing, cursors);
  return { nextPagePrice, ...page };
}

/**
 * Returns the data of a page for the board (the interactive view of ads), with the price of the next page. The price
 * ignores the cache, because a cached response may expire before the board requests the page.
 */
export function buildListBoardData(data: object, { nextPagePrice }: Pick<ToolOutput, 'nextPagePrice'>): object {
  const { items, itemType, cursor, totalHits, nextPage } = data as PagingFields & {
    items: { id?: string }[];
    itemType?: string;
  };
  return {
    ...(itemType === 'pages' ? { isPages: true } : { ids: items.map(({ id }) => id) }),
    cursor,
    ...(totalHits !== undefined && { totalHits }),
    ...(cursor !== null &&
      nextPagePrice && { nextCredits: nextPage?.credits === 0 ? { ...nextPagePrice, atLeast: 0 } : nextPagePrice }),
  };
}

/** The schema of the price of the next page. The fields have the same names as in the estimates of `gather_ads`. */
const getNextPagePriceSchema = createLazyGetter(() =>
  z
    .looseObject({
      credits: z.number().nullable().describe('Credits of the next page. null if only the range is known.'),
      atLeast: z.number().optional().describe('Least credits. Missing if credits is known.'),
      atMost: z.number().optional().describe('Most credits. Missing if credits is known.'),
    })
    .meta({ title: 'Price' }),
);

const buildPriceView = (price: PriceBounds): z.infer<ReturnType<typeof getNextPagePriceSchema>> =>
  price.atLeast === price.atMost ? { credits: price.atMost } : { credits: null, ...price };

/**
 * The schema of the day on which the service responded. Ages in a list of ads, such as "3 days ago", are relative to
 * that day.
 */
export const createResponseDaySchema = () =>
  z.string().describe('Day of this answer. Days ago are counted from this day.');

/** Creates the schemas of the fields that the results of all lists share, e.g. the cursor of the next page. */
export const createPagingFields = () => ({
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
  nextPage: getNextPagePriceSchema().optional().describe('Price of the next page. Missing if free or unknown.'),
  asOf: createResponseDaySchema().optional(),
  appUrlPattern: z.string().optional().describe('URL of an item in the app of the service. <id> stands for the id.'),
  notes: z.array(z.string()).optional().describe('Notes from the service.'),
});
type PagingFields = z.infer<z.ZodObject<ReturnType<typeof createPagingFields>>>;

interface ListPage<View, Heading> {
  data: PagingFields & { items: View[] } & Heading;
  text: string;
  nextListing: PositionedList | undefined;
}

interface FitPageOptions<View, Heading> {
  response: FetchedListPage<Heading>;
  listing: PositionedList;
  nextPagePrice: PriceBounds | undefined;
  views: ItemViews<View>;
}

/**
 * Returns as many of the first items of a page as fit in the token budget. Also returns their text, because the token
 * budget applies to the final text.
 */
function fitPage<View, Heading>(
  { response, listing, nextPagePrice, views }: FitPageOptions<View, Heading>,
  { cursors, maxTextTokens, maxTextBytes }: Pick<ToolContext, 'cursors' | 'maxTextTokens' | 'maxTextBytes'>,
): ListPage<View, Heading> & Pick<ToolOutput, 'isTextWithinLimits'> {
  const { cursor, hasMore, totalHits } = response.validatedBody;
  const receivedItems = getReceivedItems(response);
  // If the page now has fewer items than were already shown, show it from its beginning, because the caller paid for
  // it.
  const hasRemainingItems = listing.position.shownCount < receivedItems.length;
  const position = hasRemainingItems ? listing.position : { ...listing.position, shownCount: 0 };
  const remainingItems = receivedItems.slice(position.shownCount);
  const sharedFacts = views.findSharedFacts?.(receivedItems);
  const notes = position.shownCount === 0 ? readServiceNotes(response.rawBody) : {};

  const buildPage = (items: View[]): ListPage<View, Heading> => {
    const receivedCount = receivedItems.length;
    const lastItemNumber = position.shownCount + items.length;
    const nextPagePosition = hasMore && cursor ? { serviceCursor: cursor, shownCount: 0 } : undefined;
    const nextPosition: Partial<ListPosition> | undefined =
      lastItemNumber < receivedCount ? { shownCount: lastItemNumber } : nextPagePosition;
    const nextListing = nextPosition && { ...listing, position: { ...position, ...nextPosition } };
    // If the page is cached, its remaining items are free until the response expires.
    const remainingFreeMs = lastItemNumber < receivedCount ? response.remainingCacheMs : undefined;
    const nextPrice = nextListing && (remainingFreeMs === undefined ? nextPagePrice : freePriceBounds);
    const cursorFields = {
      cursor: nextListing ? buildCursor(nextListing, cursors) : null,
      hasMore: lastItemNumber < receivedCount || hasMore,
    };
    const shownRange =
      items.length < receivedCount ? { firstNumber: position.shownCount + 1, receivedCount } : undefined;
    const priceText = nextPrice && formatPrice(nextPrice);
    const listText = views.formatList({
      totalHits,
      priceText,
      remainingFreeMs,
      items,
      ...cursorFields,
      ...shownRange,
      ...sharedFacts,
    });
    return {
      nextListing,
      text: [response.heading?.text, ...formatServiceNotes(notes), listText].filter(Boolean).join('\n'),
      data: {
        ...(response.heading?.data as Heading),
        items,
        ...cursorFields,
        ...(totalHits !== undefined && { totalHits }),
        ...(nextPrice && { nextPage: buildPriceView(nextPrice) }),
        ...(shownRange && { shown: { from: shownRange.firstNumber, to: lastItemNumber, of: receivedCount } }),
        ...sharedFacts,
        ...notes,
      },
    };
  };
  let lastBuiltPage: ListPage<View, Heading> | undefined;
  const buildPageOnce = (firstItems: readonly View[]) => {
    const page = lastBuiltPage?.data.items.length === firstItems.length ? lastBuiltPage : buildPage([...firstItems]);
    lastBuiltPage = page;
    return page;
  };

  const items: View[] = [];
  const { batchSize = remainingItems.length } = views;
  let fittingCount = 0;
  let isTextWithinLimits = false;
  // Usually, only the first few items fit. Convert the items in batches, so that little work is wasted on items that do
  // not fit.
  while (fittingCount === items.length && fittingCount < remainingItems.length) {
    const nextItems = remainingItems.slice(fittingCount, fittingCount + Math.max(batchSize, fittingCount));
    items.push(...nextItems.map((item) => views.buildItemView(item)));
    const readableItems = items.slice(
      0,
      countFittingItems({
        items,
        maxTokens: maxTextTokens,
        maxBytes: maxTextBytes,
        renderItems: (firstItems) => buildPageOnce(firstItems).text,
      }),
    );
    fittingCount = countFittingItems({
      items: readableItems,
      maxTokens: dataTokensPerTextToken * maxTextTokens,
      maxBytes: dataTokensPerTextToken * maxTextBytes,
      renderItems: (firstItems) => JSON.stringify(firstItems),
    });
    // `countFittingItems` measures the text only if the page has several items. If items are removed because their data
    // does not fit, the text of the remaining items may not have been measured.
    isTextWithinLimits = fittingCount > 1 && fittingCount === readableItems.length;
  }
  return { ...buildPageOnce(items.slice(0, fittingCount)), isTextWithinLimits };
}

interface FetchedListPage<Heading> {
  validatedBody: { cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  /** The response body as received. It also contains items with unknown fields or fields of unexpected types. */
  rawBody: unknown;
  remainingCacheMs?: number | undefined;
  heading?: { data: Heading; text: string | undefined };
}

const getReceivedItems = ({ rawBody }: { rawBody: unknown }): readonly object[] =>
  (rawBody as { items: object[] }).items;

/**
 * The values that all items of a list share: the day of the response (`asOf`) and the URL pattern of links to the
 * items.
 */
interface SharedFacts {
  asOf?: string;
  appUrlPattern?: string;
}

/** The functions that convert the items of a list to views, and the views to text. */
export interface ItemViews<View> {
  /** Shortens an item for display. Accepts fields of unexpected types, because the service may send such fields. */
  buildItemView(item: object): View;
  findSharedFacts?(items: readonly object[]): SharedFacts;
  formatList(list: { items: readonly View[] } & ListFrame): string;
  /**
   * The number of items to shorten before checking whether more items fit. Set this number for views in which a full
   * page rarely fits.
   */
  batchSize?: number;
}

type ViewOptions = Pick<ToolContext, 'now' | 'maxTextTokens' | 'maxTextBytes'>;

/** Creates the functions that show a list of ads. */
export function createAdViews(detail: DetailLevel, { now, ...limits }: ViewOptions): ItemViews<AdView> {
  const maxItemTokens = getMaxItemTokens(limits);
  const asOf = formatDay(now);
  const responseDayFact: SharedFacts = asOf === undefined ? {} : { asOf };
  const textCache: AdTextCache = new Map();
  return {
    buildItemView: (ad) => buildAdView(ad, { detail, now, maxTokens: maxItemTokens }),
    findSharedFacts: (ads) =>
      detail === 'full' ? responseDayFact : { ...responseDayFact, ...findLinkPattern(ads, 'id') },
    formatList: (list) => formatAdList({ detail, maxTokensPerAd: maxItemTokens, textCache, ...list }),
    batchSize: detail === 'full' ? 4 : Math.ceil(limits.maxTextTokens / smallAdTokens),
  };
}

/**
 * The number of tokens of a small ad, i.e. of a brief view with a short text. The first batch contains as many ads as
 * would fit if all ads were this small.
 */
const smallAdTokens = 120;

/** Creates the functions that show a list of advertiser pages. */
export function createPageViews(detail: DetailLevel, limits: ViewOptions): ItemViews<PageView> {
  const maxItemTokens = getMaxItemTokens(limits);
  return {
    buildItemView: (page) => buildPageView(page, { detail, maxTokens: maxItemTokens }),
    findSharedFacts: (pages) => (detail === 'full' ? {} : findLinkPattern(pages, 'pageId')),
    formatList: (list) => formatPageList({ detail, maxTokensPerPage: maxItemTokens, ...list }),
    ...(detail === 'full' && { batchSize: 4 }),
  };
}

function findLinkPattern(items: readonly object[], idName: 'id' | 'pageId'): SharedFacts {
  const pattern = findAppUrlPattern(items, idName);
  return pattern === undefined ? {} : { appUrlPattern: pattern };
}

/**
 * Returns the maximum number of tokens for one item. This is 90% of the token budget of a result, because the text
 * around the item needs the rest.
 */
export const getMaxItemTokens = ({
  maxTextTokens,
  maxTextBytes,
}: Pick<ToolContext, 'maxTextTokens' | 'maxTextBytes'>) =>
  Math.floor(0.9 * Math.min(maxTextTokens, maxTextBytes / bytesPerToken));

/**
 * The assumed number of bytes per token. Long words in scripts with two bytes per letter, such as Cyrillic, have 7
 * bytes per token. English words have fewer bytes per token.
 */
const bytesPerToken = 7;
