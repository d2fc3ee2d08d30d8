import type { Answer, Receipt, ServiceRequest } from '../api/call.ts';
import { maxPageSize, type Operation } from '../api/operations.ts';

/** The charges of calls with the same page size. */
interface SizePrice {
  /** The highest charge of any response. */
  maxCharged: number;
  /** The number of items in the response with the most items. */
  items: number;
  /** The charge of the response with the most items. */
  charged: number;
}

/** All charges seen for one operation. */
export interface PriceTable {
  /** Charges by requested page size. The size is 1 for operations that return a single object. */
  bySize: Map<number, SizePrice>;
  /** Charges of calls without `limit`. Used until the default page size is known; then such charges go to `bySize`. */
  unsized?: SizePrice;
  /** The number of items that the service returns if a call has no `limit`. */
  defaultPageSize?: number;
}

/**
 * All charges seen for an API key, by operation name. The API document states no prices (*Limits*, 6), so prices are
 * learned from charges.
 */
export type Prices = Map<string, PriceTable>;

/** The parts of a request that its price depends on. */
export type PricedRequest = Pick<ServiceRequest, 'operation' | 'query' | 'body' | 'hasDefaultSize'>;

/**
 * A pricing rule that matches all charges of an operation. It charges `credits` for each started group of `perItems`
 * items. If `perItems` is undefined, it charges `credits` per call, whatever the page size.
 */
interface PriceRule {
  credits: number;
  perItems?: number;
}

/**
 * The largest number of page sizes stored per operation. Callers choose page sizes, so without a limit the table could
 * grow indefinitely.
 */
const maxStoredSizes = 32;

/** The parts of a response that its price depends on. */
export interface PricedAnswer extends Pick<Answer, 'value'> {
  receipt?: Pick<Receipt, 'unusable'>;
}

/**
 * Adds a stated charge to the prices. Returns the same object if the charge reveals nothing new.
 *
 * A charge of 0 is ignored if the response has no items, or if the call added nothing to a collection. Such responses
 * may be free although others cost credits.
 */
export function learnPrice(
  prices: Prices,
  request: PricedRequest,
  { value, receipt }: PricedAnswer,
  charged: number,
): Prices {
  const { operation } = request;
  const { items, hasMore, added } = value as { items?: unknown; hasMore?: unknown; added?: unknown };
  const count = isListRequest(request) && Array.isArray(items) ? items.length + (receipt?.unusable ?? 0) : 1;
  if (charged === 0 && (count === 0 || added === false)) return prices;
  const knownTable = prices.get(operation.name);
  const isContinuationWithoutLimit = hasCursor(request) && !hasLimit(request) && !request.hasDefaultSize;
  const defaultPageSize =
    hasMore === true && !hasLimit(request) && !isContinuationWithoutLimit ? count : knownTable?.defaultPageSize;
  const table: PriceTable = {
    bySize: new Map(),
    ...knownTable,
    ...(defaultPageSize !== undefined && { defaultPageSize }),
  };
  const { defaultPageSize: assumedPageSize = operation.defaultLimit ?? 0 } = table;
  const size = isContinuationWithoutLimit && count <= assumedPageSize ? assumedPageSize : getPageSize(request, table);
  const previousPrice = size === undefined ? table.unsized : table.bySize.get(size);
  const mergedPrice = mergeCharge(previousPrice, { items: Math.min(count, size ?? count), charged });
  if (mergedPrice === previousPrice && defaultPageSize === knownTable?.defaultPageSize) return prices;
  if (size === undefined) table.unsized = mergedPrice;
  else table.bySize = new Map([...table.bySize, [size, mergedPrice]]);
  if (table.bySize.size > maxStoredSizes) removeOneSize(table);
  return new Map([...prices, [operation.name, table]]);
}

/** Merges a charge into the charges for the same page size. Returns the same object if nothing changes. */
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

/** The lowest and the highest possible cost of a call, in credits. If both are equal, the price is known exactly. */
export interface PriceBounds {
  atLeast: number;
  /** Infinity if earlier charges give no upper bound. */
  atMost: number;
}

/** Returns true if the lowest and the highest cost are equal. */
export const isExactPrice = ({ atLeast, atMost }: PriceBounds): boolean => atLeast === atMost;

/** Computes the lowest and the highest cost of a call from all charges of its operation. */
export const computeRequestBounds = (prices: Prices, request: PricedRequest): PriceBounds =>
  computePriceBounds(prices, request.operation, getPageSize(request, prices.get(request.operation.name)));

/**
 * Computes the lowest and the highest cost of a page of `size` items from all charges of the operation. The price is
 * known exactly if a full page of this size was charged before, or if all matching pricing rules agree.
 * @param size undefined if the page size is unknown. The upper bound is then the cost of the largest page that the API
 *   document allows.
 */
