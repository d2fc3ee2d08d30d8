import type { Answer, Call } from '../api/send.ts';

/** The highest charges seen for calls that asked for a number of items. */
interface SizePrice {
  /** For any answer. */
  any: number;
  /** For an answer that held as many items as were asked for. */
  full?: number;
}

/** The charges seen for one operation. */
export interface PriceTable {
  /** By the number of items asked for, which is 1 for operations that return one object. */
  bySize: Map<number, SizePrice>;
  /** The highest charge of a call without a limit, and its items, while the service's page size is unknown. */
  unsized?: { items: number; charged: number };
  /** The service's default page size. */
  page?: number;
}

/** By operation. The document gives no prices (*Limits*, 6), so all that is known are charges. */
export type Prices = Map<string, PriceTable>;

/** The expected cost of a call. */
export interface Quote {
  /** Undefined if the price of such a call is not known yet. */
  price: number | undefined;
  /** The least it can cost if prices do not fall. */
  atLeast: number;
}

/** The part of a call that its price depends on. */
export type PricedCall = Pick<Call, 'operation' | 'query' | 'body'>;

/** A price rule that the charges seen follow: credits for each group of items begun, or for a call of any size. */
export interface PriceRule {
  credits: number;
  perItems?: number;
}

/** Sizes remembered for one operation. Bounded, because callers choose them. */
const maxSizes = 32;

/** Learns from a stated charge. A free answer that brought or added nothing tells nothing about prices. */
export function learnPrice(prices: Prices, call: Call, { value }: Pick<Answer, 'value'>, charged: number): void {
  const { items, hasMore, added } = value as { items?: unknown; hasMore?: unknown; added?: unknown };
  const count = isList(call) && Array.isArray(items) ? items.length : 1;
  if (charged === 0 && (count === 0 || added === false)) return;
  const table: PriceTable = prices.get(call.operation.name) ?? { bySize: new Map() };
  prices.set(call.operation.name, table);
  if (hasMore === true && !isSized(call)) table.page = count;
  const size = sizeOf(call, table);
  if (size === undefined) {
    if (charged >= (table.unsized?.charged ?? 0)) table.unsized = { items: count, charged };
    return;
  }
  const seen = table.bySize.get(size) ?? { any: 0 };
  seen.any = Math.max(charged, seen.any);
  if (count >= size) seen.full = Math.max(charged, seen.full ?? 0);
  table.bySize.set(size, seen);
  if (table.bySize.size > maxSizes) forgetOne(table);
}

/**
 * The expected cost of a call. A price is known if a full answer of that size was seen, or if all price rules that
 * match the charges seen agree on it. Any other price is unknown.
 */
export function quote(prices: Prices, call: PricedCall): Quote {
  const table = prices.get(call.operation.name);
  const first = call.operation.gated ? 1 : 0;
  if (table === undefined) return { price: undefined, atLeast: first };
  const size = sizeOf(call, table);
  if (size === undefined) return { price: undefined, atLeast: table.unsized?.charged ?? first };
  const seen = table.bySize.get(size);
  if (seen?.full !== undefined) return { price: Math.max(seen.any, seen.full), atLeast: seen.any };
  const smaller = [...table.bySize].filter(([known]) => known <= size).map(([, { any }]) => any);
  const [low, high] = byRules(table, size);
  const atLeast = Math.max(...smaller, smaller.length > 0 ? 0 : first, low ?? 0);
  return { price: high === atLeast ? atLeast : undefined, atLeast };
}

/** Group sizes in price rules that charge for each started group of items. */
const groups = [1, 2, 5, 10, 20, 25, 50, 100];

/** The lowest and highest price of a size by all rules that fit. */
function byRules(table: PriceTable, size: number): [low?: number, high?: number] {
  const prices = fittingRules(table).map((rule) => priceBy(rule, size));
  return prices.length === 0 ? [] : [Math.min(...prices), Math.max(...prices)];
}

