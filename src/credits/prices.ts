import type { Answer, Receipt, ServiceRequest } from '../api/call.ts';
import type { Operation } from '../api/operations.ts';

/** The charges seen for calls that asked for a number of items. */
interface SizePrice {
  /** The highest charge of any answer. */
  maxCharged: number;
  /** The items of the fullest answer, and its charge. */
  items: number;
  charged: number;
}

export interface PriceTable {
  /** By the number of items asked for, which is 1 for operations that return one object. */
  bySize: Map<number, SizePrice>;
  /** For calls without a limit while the service's page size is unknown. */
  unsized?: SizePrice;
  /** The service's default page size. */
  defaultPageSize?: number;
}

/** The charges seen, by operation. The document gives no prices (*Limits*, 6), so nothing else is known about them. */
export type Prices = Map<string, PriceTable>;

/** The parts of a request on which its price depends. */
export type PricedRequest = Pick<ServiceRequest, 'operation' | 'query' | 'body' | 'hasDefaultSize'>;

/** A price rule that the charges seen follow: credits for each group of items begun, or for a call of any size. */
interface PriceRule {
  credits: number;
  perItems?: number;
}

/** Sizes remembered for one operation. Bounded, because callers choose them. */
const maxStoredSizes = 32;

/** The part of an answer that tells what was charged for. */
export interface PricedAnswer extends Pick<Answer, 'value'> {
  receipt?: Pick<Receipt, 'unusable'>;
}

/**
 * Adds a stated charge to the prices. Returns the same prices, unchanged, if the charge says nothing new. A free answer
 * that brought or added nothing tells nothing about prices.
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

function mergeCharge(before: SizePrice | undefined, { items, charged }: Omit<SizePrice, 'maxCharged'>): SizePrice {
  if (before === undefined) return { maxCharged: charged, items, charged };
  const maxCharged = Math.max(charged, before.maxCharged);
  const isFuller = items > before.items || (items === before.items && charged > before.charged);
  if (isFuller) return { maxCharged, items, charged };
  return maxCharged === before.maxCharged ? before : { ...before, maxCharged };
}

/** The lowest and the highest cost of a call in credits. The price is known where both are equal. */
export interface PriceBounds {
  atLeast: number;
  /** Infinity if no charge says what the call may cost at most. */
  atMost: number;
}

export const isExactPrice = ({ atLeast, atMost }: PriceBounds): boolean => atLeast === atMost;

/** Returns the bounds of what a call costs, by every charge seen for its operation. */
export const computeRequestBounds = (prices: Prices, request: PricedRequest): PriceBounds =>
  computePriceBounds(prices, request.operation, getPageSize(request, prices.get(request.operation.name)));

/**
 * Returns the bounds of what a page of `size` items costs, by every charge seen for the operation. The price is known
 * if a full page of that size was charged, or if all price rules that fit every full page agree.
 * @param size undefined for a page of unknown size, which costs no more than the largest page of the document
 */
export function computePriceBounds(prices: Prices, operation: Operation, size: number | undefined): PriceBounds {
  const table = prices.get(operation.name);
  const lowest = operation.gated ? 1 : 0;
  if (table === undefined) return { atLeast: lowest, atMost: Infinity };
  if (size === undefined)
    return {
      atLeast: table.unsized?.maxCharged ?? lowest,
      atMost: Math.max(getMaxCharge(table), computeHighestCost(table, maxPageSize)),
    };
  const charged = table.bySize.get(size);
  if (charged?.items === size) return { atLeast: charged.maxCharged, atMost: charged.maxCharged };
  // A page costs no less than a smaller one.
  const smaller = [...table.bySize].filter(([pageSize]) => pageSize <= size).map(([, { maxCharged }]) => maxCharged);
  const [lowByRules = 0, highByRules] = computeRuleBounds(table, size);
  const atLeast = Math.max(...smaller, smaller.length > 0 ? 0 : lowest, lowByRules);
  if (highByRules === atLeast) return { atLeast, atMost: atLeast };
  const atMost = computeHighestCost(table, size);
  return { atLeast: isNearlyEqual(atLeast, atMost) ? atMost : Math.min(atLeast, atMost), atMost };
}

/**
 * Returns the highest cost of a page. A page costs no more than as many items in smaller pages, nor than a larger page.
 * An answer without items says nothing about prices, and a free one says nothing beyond its size.
 */
function computeHighestCost({ bySize, unsized }: PriceTable, size: number): number {
  const withItems = [...bySize.values(), ...(unsized ? [unsized] : [])].filter(({ items }) => items > 0);
  const paid = withItems.filter(({ maxCharged }) => maxCharged > 0);
  if (paid.length === 0) return withItems.some(({ items }) => items >= size) ? 0 : Infinity;
  return Math.min(...paid.map(({ maxCharged, items }) => maxCharged * Math.ceil(size / items)));
}

/** Group sizes in price rules that charge for each started group of items. */
const groupSizes = [1, 2, 5, 10, 20, 25, 50, 100];

function computeRuleBounds(table: PriceTable, size: number): [low?: number, high?: number] {
  const full = listFullPages(table);
  if (full.every((page) => page.charged === 0 && page.size < size)) return [];
  const prices = findFittingRules(full).map((rule) => applyRule(rule, size));
  return prices.length === 0 ? [] : [Math.min(...prices), Math.max(...prices)];
}

interface SizeCharge {
  size: number;
  charged: number;
}

function listFullPages({ bySize }: PriceTable): SizeCharge[] {
  const full = [...bySize].flatMap(([size, { items, charged }]) => (items === size ? [{ size, charged }] : []));
  return full.length < 2 ? [] : full;
}

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

const applyRule = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const isNearlyEqual = (a: number, b: number) => Math.abs(a - b) < 1e-6;

function removeOneSize({ bySize }: PriceTable): void {
  const max = Math.max(...[...bySize.values()].map(({ maxCharged }) => maxCharged));
  for (const [size, { maxCharged }] of bySize) if (maxCharged < max) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const hasLimit = ({ body, query }: PricedRequest) => (body?.limit ?? query.limit) !== undefined;
const hasCursor = ({ body, query }: PricedRequest) => (body?.cursor ?? query.cursor) !== undefined;

/** Items a call asks for. A cursor without a limit keeps the page size it began with, which may be any size seen. */
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

export const isListRequest = ({ operation }: PricedRequest): boolean => operation.list === true;

const maxListedCharges = 4;

/** Returns the charges that were seen, each for the number of items that came, the largest answers last. */
export function listCharges({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const charges = new Map<number, number>();
  for (const { items, charged } of [...(unsized ? [unsized] : []), ...bySize.values()])
    charges.set(items, Math.max(charged, charges.get(items) ?? 0));
  return [...charges]
    .map(([items, charged]) => ({ items, charged }))
    .sort((one, other) => one.items - other.items)
    .slice(-maxListedCharges);
}

export function getMaxPrice(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && getMaxCharge(table);
}

/** An operation that the document does not gate counts as paid once it has charged. */
export const isPaid = ({ gated, name }: Operation, prices: Prices): boolean =>
  gated || (getMaxPrice(prices, name) ?? 0) > 0;

const getMaxCharge = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.maxCharged ?? 0, ...[...bySize.values()].map(({ maxCharged }) => maxCharged));

/** The largest page of the document, which bounds the cost of a call whose page size is unknown. */
const maxPageSize = 100;

export const getOverallMaxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => getMaxPrice(prices, operation) ?? 0));
