import type { Receipt, ServiceRequest, ServiceResponse } from '../api/call.ts';
import { maxPageSize, type Operation } from '../api/operations.ts';

/** The charges that the service reported for calls with the same page size. */
interface SizePrice {
  /** The highest charge among all responses with this page size, in credits. */
  maxCharged: number;
  /** The number of items in the response that had the most items. */
  items: number;
  /** The charge for the response that had the most items, in credits. */
  charged: number;
}

/** All charges that the service reported for one operation, e.g. `searchAds`. */
export interface PriceTable {
  /** The charges by requested page size. For operations that return a single object, the size is 1. */
  bySize: Map<number, SizePrice>;
  /**
   * The charges of calls without `limit`. They are stored here until the default page size is known, and in `bySize`
   * after that.
   */
  unsized?: SizePrice;
  /** The number of items that the service returns for calls without `limit`. Undefined until it is known. */
  defaultPageSize?: number;
}

/**
 * All charges observed for an API key, by operation name. The API document contains no prices (*Limits*, 6), so the
 * server learns them from charges.
 */
export type Prices = Map<string, PriceTable>;

/** The parts of a request that affect its price, e.g. the requested page size. */
export type PricedRequest = Pick<ServiceRequest, 'operation' | 'query' | 'body' | 'hasDefaultSize'>;

/**
 * A pricing rule that is consistent with all observed charges. It charges `credits` for each started group of
 * `perItems` items. If `perItems` is undefined, it charges `credits` for every call, regardless of the page size.
 */
interface PriceRule {
  credits: number;
  perItems?: number;
}

/**
 * The maximum number of page sizes that are stored per operation. Callers choose the page sizes, so without a limit the
 * table could grow indefinitely.
 */
const maxStoredSizes = 32;

/** The parts of a response from which a price can be learned: its items, and the number of items that had no id. */
export interface PricedAnswer extends Pick<ServiceResponse, 'value'> {
  receipt?: Pick<Receipt, 'unusable'>;
}

/**
 * Adds an observed charge to the prices. Returns the same object if the charge reveals nothing new.
 *
 * A charge of 0 is ignored if the response has no items, or if the call added nothing to a collection. Such calls may
 * be free even if others of the same operation cost credits.
 */
export function learnPrice(
  prices: Prices,
  request: PricedRequest,
  { value, receipt }: PricedAnswer,
  charged: number,
): Prices {
  const { operation } = request;
  const { items, hasMore, added } = value as { items?: unknown; hasMore?: unknown; added?: unknown };
  const itemCount = isListRequest(request) && Array.isArray(items) ? items.length + (receipt?.unusable ?? 0) : 1;
  if (charged === 0 && (itemCount === 0 || added === false)) return prices;
  const knownTable = prices.get(operation.name);
  const isContinuationWithoutLimit = hasCursor(request) && !hasLimit(request) && !request.hasDefaultSize;
  const defaultPageSize =
    hasMore === true && !hasLimit(request) && !isContinuationWithoutLimit ? itemCount : knownTable?.defaultPageSize;
  const table: PriceTable = {
    bySize: new Map(),
    ...knownTable,
    ...(defaultPageSize !== undefined && { defaultPageSize }),
  };
  const { defaultPageSize: assumedPageSize = operation.defaultLimit ?? 0 } = table;
  const size =
    isContinuationWithoutLimit && itemCount <= assumedPageSize ? assumedPageSize : getPageSize(request, table);
  const previousPrice = size === undefined ? table.unsized : table.bySize.get(size);
  const mergedPrice = mergeCharge(previousPrice, { items: Math.min(itemCount, size ?? itemCount), charged });
  if (mergedPrice === previousPrice && defaultPageSize === knownTable?.defaultPageSize) return prices;
  if (size === undefined) table.unsized = mergedPrice;
  else table.bySize = new Map([...table.bySize, [size, mergedPrice]]);
  if (table.bySize.size > maxStoredSizes) evictPageSize(table);
  return new Map([...prices, [operation.name, table]]);
}

/** Merges a charge into the stored charges for the same page size. Returns the same object if nothing changes. */
function mergeCharge(
  previousPrice: SizePrice | undefined,
  { items, charged }: Omit<SizePrice, 'maxCharged'>,
): SizePrice {
  if (previousPrice === undefined) return { maxCharged: charged, items, charged };
  const maxCharged = Math.max(charged, previousPrice.maxCharged);
  const isFuller = items > previousPrice.items || (items === previousPrice.items && charged > previousPrice.charged);
  if (isFuller) return { maxCharged, items, charged };
  return maxCharged === previousPrice.maxCharged ? previousPrice : { ...previousPrice, maxCharged };
}