/** The rule of the charges seen, if only one fits them. */
export function ruleOf(table: PriceTable): PriceRule | undefined {
  const [rule, other] = fittingRules(table);
  return other === undefined ? rule : undefined;
}

/** All rules that match at least two sizes: flat, or per started group. */
function fittingRules({ bySize }: PriceTable): PriceRule[] {
  const seen = [...bySize].flatMap(([items, { full }]) => (full === undefined ? [] : [{ items, charged: full }]));
  const [first] = seen;
  if (first === undefined || seen.length < 2) return [];
  const areWhole = seen.every(({ charged }) => Number.isInteger(charged));
  const perGroup = groups.map((perItems) => ({ credits: first.charged / Math.ceil(first.items / perItems), perItems }));
  return [{ credits: first.charged }, ...perGroup].filter(
    (rule) =>
      seen.every(({ items, charged }) => near(priceBy(rule, items), charged)) &&
      (!areWhole || Number.isInteger(priceBy(rule, 1))),
  );
}

const priceBy = ({ credits, perItems }: PriceRule, size: number): number =>
  Math.round((perItems === undefined ? 1 : Math.ceil(size / perItems)) * credits * 1e6) / 1e6;

const near = (a: number, b: number) => Math.abs(a - b) < 1e-6;

function forgetOne({ bySize }: PriceTable): void {
  const dearest = Math.max(...[...bySize.values()].map(({ any }) => any));
  for (const [size, { any }] of bySize) if (any < dearest) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const isSized = ({ body, query }: PricedCall) => (body?.limit ?? query.limit) !== undefined;
const isContinued = ({ body, query }: PricedCall) => (body?.cursor ?? query.cursor) !== undefined;

/** Items a call asks for. A cursor without a limit keeps the page size it began with, which may be any size seen. */
function sizeOf(call: PricedCall, { bySize, page }: PriceTable): number | undefined {
  if (!isList(call)) return 1;
  if (isSized(call)) {
    const limit = call.body?.limit ?? call.query.limit;
    return typeof limit === 'number' && limit >= 1 ? limit : undefined;
  }
  if (!isContinued(call)) return page;
  const sizes = [...bySize.keys(), ...(page === undefined ? [] : [page])];
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

export const isList = ({ operation }: PricedCall): boolean => operation.list === true;

/** Prices shown for one operation. */
const maxShown = 4;

/** The charges seen by number of items, the largest last. */
export function pricesSeen({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const seen = [...bySize].map(([items, { any }]) => ({ items, charged: any })).sort((a, b) => a.items - b.items);
  return (unsized === undefined ? seen : [unsized, ...seen]).slice(-maxShown);
}

/** The highest charge of an operation so far; undefined if there was none. */
export function dearestOf(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && dearestIn(table);
}

const dearestIn = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.charged ?? 0, ...[...bySize.values()].map(({ any }) => any));

/**
 * The maximum cost of a call by the charges seen for its operation, if a page of twice the size costs at most twice as
 * much; undefined if no charge was seen.
 */
export function maxCostOf(prices: Prices, call: Call): number | undefined {
  const table = prices.get(call.operation.name);
  if (table === undefined) return undefined;
  const seen = dearestIn(table);
  const size = sizeOf(call, table);
  if (size === undefined) return seen;
  const scaled = (known: number, charged: number) => (known === 0 ? charged : charged * Math.ceil(size / known));
  const sizes = [...table.bySize];
  const full = sizes.flatMap(([known, { full }]) => (full === undefined ? [] : [scaled(known, full)]));
  if (full.length > 0) return Math.max(seen, Math.min(...full));
  // Pages that came back half empty say less.
  return Math.max(seen, ...sizes.map(([known, { any }]) => scaled(known, any)));
}

/** The highest charge of any call so far. */
export const dearest = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => dearestOf(prices, operation) ?? 0));

/** The lowest charge of an operation so far. */
export function cheapestOf(prices: Prices, operation: string): number {
  const { bySize } = prices.get(operation) ?? { bySize: new Map<number, SizePrice>() };
  return Math.min(...[...bySize.values()].map(({ any }) => any));
}
