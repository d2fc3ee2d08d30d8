import type { Receipt, ServiceRequest, ServiceResponse } from '../api/call.ts';
import { maxDocumentedPageSize, type Operation } from '../api/operations.ts';
import { roundCredits } from '../views/numbers.ts';

/** The highest charge for one page size, and the charge for the fullest page of this size so far. */
interface PageSizePrice {
  /** The highest charge for a call that requested a page of this size, in credits. */
  maxCharge: number;
  /** The number of items on the page with the most items. */
  itemCount: number;
  /** The charge for the page with the most items, in credits. If there are several such pages, the highest charge. */
  chargedCredits: number;
}

/** The charges, in credits, that the service reported for calls to one API operation, e.g. `searchAds`. */
export interface PriceTable {
  /**
   * The charges by the number of items that the call requested. Operations that return a single object use the key 1.
   */
  bySize: Map<number, PageSizePrice>;
  /**
   * The charges of calls without the `limit` argument. Used until `defaultPageSize` is known; later charges are stored
   * in `bySize`.
   */
  unsized?: PageSizePrice;
  /** The number of items that the service returns for a call without `limit`. Undefined until a response reveals it. */
  defaultPageSize?: number;
}

/**
 * The charges that the service reported to an API key, by operation name. The server learns prices from these charges,
 * because the API document states no prices (section *Limits*, rule 6).
 */
export type Prices = Map<string, PriceTable>;

/** The parts of a request that affect its price, e.g. the requested page size. */
export type PricedRequest = Pick<ServiceRequest, 'operation' | 'query' | 'body' | 'usesDefaultPageSize'>;

/**
 * A pricing rule that the service may use: a call costs `creditsPerGroup` for each full or partial group of `groupSize`
 * items. If `groupSize` is undefined, every call costs `creditsPerGroup`, regardless of its page size.
 */
interface PriceRule {
  creditsPerGroup: number;
  groupSize?: number;
}

/**
 * The maximum number of page sizes for which a price table stores charges. Callers choose the page sizes, so without
 * this limit the table could grow indefinitely.
 */
const maxStoredPageSizes = 32;

/**
 * The parts of a response from which the server learns a price. `validatedBody` is the parsed body, which contains the
 * items. `unusableCount` counts items without an id, which the service charges for as well.
 */
export interface PricedResponse extends Pick<ServiceResponse, 'validatedBody'> {
  receipt?: Pick<Receipt, 'unusableCount'>;
}

/**
 * Adds the charge of a response to the known prices. Returns `prices` itself if the charge reveals nothing new.
 *
 * Ignores a charge of 0 if the response has no items, or if the call added nothing to a collection. Such a call may be
 * free although other calls to the same operation cost credits.
 */
export function learnPrice(
  prices: Prices,
  request: PricedRequest,
  { validatedBody, receipt }: PricedResponse,
  chargedCredits: number,
): Prices {
  const { operation } = request;
  const { items, hasMore, added } = validatedBody as { items?: unknown; hasMore?: unknown; added?: unknown };
  const itemCount = isListRequest(request) && Array.isArray(items) ? items.length + (receipt?.unusableCount ?? 0) : 1;
  if (chargedCredits === 0 && (itemCount === 0 || added === false)) return prices;
  const knownTable = prices.get(operation.name);
  const isContinuationWithoutLimit = hasCursor(request) && !hasLimit(request) && !request.usesDefaultPageSize;
  // An empty page does not reveal the default page size, even if there are further pages.
  const isFullDefaultPage = hasMore === true && itemCount > 0 && !hasLimit(request) && !isContinuationWithoutLimit;
  const defaultPageSize = isFullDefaultPage ? itemCount : knownTable?.defaultPageSize;
  const table: PriceTable = {
    bySize: new Map(),
    ...knownTable,
    ...(defaultPageSize !== undefined && { defaultPageSize }),
  };
  const { defaultPageSize: assumedPageSize = operation.defaultLimit ?? 0 } = table;
  const hasAssumedSize = isContinuationWithoutLimit && assumedPageSize > 0 && itemCount <= assumedPageSize;
  const expectedSize = hasAssumedSize ? assumedPageSize : getPageSize(request, table);
  // A page without a requested size that has more items than expected belongs to an unknown size.
  const isLargerThanExpected = isListRequest(request) && !hasLimit(request) && itemCount > (expectedSize ?? Infinity);
  const size = isLargerThanExpected ? undefined : expectedSize;
  const previousPrice = size === undefined ? table.unsized : table.bySize.get(size);
  const mergedPrice = mergeCharge(previousPrice, {
    itemCount: Math.min(itemCount, size ?? itemCount),
    chargedCredits,
  });
  if (mergedPrice === previousPrice && defaultPageSize === knownTable?.defaultPageSize) return prices;
  if (size === undefined) table.unsized = mergedPrice;
  else table.bySize = new Map([...table.bySize, [size, mergedPrice]]);
  if (table.bySize.size > maxStoredPageSizes) evictPageSize(table);
  return new Map([...prices, [operation.name, table]]);
}