/** The lowest and the highest possible cost of a call, in credits. They are equal if the price is known exactly. */
export interface PriceBounds {
  atLeast: number;
  /** The highest possible cost. It is infinite if earlier charges do not imply an upper bound. */
  atMost: number;
}

/** The price bounds of a call that is known to cost nothing. */
export const freePrice: PriceBounds = { atLeast: 0, atMost: 0 };

/** Returns true if the price is known exactly, i.e. both bounds are equal. */
export const isExactPrice = ({ atLeast, atMost }: PriceBounds): boolean => atLeast === atMost;

/** Computes the lowest and the highest possible cost of a call from the observed charges of its operation. */
export const computeRequestBounds = (prices: Prices, request: PricedRequest): PriceBounds =>
  computePriceBounds(prices, request.operation, getPageSize(request, prices.get(request.operation.name)));

/**
 * Computes the lowest and the highest possible cost of a page with `size` items from the observed charges of the
 * operation. The price is exact if a full page of this size was charged before, or if all consistent pricing rules give
 * the same price.
 * @param size undefined if the page size is unknown. The upper bound is then the cost of the largest page that the API
 * document allows.
 */
export function computePriceBounds(prices: Prices, operation: Operation, size: number | undefined): PriceBounds {
  const table = prices.get(operation.name);
  const minPrice = operation.requiresCredits ? 1 : 0;
  if (table === undefined) return { atLeast: minPrice, atMost: Infinity };
  if (size === undefined)
    return {
      atLeast: table.unsized?.maxCharged ?? minPrice,
      // The page size is unknown, so the upper bound is the cost of the largest page.
      atMost: Math.max(getMaxCharge(table), computeHighestCost(table, maxPageSize)),
    };
  const charged = table.bySize.get(size);
  if (charged?.items === size) return { atLeast: charged.maxCharged, atMost: charged.maxCharged };
  // A page costs at least as much as any smaller page, so the charges of smaller pages are lower bounds.
  const smallerPageCharges = [...table.bySize]
    .filter(([pageSize]) => pageSize <= size)
    .map(([, { maxCharged }]) => maxCharged);
  const [lowByRules = 0, highByRules] = computeRuleBounds(table, size);
  const atLeast = Math.max(...smallerPageCharges, smallerPageCharges.length > 0 ? 0 : minPrice, lowByRules);
  if (highByRules === atLeast) return { atLeast, atMost: atLeast };
  const atMost = computeHighestCost(table, size);
  return { atLeast: isNearlyEqual(atLeast, atMost) ? atMost : Math.min(atLeast, atMost), atMost };
}

/**
 * Computes an upper bound for the cost of a page. A page never costs more than its items cost in several smaller pages,
 * and never more than a larger page. Responses without items are ignored. A free response proves only that pages up to
 * its size are free.
 */
function computeHighestCost({ bySize, unsized }: PriceTable, size: number): number {
  const pricesWithItems = [...bySize.values(), ...(unsized ? [unsized] : [])].filter(({ items }) => items > 0);
  const paidPrices = pricesWithItems.filter(({ maxCharged }) => maxCharged > 0);
  if (paidPrices.length === 0) return pricesWithItems.some(({ items }) => items >= size) ? 0 : Infinity;
  return Math.min(...paidPrices.map(({ maxCharged, items }) => maxCharged * Math.ceil(size / items)));
}

/**
 * The sizes of item groups for which pricing rules are tested. A rule charges the same price for each started group.
 */
const groupSizes = [1, 2, 5, 10, 20, 25, 50, 100];

/**
 * Computes the lowest and the highest cost of a page among all pricing rules that are consistent with the charges.
 * Returns an empty tuple if no rule is consistent.
 */
function computeRuleBounds(table: PriceTable, size: number): [low?: number, high?: number] {
  const fullPages = listFullPages(table);
  if (fullPages.every((page) => page.charged === 0 && page.size < size)) return [];
  const rulePrices = findFittingRules(fullPages).map((rule) => computeRulePrice(rule, size));
  return rulePrices.length === 0 ? [] : [Math.min(...rulePrices), Math.max(...rulePrices)];
}

/** The charge for a full page, i.e. a page that contains as many items as the call requested. */
interface FullPageCharge {
  size: number;
  charged: number;
}

