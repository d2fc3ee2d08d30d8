import type { Answer, Receipt, ServiceRequest } from '../api/call.ts';
import { maxPageSize, type Operation } from '../api/operations.ts';

/** The charges of the calls with the same page size. */
interface SizePrice {
  /** The highest charge of any answer. */
  maxCharged: number;
  /** The number of items of the answer with the most items. */
  items: number;
  /** The charge of the answer with the most items. */
  charged: number;
}

/** The charges of one operation. */
export interface PriceTable {
  /** The charges by the requested number of items. The number is 1 for operations that return one object. */
  bySize: Map<number, SizePrice>;
  /** The charges of calls without `limit`. They belong to no page size until the default page size is known. */
  unsized?: SizePrice;
  /** The number of items that the service sends for a call without `limit`. */
  defaultPageSize?: number;
}

/** The charges by operation. The document states no prices (*Limits*, 6), so prices follow from charges alone. */
export type Prices = Map<string, PriceTable>;

/** The parts of a request on which its price depends. */
export type PricedRequest = Pick<ServiceRequest, 'operation' | 'query' | 'body' | 'hasDefaultSize'>;

/**
 * A rule that explains all charges of an operation. It charges `credits` for each started group of `perItems` items, or
 * for a call of any size if `perItems` is undefined.
 */
interface PriceRule {
  credits: number;
  perItems?: number;
}

/** The most page sizes that the table of an operation stores. It is bounded, because callers choose page sizes. */
const maxStoredSizes = 32;

/** The part of an answer that its price depends on. */
export interface PricedAnswer extends Pick<Answer, 'value'> {
  receipt?: Pick<Receipt, 'unusable'>;
}

/**
 * Adds a stated charge to the prices. Returns the same object if the charge adds nothing new. A free answer without items,
 * or that added nothing to a collection, is ignored: such an answer may be free although other answers cost credits.
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
  const before = size === undefined ? table.unsized : table.bySize.get(size);
  const after = mergeCharge(before, { items: Math.min(count, size ?? count), charged });
  if (after === before && defaultPageSize === knownTable?.defaultPageSize) return prices;
  if (size === undefined) table.unsized = after;
  else table.bySize = new Map([...table.bySize, [size, after]]);
  if (table.bySize.size > maxStoredSizes) removeOneSize(table);
  return new Map([...prices, [operation.name, table]]);
}

/** Merges a charge into the charges of the same page size. Returns the same object if nothing changes. */
function mergeCharge(before: SizePrice | undefined, { items, charged }: Omit<SizePrice, 'maxCharged'>): SizePrice {
  if (before === undefined) return { maxCharged: charged, items, charged };
  const maxCharged = Math.max(charged, before.maxCharged);
  const isFuller = items > before.items || (items === before.items && charged > before.charged);
  if (isFuller) return { maxCharged, items, charged };
  return maxCharged === before.maxCharged ? before : { ...before, maxCharged };
}

/** The lowest and the highest cost of a call in credits. The price is known exactly if both are equal. */
export interface PriceBounds {
  atLeast: number;
  /** Infinity if no charge bounds the cost. */
  atMost: number;
}

/** Returns whether the bounds state an exact price. */
export const isExactPrice = ({ atLeast, atMost }: PriceBounds): boolean => atLeast === atMost;

/** Computes the bounds of the cost of a call from all charges of its operation. */
export const computeRequestBounds = (prices: Prices, request: PricedRequest): PriceBounds =>
  computePriceBounds(prices, request.operation, getPageSize(request, prices.get(request.operation.name)));

/**
 * Computes the bounds of the cost of a page of `size` items from all charges of the operation. The price is known exactly
 * if a full page of that size was charged, or if all price rules that explain the charges agree.
 * @param size undefined for a page of unknown size. Such a page costs at most as much as the largest page of the document.
 */
export function computePriceBounds(prices: Prices, operation: Operation, size: number | undefined): PriceBounds {
  const table = prices.get(operation.name);
  const lowest = operation.gated ? 1 : 0;
  if (table === undefined) return { atLeast: lowest, atMost: Infinity };
  if (size === undefined)
    return {
      atLeast: table.unsized?.maxCharged ?? lowest,
      // A page of unknown size costs at most as much as the largest page.
      atMost: Math.max(getMaxCharge(table), computeHighestCost(table, maxPageSize)),
    };
  const charged = table.bySize.get(size);
  if (charged?.items === size) return { atLeast: charged.maxCharged, atMost: charged.maxCharged };
  // A page costs at least as much as a smaller page.
  const smaller = [...table.bySize].filter(([pageSize]) => pageSize <= size).map(([, { maxCharged }]) => maxCharged);
  const [lowByRules = 0, highByRules] = computeRuleBounds(table, size);
  const atLeast = Math.max(...smaller, smaller.length > 0 ? 0 : lowest, lowByRules);
  if (highByRules === atLeast) return { atLeast, atMost: atLeast };
  const atMost = computeHighestCost(table, size);
  return { atLeast: isNearlyEqual(atLeast, atMost) ? atMost : Math.min(atLeast, atMost), atMost };
}