/**
 * Merges a charge into the stored charges for the same page size. Returns `previousPrice` itself if nothing changes.
 */
function mergeCharge(
  previousPrice: PageSizePrice | undefined,
  { itemCount, chargedCredits }: Omit<PageSizePrice, 'maxCharge'>,
): PageSizePrice {
  if (previousPrice === undefined) return { maxCharge: chargedCredits, itemCount, chargedCredits };
  const maxCharge = Math.max(chargedCredits, previousPrice.maxCharge);
  const isFullestResponse =
    itemCount > previousPrice.itemCount ||
    (itemCount === previousPrice.itemCount && chargedCredits > previousPrice.chargedCredits);
  if (isFullestResponse) return { maxCharge, itemCount, chargedCredits };
  return maxCharge === previousPrice.maxCharge ? previousPrice : { ...previousPrice, maxCharge };
}

/** The lowest and the highest possible cost of a call, in credits. They are equal if the price is known exactly. */
export interface PriceBounds {
  atLeast: number;
  /** The highest possible cost, or `Infinity` if the earlier charges imply no upper bound. */
  atMost: number;
}

/** The price bounds of a call that is known to cost nothing. */
export const freePriceBounds: PriceBounds = { atLeast: 0, atMost: 0 };

/** Returns true if the price is known exactly, i.e. both bounds are equal. */
export const isExactPrice = ({ atLeast, atMost }: PriceBounds): boolean => atLeast === atMost;

/** Computes the lowest and the highest possible cost of a call from earlier charges of its operation. */
export const computeRequestPriceBounds = (prices: Prices, request: PricedRequest): PriceBounds =>
  computePriceBounds(prices, request.operation, getPageSize(request, prices.get(request.operation.name)));

/**
 * Computes the lowest and the highest possible cost of a page with `size` items from earlier charges of the operation.
 * Both bounds are equal if a full page of this size was charged before, or if all possible pricing rules agree.
 * @param size undefined if unknown. The upper bound is then the cost of the largest page that the API document allows.
 */
export function computePriceBounds(prices: Prices, operation: Operation, size: number | undefined): PriceBounds {
  const priceTable = prices.get(operation.name);
  const minPrice = operation.requiresCredits ? computeMinPageCost(priceTable, size) : 0;
  if (priceTable === undefined) return { atLeast: minPrice, atMost: Infinity };
  if (size === undefined)
    return {
      atLeast: priceTable.unsized?.maxCharge ?? minPrice,
      // The size of the page is unknown, so the upper bound is the cost of the largest page.
      atMost: Math.max(getMaxCharge(priceTable), computeMaxPageCost(priceTable, maxDocumentedPageSize)),
    };
  const sizePrice = priceTable.bySize.get(size);
  if (sizePrice?.itemCount === size) return { atLeast: sizePrice.maxCharge, atMost: sizePrice.maxCharge };
  // A page costs at least as much as a smaller page, so the charges of smaller pages are lower bounds.
  const smallerPageCharges = [...priceTable.bySize]
    .filter(([pageSize]) => pageSize <= size)
    .map(([, { maxCharge }]) => maxCharge);
  const [minRuleCost = 0, maxRuleCost] = computeRulePriceBounds(priceTable, size);
  const atLeast = Math.max(...smallerPageCharges, smallerPageCharges.length > 0 ? 0 : minPrice, minRuleCost);
  if (maxRuleCost === atLeast) return { atLeast, atMost: atLeast };
  const atMost = computeMaxPageCost(priceTable, size);
  return { atLeast: isNearlyEqual(atLeast, atMost) ? atMost : Math.min(atLeast, atMost), atMost };
}