/**
 * Lists the charges of full pages. Returns an empty list for fewer than two pages, because every rule is consistent
 * with a single charge.
 */
function listFullPages({ bySize }: PriceTable): FullPageCharge[] {
  const fullPages = [...bySize].flatMap(([size, { items, charged }]) => (items === size ? [{ size, charged }] : []));
  return fullPages.length < 2 ? [] : fullPages;
}

/**
 * Returns the pricing rules that are consistent with all charges. If all charges are whole numbers, rules with
 * fractional credits are skipped.
 */
function findFittingRules(charges: readonly FullPageCharge[]): PriceRule[] {
  const [first] = charges;
  if (first === undefined) return [];
  const areWholeNumbers = charges.every(({ charged }) => Number.isInteger(charged));
  const groupRules = groupSizes.map((perItems) => ({
    credits: first.charged / Math.ceil(first.size / perItems),
    perItems,
  }));
  return [{ credits: first.charged }, ...groupRules].filter(
    (rule) =>
      charges.every(({ size, charged }) => isNearlyEqual(computeRulePrice(rule, size), charged)) &&
      (!areWholeNumbers || Number.isInteger(computeRulePrice(rule, 1))),
  );
}

/** Returns the price of a page with `size` items if a pricing rule applies, rounded to six decimals. */
const computeRulePrice = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const isNearlyEqual = (a: number, b: number) => Math.abs(a - b) < 1e-6;

/**
 * Removes one page size from a full table. The size with the highest charge is kept, because that charge is the upper
 * bound for the cost of other sizes.
 */
function evictPageSize({ bySize }: PriceTable): void {
  const highestCharge = Math.max(...[...bySize.values()].map(({ maxCharged }) => maxCharged));
  for (const [size, { maxCharged }] of bySize) if (maxCharged < highestCharge) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const hasLimit = ({ body, query }: PricedRequest) => (body?.limit ?? query.limit) !== undefined;
const hasCursor = ({ body, query }: PricedRequest) => (body?.cursor ?? query.cursor) !== undefined;

/**
 * Returns how many items a call requests. Returns undefined if the number is unknown.
 *
 * A call with a cursor but no `limit` continues with the page size of the list's first call. That size is unknown, so
 * the function returns the largest size in the table.
 */
function getPageSize(request: PricedRequest, table?: PriceTable): number | undefined {
  if (!isListRequest(request)) return 1;
  const { bySize = new Map<number, SizePrice>(), defaultPageSize = request.operation.defaultLimit } = table ?? {};
  if (hasLimit(request)) {
    const limit = request.body?.limit ?? request.query.limit;
    return typeof limit === 'number' && limit >= 1 ? limit : undefined;
  }
  if (!hasCursor(request) || (request.hasDefaultSize && defaultPageSize !== undefined)) return defaultPageSize;
  const sizes = [...bySize.keys(), ...(defaultPageSize === undefined ? [] : [defaultPageSize])];
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

/** Returns true if the operation returns one page of a list, so that its price may depend on the page size. */
export const isListRequest = ({ operation }: PricedRequest): boolean => operation.isList === true;

const maxListedCharges = 4;

/**
 * Lists the highest charge for each number of returned items, sorted by that number. Returns only the last
 * `maxListedCharges` entries to keep the text short.
 */
export function listCharges({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const charges = new Map<number, number>();
  for (const { items, charged } of [...(unsized ? [unsized] : []), ...bySize.values()])
    charges.set(items, Math.max(charged, charges.get(items) ?? 0));
  return [...charges]
    .map(([items, charged]) => ({ items, charged }))
    .sort((left, right) => left.items - right.items)
    .slice(-maxListedCharges);
}

/**
 * Returns the highest observed charge of an operation. Returns undefined if no charge was observed, not even a charge
 * of 0.
 */
export function getMaxPrice(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && getMaxCharge(table);
}

/**
 * Returns true if an operation costs credits. An operation that the API document lists as free counts as paid once it
 * has charged credits.
 */
export const isPaid = ({ requiresCredits, name }: Operation, prices: Prices): boolean =>
  requiresCredits || (getMaxPrice(prices, name) ?? 0) > 0;

const getMaxCharge = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.maxCharged ?? 0, ...[...bySize.values()].map(({ maxCharged }) => maxCharged));

/** Returns the highest observed charge among all operations, or 0 if there is none. */
export const getOverallMaxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => getMaxPrice(prices, operation) ?? 0));