/**
 * Computes the highest cost of a page. A page costs at most as much as the same items in several smaller pages, and at
 * most as much as a larger page. Answers without items are ignored. A free answer proves only that pages up to its size
 * are free.
 */
function computeHighestCost({ bySize, unsized }: PriceTable, size: number): number {
  const withItems = [...bySize.values(), ...(unsized ? [unsized] : [])].filter(({ items }) => items > 0);
  const paid = withItems.filter(({ maxCharged }) => maxCharged > 0);
  if (paid.length === 0) return withItems.some(({ items }) => items >= size) ? 0 : Infinity;
  return Math.min(...paid.map(({ maxCharged, items }) => maxCharged * Math.ceil(size / items)));
}

/** The group sizes of price rules that charge for each started group of items. */
const groupSizes = [1, 2, 5, 10, 20, 25, 50, 100];

/** Computes the bounds of the cost of a page from the price rules. Returns no bounds if no rule explains the charges. */
function computeRuleBounds(table: PriceTable, size: number): [low?: number, high?: number] {
  const full = listFullPages(table);
  if (full.every((page) => page.charged === 0 && page.size < size)) return [];
  const prices = findFittingRules(full).map((rule) => applyRule(rule, size));
  return prices.length === 0 ? [] : [Math.min(...prices), Math.max(...prices)];
}

/** What the service charged for a page that was full. */
interface SizeCharge {
  size: number;
  charged: number;
}

/** Lists the charges of pages that were full. One page alone proves no rule, so at least two pages are required. */
function listFullPages({ bySize }: PriceTable): SizeCharge[] {
  const full = [...bySize].flatMap(([size, { items, charged }]) => (items === size ? [{ size, charged }] : []));
  return full.length < 2 ? [] : full;
}

/** Returns the price rules that explain all charges. If all charges are whole numbers, rules with fractions are left out. */
function findFittingRules(charges: readonly SizeCharge[]): PriceRule[] {
  const [first] = charges;
  if (first === undefined) return [];
  const areWhole = charges.every(({ charged }) => Number.isInteger(charged));
  const perGroup = groupSizes.map((perItems) => ({
    credits: first.charged / Math.ceil(first.size / perItems),
    perItems,
  }));
  return [{ credits: first.charged }, ...perGroup].filter(
    (rule) =>
      charges.every(({ size, charged }) => isNearlyEqual(applyRule(rule, size), charged)) &&
      (!areWhole || Number.isInteger(applyRule(rule, 1))),
  );
}

/** Returns the price of a page by a rule, rounded to six decimals. */
const applyRule = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const isNearlyEqual = (a: number, b: number) => Math.abs(a - b) < 1e-6;

/** Removes one page size from a full table. The page size with the highest charge stays, because it bounds all costs. */
function removeOneSize({ bySize }: PriceTable): void {
  const max = Math.max(...[...bySize.values()].map(({ maxCharged }) => maxCharged));
  for (const [size, { maxCharged }] of bySize) if (maxCharged < max) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const hasLimit = ({ body, query }: PricedRequest) => (body?.limit ?? query.limit) !== undefined;
const hasCursor = ({ body, query }: PricedRequest) => (body?.cursor ?? query.cursor) !== undefined;

/**
 * Returns the number of items that a call requests, or undefined if the number is unknown. A call with a cursor and
 * without `limit` continues with the page size of its first call. That may be any page size in the table, so the largest
 * one is returned.
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

/** Returns whether a request is for a page of a list. */
export const isListRequest = ({ operation }: PricedRequest): boolean => operation.list === true;

const maxListedCharges = 4;

/** Lists the highest charge for each number of returned items, in the order of this number. Only the last few are listed. */
export function listCharges({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const charges = new Map<number, number>();
  for (const { items, charged } of [...(unsized ? [unsized] : []), ...bySize.values()])
    charges.set(items, Math.max(charged, charges.get(items) ?? 0));
  return [...charges]
    .map(([items, charged]) => ({ items, charged }))
    .sort((one, other) => one.items - other.items)
    .slice(-maxListedCharges);
}

/** Returns the highest charge of an operation, or undefined if the operation has charged nothing yet. */
export function getMaxPrice(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && getMaxCharge(table);
}

/** Returns whether an operation costs credits. An ungated operation counts as paid once it has charged credits. */
export const isPaid = ({ gated, name }: Operation, prices: Prices): boolean =>
  gated || (getMaxPrice(prices, name) ?? 0) > 0;

const getMaxCharge = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.maxCharged ?? 0, ...[...bySize.values()].map(({ maxCharged }) => maxCharged));

/** Returns the highest charge of all operations. */
export const getOverallMaxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => getMaxPrice(prices, operation) ?? 0));