/**
 * Computes a lower bound for the cost of a page that is smaller than all earlier pages, in credits. The bound is 1
 * credit, unless the service has charged fractions of a credit. A page then costs at least its share of a larger page,
 * because a larger page costs at most as much as several smaller pages together. The share depends on the requested
 * page sizes, because a service may charge for items that it did not find.
 */
function computeMinPageCost({ bySize, unsized }: PriceTable = { bySize: new Map() }, pageSize = 1): number {
  const charges = [...bySize.values(), ...(unsized ? [unsized] : [])].map(({ maxCharge }) => maxCharge);
  if (charges.every(Number.isInteger)) return 1;
  const proportionalCosts = [...bySize].map(([size, { maxCharge }]) => maxCharge / Math.ceil(size / pageSize));
  return roundCredits(Math.max(0, ...proportionalCosts));
}

/**
 * Computes an upper bound for the cost of a page, in credits. A page costs at most as much as several smaller pages
 * that together contain the same items, and at most as much as a larger page. If all earlier pages were free, the cost
 * of a larger page has no upper bound.
 */
function computeMaxPageCost({ bySize, unsized }: PriceTable, pageSize: number): number {
  const pricesWithItems = [...bySize.values(), ...(unsized ? [unsized] : [])].filter(({ itemCount }) => itemCount > 0);
  const paidPrices = pricesWithItems.filter(({ maxCharge }) => maxCharge > 0);
  if (paidPrices.length === 0) return pricesWithItems.some(({ itemCount }) => itemCount >= pageSize) ? 0 : Infinity;
  return roundCredits(
    Math.min(...paidPrices.map(({ maxCharge, itemCount }) => maxCharge * Math.ceil(pageSize / itemCount))),
  );
}

/**
 * The typical group sizes, in items, of pricing rules. A rule charges a fixed price for each full or partial group of
 * items, e.g. 2 credits per 10 items.
 */
const typicalGroupSizes = [1, 2, 5, 10, 20, 25, 50, 100];

/**
 * Computes the lowest and the highest cost of a page under the pricing rules that match the charges so far. The lowest
 * cost follows from rules with a typical group size, because a service probably uses such a rule. The highest cost
 * follows from rules with any group size. Returns an empty tuple if no typical rule matches, or if all earlier full
 * pages were smaller and free, because free small pages do not show what a larger page costs.
 */
function computeRulePriceBounds(priceTable: PriceTable, pageSize: number): [low?: number, high?: number] {
  const fullPages = listFullPageCharges(priceTable);
  if (fullPages.every((page) => page.chargedCredits === 0 && page.pageSize < pageSize)) return [];
  const listRulePrices = (groupSizes: readonly number[]) =>
    findMatchingRules(fullPages, groupSizes).map((rule) => computeRulePrice(rule, pageSize));
  const typicalPrices = listRulePrices(typicalGroupSizes);
  if (typicalPrices.length === 0) return [];
  const maxGroupSize = Math.max(maxDocumentedPageSize, pageSize);
  const allGroupSizes = Array.from({ length: maxGroupSize }, (_, index) => index + 1);
  return [Math.min(...typicalPrices), Math.max(...listRulePrices(allGroupSizes))];
}

/** The charge for a full page, i.e. a page with as many items as the call requested. */
interface FullPageCharge {
  pageSize: number;
  chargedCredits: number;
}

/**
 * Lists the charges of full pages. Returns an empty list if there is only one full page, because a single charge
 * matches every kind of pricing rule.
 */
function listFullPageCharges({ bySize }: PriceTable): FullPageCharge[] {
  const fullPages = [...bySize].flatMap(([pageSize, { itemCount, chargedCredits }]) =>
    itemCount === pageSize ? [{ pageSize, chargedCredits }] : [],
  );
  return fullPages.length < 2 ? [] : fullPages;
}

/**
 * Returns the pricing rules that match all charges: a price per call, or a price per group with one of `groupSizes`.
 * Excludes rules with fractional credits if all charges are whole numbers.
 */