export function computePriceBounds(prices: Prices, operation: Operation, size: number | undefined): PriceBounds {
  const table = prices.get(operation.name);
  const minPrice = operation.gated ? 1 : 0;
  if (table === undefined) return { atLeast: minPrice, atMost: Infinity };
  if (size === undefined)
    return {
      atLeast: table.unsized?.maxCharged ?? minPrice,
      // A page of unknown size costs at most as much as the largest page.
      atMost: Math.max(getMaxCharge(table), computeHighestCost(table, maxPageSize)),
    };
  const charged = table.bySize.get(size);
  if (charged?.items === size) return { atLeast: charged.maxCharged, atMost: charged.maxCharged };
  // A page costs at least as much as any smaller page.
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
 * Computes an upper bound for the cost of a page. A page costs at most as much as its items cost in several smaller
 * pages, and at most as much as any larger page. Responses without items are ignored. A free response only proves that
 * pages up to its size are free.
 */
function computeHighestCost({ bySize, unsized }: PriceTable, size: number): number {
  const pricesWithItems = [...bySize.values(), ...(unsized ? [unsized] : [])].filter(({ items }) => items > 0);
  const paidPrices = pricesWithItems.filter(({ maxCharged }) => maxCharged > 0);
  if (paidPrices.length === 0) return pricesWithItems.some(({ items }) => items >= size) ? 0 : Infinity;
  return Math.min(...paidPrices.map(({ maxCharged, items }) => maxCharged * Math.ceil(size / items)));
}

/** The group sizes that pricing rules are tried with, in items. */
const groupSizes = [1, 2, 5, 10, 20, 25, 50, 100];

/**
 * Computes the lowest and the highest cost of a page from all pricing rules that match the charges. Returns an empty
 * tuple if no rule matches.
 */
function computeRuleBounds(table: PriceTable, size: number): [low?: number, high?: number] {
  const fullPages = listFullPages(table);
  if (fullPages.every((page) => page.charged === 0 && page.size < size)) return [];
  const rulePrices = findFittingRules(fullPages).map((rule) => applyRule(rule, size));
  return rulePrices.length === 0 ? [] : [Math.min(...rulePrices), Math.max(...rulePrices)];
}

/** The charge for a full page, i.e. a page with as many items as requested. */
interface SizeCharge {
  size: number;
  charged: number;
}

/**
 * Lists the charges of full pages. Returns an empty list for fewer than two pages, because a single charge matches
 * every rule.
 */
function listFullPages({ bySize }: PriceTable): SizeCharge[] {
  const fullPages = [...bySize].flatMap(([size, { items, charged }]) => (items === size ? [{ size, charged }] : []));
  return fullPages.length < 2 ? [] : fullPages;
}

/**
 * Returns the pricing rules that match all charges. If all charges are whole numbers, rules with fractional credits are
 * skipped.
 */
function findFittingRules(charges: readonly SizeCharge[]): PriceRule[] {
  const [first] = charges;
  if (first === undefined) return [];
  const areWholeNumbers = charges.every(({ charged }) => Number.isInteger(charged));
  const groupRules = groupSizes.map((perItems) => ({
    credits: first.charged / Math.ceil(first.size / perItems),
    perItems,
  }));
  return [{ credits: first.charged }, ...groupRules].filter(
    (rule) =>
      charges.every(({ size, charged }) => isNearlyEqual(applyRule(rule, size), charged)) &&
      (!areWholeNumbers || Number.isInteger(applyRule(rule, 1))),
  );
}

/** Returns the price of a page under a pricing rule, rounded to six decimals. */
const applyRule = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const isNearlyEqual = (a: number, b: number) => Math.abs(a - b) < 1e-6;

/**
 * Makes room in a full table by removing one page size. The size with the highest charge is retained, because that
 * charge bounds the cost of all sizes.
 */
function removeOneSize({ bySize }: PriceTable): void {
  const max = Math.max(...[...bySize.values()].map(({ maxCharged }) => maxCharged));
  for (const [size, { maxCharged }] of bySize) if (maxCharged < max) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const hasLimit = ({ body, query }: PricedRequest) => (body?.limit ?? query.limit) !== undefined;
const hasCursor = ({ body, query }: PricedRequest) => (body?.cursor ?? query.cursor) !== undefined;

/**
 * Returns the number of items that a call requests, or undefined if the number is unknown.
 *
 * A call with a cursor but no `limit` continues with the page size of the list's first call. That may be any page size
 * in the table, so the largest one is returned.
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

/** Returns true if the operation returns a page of a list. */
export const isListRequest = ({ operation }: PricedRequest): boolean => operation.list === true;

const maxListedCharges = 4;

/**
 * Lists the highest charge for each number of returned items, sorted by that number. Returns only the last
 * `maxListedCharges` entries.
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
 * Returns the highest charge of an operation. Returns undefined if no charge, not even 0, was seen for the operation.
 */
export function getMaxPrice(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && getMaxCharge(table);
}

/** Returns true if an operation costs credits. An ungated operation counts as paid once it has charged credits. */
export const isPaid = ({ gated, name }: Operation, prices: Prices): boolean =>
  gated || (getMaxPrice(prices, name) ?? 0) > 0;

const getMaxCharge = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.maxCharged ?? 0, ...[...bySize.values()].map(({ maxCharged }) => maxCharged));

/** Returns the highest charge of any operation, or 0. */
export const getOverallMaxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => getMaxPrice(prices, operation) ?? 0));
