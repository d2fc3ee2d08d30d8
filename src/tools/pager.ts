import { createHmac } from 'node:crypto';
import * as z from 'zod';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { canonical } from '../api/json.ts';
import type { OperationName } from '../api/operations.ts';
import { priceText } from '../credits/credit-text.ts';
import type { PriceBounds } from '../credits/prices.ts';
import { type AdTextCache, type AdView, formatAdList, viewAd } from '../views/ad.ts';
import { formatDay } from '../views/dates.ts';
import { type Detail, dataTokensPerTextToken } from '../views/full-view.ts';
import { findAppUrlPattern, formatServiceNotes, type ListFrame, readServiceNotes } from '../views/lists.ts';
import { formatPageList, type PageView, viewPage } from '../views/page.ts';
import { countFittingItems } from '../views/tokens.ts';
import type { Cursors, Rendered, ToolContext } from './tool.ts';

type PageParams = SearchParams & { limit?: number; cursor?: string };

interface PagerRequest<View, Heading> extends ListRequest {
  views: ItemViews<View>;
  fetch(params: PageParams, size: { usualSize: boolean }): Promise<ListAnswer<Heading>>;
}

/**
 * A page of a list, as data and as text that fits. Its cursor continues with the next item: on the same page of the
 * service, which is cached and not charged again, or on the next one.
 */
export async function paginate<View, Heading = object>(
  request: PagerRequest<View, Heading>,
  context: ToolContext,
): Promise<ListPage<View, Heading> & Rendered> {
  const { views } = request;
  const { cursors } = context;
  const listing = await readCursor(request, cursors);
  const { limit, serviceCursor } = listing.position;
  const params = {
    ...listing.searchParams,
    ...(limit !== undefined && { limit }),
    ...(serviceCursor !== undefined && { cursor: serviceCursor }),
  };
  // A cursor of this server names the size of its page, if one was asked for.
  const usualSize = limit === undefined && request.cursor?.startsWith(marker) === true;
  const answer = await request.fetch(params, { usualSize });
  // The next page is asked for like this one.
  const price = await context.priceOf(request.list, limit ?? sentItems(answer).length);
  const page = fitPage({ answer, listing, views, price }, context);
  const { cursor } = page.data;
  if (cursor !== null && page.next) await rememberCursor(cursor, page.next, cursors);
  return { price, ...page };
}

const free: PriceBounds = { atLeast: 0, atMost: 0 };

/**
 * What the board needs of a page of a list, and of the next page. The board may ask for the next page when nothing is
 * cached any more.
 */