function findMatchingRules(charges: readonly FullPageCharge[], groupSizes: readonly number[]): PriceRule[] {
  const [firstCharge] = charges;
  if (firstCharge === undefined) return [];
  const areAllChargesWhole = charges.every(({ chargedCredits }) => Number.isInteger(chargedCredits));
  const groupRules = groupSizes.map((groupSize) => ({
    creditsPerGroup: firstCharge.chargedCredits / Math.ceil(firstCharge.pageSize / groupSize),
    groupSize,
  }));
  return [{ creditsPerGroup: firstCharge.chargedCredits }, ...groupRules].filter(
    (rule) =>
      charges.every(({ pageSize, chargedCredits }) =>
        isNearlyEqual(computeRulePrice(rule, pageSize), chargedCredits),
      ) &&
      (!areAllChargesWhole || Number.isInteger(computeRulePrice(rule, 1))),
  );
}

/** Computes the price of a page with `itemCount` items under a pricing rule, in credits, rounded to six decimals. */
const computeRulePrice = ({ creditsPerGroup, groupSize }: PriceRule, itemCount: number): number =>
  roundCredits((groupSize === undefined ? 1 : Math.ceil(itemCount / groupSize)) * creditsPerGroup);

const isNearlyEqual = (credits: number, otherCredits: number) => Math.abs(credits - otherCredits) < 1e-6;

/**
 * Removes one page size, with its charges, from a price table that has too many page sizes. Keeps the page size with
 * the highest charge, because this charge is the upper bound for the cost of other page sizes.
 */
function evictPageSize({ bySize }: PriceTable): void {
  const highestCharge = Math.max(...[...bySize.values()].map(({ maxCharge }) => maxCharge));
  for (const [pageSize, { maxCharge }] of bySize) if (maxCharge < highestCharge) return void bySize.delete(pageSize);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const hasLimit = ({ body, query }: PricedRequest) => (body?.limit ?? query.limit) !== undefined;
const hasCursor = ({ body, query }: PricedRequest) => (body?.cursor ?? query.cursor) !== undefined;

/**
 * Returns the number of items that a call requests, or undefined if this number is unknown.
 *
 * A call with a cursor but without `limit` uses the page size of the first call for the same list. This page size is
 * unknown here, so the function returns the largest page size in the table.
 */
function getPageSize(request: PricedRequest, priceTable?: PriceTable): number | undefined {
  if (!isListRequest(request)) return 1;
  const { bySize = new Map<number, PageSizePrice>(), defaultPageSize = request.operation.defaultLimit } =
    priceTable ?? {};
  if (hasLimit(request)) {
    const limit = request.body?.limit ?? request.query.limit;
    return typeof limit === 'number' && limit >= 1 ? limit : undefined;
  }
  if (!hasCursor(request) || (request.usesDefaultPageSize && defaultPageSize !== undefined)) return defaultPageSize;
  const sizes = [...bySize.keys(), ...(defaultPageSize === undefined ? [] : [defaultPageSize])];
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

/** Returns true if the operation returns a page of a list, so that its price may depend on the page size. */
export const isListRequest = ({ operation }: PricedRequest): boolean => operation.isList === true;

const maxListedCharges = 4;

/**
 * Lists the highest charge for each number of returned items, in ascending order of this number. Returns only the last
 * `maxListedCharges` charges, to keep the account text short.
 */
export function listCharges({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const chargesByItemCount = new Map<number, number>();
  for (const { itemCount, chargedCredits } of [...(unsized ? [unsized] : []), ...bySize.values()])
    chargesByItemCount.set(itemCount, Math.max(chargedCredits, chargesByItemCount.get(itemCount) ?? 0));
  return [...chargesByItemCount]
    .map(([items, charged]) => ({ items, charged }))
    .sort((left, right) => left.items - right.items)
    .slice(-maxListedCharges);
}

/** Returns the highest charge so far for a call to the operation, or undefined if no charge is known. */
export function getMaxPrice(prices: Prices, operationName: string): number | undefined {
  const priceTable = prices.get(operationName);
  return priceTable && getMaxCharge(priceTable);
}

/**
 * Returns true if calls to an operation may cost credits. An operation that is free according to the API document
 * counts as paid as soon as a call to it has cost credits.
 */
export const isPaidOperation = ({ requiresCredits, name }: Operation, prices: Prices): boolean =>
  requiresCredits || (getMaxPrice(prices, name) ?? 0) > 0;

const getMaxCharge = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.maxCharge ?? 0, ...[...bySize.values()].map(({ maxCharge }) => maxCharge));

/** Returns the highest charge so far for a call to any operation, or 0 if no charge is known. */
export const getOverallMaxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => getMaxPrice(prices, operation) ?? 0));
