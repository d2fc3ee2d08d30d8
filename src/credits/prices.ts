import type { Answer, Call } from '../api/call.ts';
import type { Operation } from '../api/operations.ts';

/** The charges seen for calls that asked for a number of items. */
interface SizePrice {
  /** The highest charge of any answer. */
  any: number;
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
  page?: number;
}

/** By operation. The document gives no prices (*Limits*, 6), so all that is known are charges. */
export type Prices = Map<string, PriceTable>;

export interface ExpectedPrice {
  price: number | undefined;
  /** The least it can cost if prices do not fall. */
  atLeast: number;
}

export type PricedCall = Pick<Call, 'operation' | 'query' | 'body' | 'usualSize'>;

/** A price rule that the charges seen follow: credits for each group of items begun, or for a call of any size. */
interface PriceRule {
  credits: number;
  perItems?: number;
}

/** Sizes remembered for one operation. Bounded, because callers choose them. */
const maxSizes = 32;

/**
 * What a stated charge adds to the prices: the same ones, unchanged, if it says nothing new. A free answer that brought or
 * added nothing tells nothing about prices.
 */
export function learnPrice(prices: Prices, call: Call, { value }: Pick<Answer, 'value'>, charged: number): Prices {
  const { operation } = call;
  const { items, hasMore, added } = value as { items?: unknown; hasMore?: unknown; added?: unknown };
  const count = isList(call) && Array.isArray(items) ? items.length : 1;
  if (charged === 0 && (count === 0 || added === false)) return prices;
  const learned = prices.get(operation.name);
  const isUnsizedRest = isContinued(call) && !isSized(call) && !call.usualSize;
  const page = hasMore === true && !isSized(call) && !isUnsizedRest ? count : learned?.page;
  const table: PriceTable = { bySize: new Map(), ...learned, ...(page !== undefined && { page }) };
  const { page: usual = operation.defaultLimit ?? 0 } = table;
  const size = isUnsizedRest && count <= usual ? usual : pageSizeOf(call, table);
  const before = size === undefined ? table.unsized : table.bySize.get(size);
  const after = withCharge(before, { items: Math.min(count, size ?? count), charged });
  if (after === before && page === learned?.page) return prices;
  if (size === undefined) table.unsized = after;
  else table.bySize = new Map([...table.bySize, [size, after]]);
  if (table.bySize.size > maxSizes) forgetOne(table);
  return new Map([...prices, [operation.name, table]]);
}

function withCharge(before: SizePrice | undefined, { items, charged }: Omit<SizePrice, 'any'>): SizePrice {
  if (before === undefined) return { any: charged, items, charged };
  const any = Math.max(charged, before.any);
  const isFuller = items > before.items || (items === before.items && charged > before.charged);
  if (isFuller) return { any, items, charged };
  return any === before.any ? before : { ...before, any };
}

/**
 * The expected cost of a call. A price is known if a full answer of that size was seen, or if all price rules that
 * match the charges seen agree on it. Any other price is unknown.
 */
export function expectedPrice(prices: Prices, call: PricedCall): ExpectedPrice {
  const table = prices.get(call.operation.name);
  const first = call.operation.gated ? 1 : 0;
  if (table === undefined) return { price: undefined, atLeast: first };
  const size = pageSizeOf(call, table);
  if (size === undefined) return { price: undefined, atLeast: table.unsized?.any ?? first };
  const charged = table.bySize.get(size);
  if (charged?.items === size) return { price: charged.any, atLeast: charged.any };
  const smaller = [...table.bySize].filter(([pageSize]) => pageSize <= size).map(([, { any }]) => any);
  const [low, high] = byRules(table, size);
  const atLeast = Math.max(...smaller, smaller.length > 0 ? 0 : first, low ?? 0);
  return { price: high === atLeast ? atLeast : undefined, atLeast };
}

/** What calls cost by the charges seen, in credits. The price is known where both are equal. */
export interface PriceBounds {
  atLeast: number;
  atMost: number;
}

/**
 * What a page of `items` costs, by every charge seen for the operation; undefined if none tells. For readers: budgets
 * reserve by `expectedPrice`.
 */
export function priceBounds(prices: Prices, operation: Operation, items: number): PriceBounds | undefined {
  const { price } = expectedPrice(prices, { operation, query: { limit: items } });
  if (price !== undefined) return { atLeast: price, atMost: price };
  const { bySize, unsized } = prices.get(operation.name) ?? { bySize: new Map<number, SizePrice>() };
  // An answer without items tells nothing about prices, and a free one nothing beyond its size.
  const sized = [...bySize].filter(([, one]) => one.items > 0);
  const came = [...sized.map(([, one]) => one), ...(unsized?.items ? [unsized] : [])];
  const paid = came.filter(({ any }) => any > 0);
  if (paid.length === 0) return came.some((one) => one.items >= items) ? { atLeast: 0, atMost: 0 } : undefined;
  // A page costs no more than as many items in smaller pages, nor than a larger page, and no less than a smaller one.
  const atMost = Math.min(...paid.map((one) => one.any * Math.ceil(items / one.items)));
  const atLeast = Math.max(0, ...sized.flatMap(([size, { any }]) => (size <= items ? any : [])));
  return { atLeast: near(atLeast, atMost) ? atMost : Math.min(atLeast, atMost), atMost };
}