export function listForBoard(data: object, { price }: Pick<Rendered, 'price'>): object {
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

/** A price in the form of gather_ads' estimates. */
const PriceView = z.looseObject({
  credits: z.number().nullable().describe('Expected credits; null if unknown.'),
  atLeast: z.number().optional(),
  atMost: z.number().optional(),
});

const priceData = (price: PriceBounds): z.infer<typeof PriceView> =>
  price.atLeast === price.atMost ? { credits: price.atMost } : { credits: null, ...price };

export const paging = {
  cursor: z.string().nullable().describe('Cursor of the next page; null at the end.'),
  hasMore: z.boolean(),
  totalHits: z.number().optional().describe('Number of all matching items.'),
  shown: z
    .looseObject({ from: z.number(), to: z.number(), of: z.number() })
    .optional()
    .describe('Which items are shown, if the page was cut to fit.'),
  nextPage: PriceView.optional().describe('Price of the next page. Missing if free or unknown.'),
  asOf: z.string().optional().describe('Day of this answer.'),
  appUrlPattern: z.string().optional().describe('Link into the app of the service, with <id> in place of the id.'),
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

/** Shows as many items as fit. The text that was measured is the one that is shown. */
function fitPage<View, Heading>(
  { answer, listing, price, views }: FitOptions<View, Heading>,
  { cursors, resultTokens }: { cursors: Cursors; resultTokens: number },
): ListPage<View, Heading> {
  const { cursor, hasMore, totalHits } = answer.value;
  const { position } = listing;
  const sent = sentItems(answer);
  const rest = sent.slice(position.shown);
  const shared = views.shared?.(sent);
  const notes = position.shown === 0 ? readServiceNotes(answer.raw) : {};

  const pageOf = (items: View[]): ListPage<View, Heading> => {
    const total = sent.length;
    const to = position.shown + items.length;
    const after = hasMore && cursor ? { serviceCursor: cursor, shown: 0 } : undefined;
    const nextPosition = to < total ? { shown: to } : after;
    const next = nextPosition && { ...listing, position: { ...position, ...nextPosition } };
    // The rest of a cached page is free.
    const nextPrice = next && (to < total && answer.isCached ? free : price);
    const page = { cursor: next ? writeCursor(next, cursors) : null, hasMore: to < total || hasMore };
    const part = items.length < total ? { firstNumber: position.shown + 1, sentCount: total } : undefined;
    const costs = nextPrice && priceText(nextPrice);
    const list = views.text({ total: totalHits, price: costs, items, ...page, ...part, ...shared });
    return {
      next,
      text: [answer.heading?.text, ...formatServiceNotes(notes), list].filter(Boolean).join('\n'),
      data: {
        ...(answer.heading?.data as Heading),
        items,
        ...page,
        ...(totalHits !== undefined && { totalHits }),
        ...(nextPrice && { nextPage: priceData(nextPrice) }),
        ...(part && { shown: { from: part.firstNumber, to, of: total } }),
        ...shared,
        ...notes,
      },
    };
  };
  let last: ListPage<View, Heading> | undefined;
  const write = (leading: readonly View[]) => {
    const page = last?.data.items.length === leading.length ? last : pageOf([...leading]);
    last = page;
    return page;
  };

  const items: View[] = [];
  const { atATime = rest.length } = views;
  let fitting = 0;
  // A few at a time: of a page of full objects, only the first ones fit.
  while (fitting === items.length && fitting < rest.length) {
    const more = rest.slice(fitting, fitting + Math.max(atATime, fitting));
    items.push(...more.map((item) => views.view(item)));
    const readable = items.slice(
      0,
      countFittingItems({ items, budget: resultTokens, render: (leading) => write(leading).text }),
    );
    const budget = dataTokensPerTextToken * resultTokens;
    fitting = countFittingItems({ items: readable, budget, render: (leading) => JSON.stringify(leading) });
  }
  return write(items.slice(0, fitting));
}

interface ListAnswer<Heading> {
  value: { cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  /** The body as it was received: items are shown with whatever fields they have. */
  raw: unknown;
  isCached?: true | undefined;
  heading?: { data: Heading; text: string | undefined };
}

const sentItems = ({ raw }: { raw: unknown }): readonly object[] => (raw as { items: object[] }).items;

/** What all items of a list share: the day of the answer, and the form of their links. */
interface SharedFacts {
  asOf?: string;
  appUrlPattern?: string;
}

export interface ItemViews<View> {
  /** Condenses an item as the service sent it, whatever its fields hold. */
  view(item: object): View;
  shared?(items: readonly object[]): SharedFacts;
  text(list: { items: readonly View[] } & ListFrame): string;
  /** How many items to condense before checking whether more fit. Few full ones do. */
  atATime?: number;
}

type ViewOptions = Pick<ToolContext, 'now' | 'resultTokens'>;

export function adViews(detail: Detail, { now, resultTokens }: ViewOptions): ItemViews<AdView> {
  const asOf = formatDay(now);
  const today: SharedFacts = asOf === undefined ? {} : { asOf };
  const written: AdTextCache = new Map();
  return {
    view: (ad) => viewAd(ad, { detail, now, budget: itemTokens(resultTokens) }),
    shared: (ads) => (detail === 'full' ? today : { ...today, ...linkForm(ads, 'id') }),
    text: (list) => formatAdList({ detail, budget: itemTokens(resultTokens), textCache: written, ...list }),
    atATime: detail === 'full' ? 4 : Math.ceil(resultTokens / fewTokens),
  };
}

/** The tokens of a brief ad with little copy. A page condenses no more ads than fit at this size. */
const fewTokens = 120;

export function pageViews(detail: Detail, { resultTokens }: ViewOptions): ItemViews<PageView> {
  return {
    view: (page) => viewPage(page, { detail, budget: itemTokens(resultTokens) }),
    shared: (pages) => (detail === 'full' ? {} : linkForm(pages, 'pageId')),
    text: (list) => formatPageList({ detail, budget: itemTokens(resultTokens), ...list }),
    ...(detail === 'full' && { atATime: 4 }),
  };
}

function linkForm(items: readonly object[], idName: 'id' | 'pageId'): SharedFacts {
  const pattern = findAppUrlPattern(items, idName);
  return pattern === undefined ? {} : { appUrlPattern: pattern };
}

/** The tokens of a single item, which leave room for the frame around it. */
export const itemTokens = (resultTokens: number): number => Math.floor(resultTokens * 0.9);

interface PagePosition {
  serviceCursor: string | undefined;
  /** The requested page size: with another one, this would be another page. */
  limit: number | undefined;
  shown: number;
}

/** What a list is asked for, without the position: filters, or a collection and an item type. */
type SearchParams = Readonly<Record<string, unknown>>;

interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

interface PageListing extends Listing {
  position: PagePosition;
}

/** The first character of every cursor of this server. */
const marker = '@';
const maxEmbedded = 1000;

/**
 * Writes a cursor that any process can read: `@50+20.SIGNATURE=SERVICECURSOR` continues after 20 items of a page of 50.
 * The service's cursor is encoded: a model reads and copies this text, so nothing in it may pose as a sentence or a link.
 * A service cursor that is too long is remembered here instead, and `~` stands for it.
 */
function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shown } = position;
  const signature = sign(canonical([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${marker}${page}.${signature}${serviceCursor === undefined ? '' : embed(serviceCursor)}`;
}

function embed(serviceCursor: string): string {
  if (serviceCursor.length > maxEmbedded || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > maxEmbedded ? '~' : `=${encoded}`;
}

/** Remembers what a cursor does not hold: the filters, which a caller may leave out, and a long service cursor. */
async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}

/** 66 bits, as base64url. */
const signatureLength = 11;

/**
 * Signs with the caller's API key, so that every process reads the cursors of that key and no other's. A signature gives
 * away nothing about the key.
 */
export function signCursor(apiKey: string | undefined, text: string): string {
  if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
  const signature = createHmac('sha256', apiKey).update(`ad-library-mcp cursor ${text}`).digest('base64url');
  return signature.slice(0, signatureLength);
}

interface ListRequest extends Listing {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/**
 * Finds where a list continues, and with which filters. A cursor of the service is passed on; one of this server must be
 * the cursor that these arguments would give. Throws before anything is sent. The memory of cursors may be outside this
 * process, so it is asked only for what the cursor and these arguments lack.
 */
async function readCursor({ list, cursor, limit, searchParams }: ListRequest, cursors: Cursors): Promise<PageListing> {
  if (!cursor?.startsWith(marker)) return { list, searchParams, position: { serviceCursor: cursor, limit, shown: 0 } };
  const { isLong, ...position } = positionIn(cursor);
  const leavesOut = Object.keys(searchParams).length === 0;
  const candidates = isLong ? [] : [{ list, searchParams, position }];
  const isOfCursor = (listing: PageListing) => writeCursor(listing, cursors) === cursor;
  if (isLong || (leavesOut && !candidates.some(isOfCursor))) {
    const state = await cursors.recall(cursor);
    if (isLong && state === undefined) throw forgottenCursor();
    const { serviceCursor = position.serviceCursor } = state ?? {};
    for (const params of state && leavesOut ? [searchParams, state.searchParams] : [searchParams])
      candidates.push({ list, searchParams: params, position: { ...position, serviceCursor } });
  }
  const listing = candidates.find(isOfCursor);
  if (listing === undefined) throw cursorMismatch();
  // The page size may change before the first item of a page is shown.
  return position.shown === 0 && limit !== undefined
    ? { ...listing, position: { ...listing.position, limit } }
    : listing;
}

const cursorForm = /^@(\d{1,16})?(?:\+(\d{1,6}))?\.[\w-]{11}(?:=(.+)|(~))?$/;

function positionIn(cursor: string): PagePosition & { isLong: boolean } {
  const [match, limit, shown = 0, encoded, long] = cursorForm.exec(cursor) ?? [];
  if (match === undefined) throw cursorMismatch();
  return {
    serviceCursor: encoded && Buffer.from(encoded, 'base64url').toString(),
    limit: limit === undefined ? undefined : Number(limit),
    shown: Number(shown),
    isLong: long !== undefined,
  };
}

export const cursorMismatch = () =>
  invalidRequest(
    'This cursor does not match these arguments, or its filters are no longer remembered. Pass it unchanged, to the same tool, with the same filters (or collection and item type); to start over, leave it out.',
  );

const forgottenCursor = () =>
  invalidRequest(
    "This cursor has expired: the service's own cursor was too long to fit into it, and is no longer remembered. Repeat the call that returned it and use the new cursor, or leave the cursor out to start over.",
  );