/** Group sizes in price rules that charge for each started group of items. */
const groups = [1, 2, 5, 10, 20, 25, 50, 100];

function byRules(table: PriceTable, size: number): [low?: number, high?: number] {
  const full = fullPages(table);
  if (full.every((page) => page.charged === 0 && page.size < size)) return [];
  const prices = fittingRules(full).map((rule) => priceBy(rule, size));
  return prices.length === 0 ? [] : [Math.min(...prices), Math.max(...prices)];
}

interface SizeCharge {
  size: number;
  charged: number;
}

function fullPages({ bySize }: PriceTable): SizeCharge[] {
  const full = [...bySize].flatMap(([size, { items, charged }]) => (items === size ? [{ size, charged }] : []));
  return full.length < 2 ? [] : full;
}

function fittingRules(charges: readonly SizeCharge[]): PriceRule[] {
  const [first] = charges;
  if (first === undefined) return [];
  const areWhole = charges.every(({ charged }) => Number.isInteger(charged));
  const perGroup = groups.map((perItems) => ({ credits: first.charged / Math.ceil(first.size / perItems), perItems }));
  return [{ credits: first.charged }, ...perGroup].filter(
    (rule) =>
      charges.every(({ size, charged }) => near(priceBy(rule, size), charged)) &&
      (!areWhole || Number.isInteger(priceBy(rule, 1))),
  );
}

const priceBy = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const near = (a: number, b: number) => Math.abs(a - b) < 1e-6;

function forgetOne({ bySize }: PriceTable): void {
  const max = Math.max(...[...bySize.values()].map(({ any }) => any));
  for (const [size, { any }] of bySize) if (any < max) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const isSized = ({ body, query }: PricedCall) => (body?.limit ?? query.limit) !== undefined;
const isContinued = ({ body, query }: PricedCall) => (body?.cursor ?? query.cursor) !== undefined;

/** Items a call asks for. A cursor without a limit keeps the page size it began with, which may be any size seen. */
function pageSizeOf(call: PricedCall, { bySize, page = call.operation.defaultLimit }: PriceTable): number | undefined {
  if (!isList(call)) return 1;
  if (isSized(call)) {
    const limit = call.body?.limit ?? call.query.limit;
    return typeof limit === 'number' && limit >= 1 ? limit : undefined;
  }
  if (!isContinued(call) || (call.usualSize && page !== undefined)) return page;
  const sizes = [...bySize.keys(), ...(page === undefined ? [] : [page])];
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

export const isList = ({ operation }: PricedCall): boolean => operation.list === true;

const maxShown = 4;

export function pricesSeen({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const charges = [...bySize].map(([items, { any }]) => ({ items, charged: any })).sort((a, b) => a.items - b.items);
  const first = unsized === undefined ? [] : [{ items: unsized.items, charged: unsized.any }];
  return [...first, ...charges].slice(-maxShown);
}

export function maxPriceOf(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && maxPriceIn(table);
}

/** An operation that the document does not gate counts as paid once it has charged. */
export const isPaid = ({ gated, name }: Operation, prices: Prices): boolean =>
  gated || (maxPriceOf(prices, name) ?? 0) > 0;

const maxPriceIn = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.any ?? 0, ...[...bySize.values()].map(({ any }) => any));

/** The largest page of the document, taken for a call whose page size is unknown. */
const maxPage = 100;

/**
 * The maximum cost of a call by the charges seen for its operation, if twice the items cost at most twice as much;
 * undefined if no charge was seen that says so.
 */
export function maxCostOf(prices: Prices, call: PricedCall): number | undefined {
  const table = prices.get(call.operation.name);
  if (table === undefined) return undefined;
  const { bySize, unsized } = table;
  const limit = pageSizeOf(call, table);
  const size = limit ?? maxPage;
  const boundsCost = ({ any, items }: SizePrice) => any > 0 || size <= items;
  // An empty answer that was charged was charged for the items it could have held.
  const costs = [...bySize].flatMap(([largest, one]) => {
    if (!boundsCost(one)) return [];
    return one.items === 0 ? one.any * Math.ceil(size / largest) : one.charged * Math.ceil(size / one.items);
  });
  // An empty answer without a limit does not say how many it could have held, but a call like it costs the same.
  if (unsized && unsized.items > 0 && boundsCost(unsized))
    costs.push(unsized.charged * Math.ceil(size / unsized.items));
  else if (unsized?.items === 0 && limit === undefined) costs.push(unsized.any);
  if (costs.length === 0) return undefined;
  return Math.max(maxPriceIn(table), Math.min(...costs));
}

export const maxPrice = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => maxPriceOf(prices, operation) ?? 0));

export function minPriceOf(prices: Prices, operation: string): number {
  const { bySize } = prices.get(operation) ?? { bySize: new Map<number, SizePrice>() };
  return Math.min(...[...bySize.values()].map(({ any }) => any));
}
