import type { Answer, Call } from '../api/send.ts';

/** What calls that asked for so many items were charged, at most. */
interface SizePrice {
  /** For whatever came back. */
  any: number;
  /** For an answer that held as many items as were asked for. */
  full?: number;
}

/** What one operation was seen to cost. */
export interface PriceTable {
  /** By the items asked for; an operation that answers with one object asks for one. */
  bySize: Map<number, SizePrice>;
  /** The most a call without a limit was charged while the service's page size is not known, and for how many items. */
  unsized?: { items: number; charged: number };
  /** Items on a full page of a call that gave no limit: the service's own page size. */
  page?: number;
}

/** By operation. The document does not give prices (*Limits*, 6): all that is known is what was charged. */
export type Prices = Map<string, PriceTable>;

/** What a call can be expected to cost. */
export interface Quote {
  /** Undefined where the price of such a call is not known yet. */
  price: number | undefined;
  /** The least it can cost if prices do not fall. */
  atLeast: number;
}

/** Sizes remembered of one operation: a caller chooses them. */
const maxSizes = 32;

/** Learns from a charge that the service stated. A free answer that brought or added nothing says nothing of a price. */
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
 * What a call can be expected to cost. Known is the price of a size that was seen full, and one about which all price
 * rules that fit what was seen agree; anything else has yet to be found out.
 */
export function quote(prices: Prices, call: Call): Quote {
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

/** Items of which a price rule may count the groups begun: the usual ones. */
const groups = [1, 2, 5, 10, 20, 25, 50, 100];

/** The lowest and the highest price of a size by all rules that fit two sizes or more: flat, or for each group begun. */
function byRules({ bySize }: PriceTable, size: number): [low?: number, high?: number] {
  const seen = [...bySize].flatMap(([items, { full }]) => (full === undefined ? [] : [{ items, charged: full }]));
  const [first] = seen;
  if (first === undefined || seen.length < 2) return [];
  const areWhole = seen.every(({ charged }) => Number.isInteger(charged));
  const rules = [() => first.charged, ...groups.map((group) => perGroup(group, first))];
  const fitting = rules.filter(
    (rule) =>
      seen.every(({ items, charged }) => near(rule(items), charged)) && (!areWhole || Number.isInteger(rule(1))),
  );
  const prices = fitting.map((rule) => rule(size));
  return prices.length === 0 ? [] : [Math.min(...prices), Math.max(...prices)];
}

function perGroup(group: number, { items, charged }: { items: number; charged: number }) {
  const each = charged / Math.ceil(items / group);
  return (size: number) => Math.round(Math.ceil(size / group) * each * 1e6) / 1e6;
}

const near = (a: number, b: number) => Math.abs(a - b) < 1e-6;

function forgetOne({ bySize }: PriceTable): void {
  const dearest = Math.max(...[...bySize.values()].map(({ any }) => any));
  for (const [size, { any }] of bySize) if (any < dearest) return void bySize.delete(size);
  bySize.delete([...bySize.keys()][0] ?? 0);
}

const isSized = ({ body, query }: Call) => (body?.limit ?? query.limit) !== undefined;
const goesOn = ({ body, query }: Call) => (body?.cursor ?? query.cursor) !== undefined;

/** Items a call asks for. A cursor without a limit goes on with pages of the size it began with, which may be any seen. */
function sizeOf(call: Call, { bySize, page }: PriceTable): number | undefined {
  if (!isList(call)) return 1;
  if (isSized(call)) {
    const limit = call.body?.limit ?? call.query.limit;
    return typeof limit === 'number' && limit >= 1 ? limit : undefined;
  }
  if (!goesOn(call)) return page;
  const sizes = [...bySize.keys(), ...(page === undefined ? [] : [page])];
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

export const isList = ({ operation }: Call): boolean => operation.list === true;

/** Sizes told of one operation. */
const maxTold = 4;

/** What answers to calls for so many items were charged, the largest last. */
export function pricesSeen({ bySize, unsized }: PriceTable): { items: number; charged: number }[] {
  const seen = [...bySize].map(([items, { any }]) => ({ items, charged: any })).sort((a, b) => a.items - b.items);
  return (unsized === undefined ? seen : [unsized, ...seen]).slice(-maxTold);
}

/** The most calls of one operation were charged so far; undefined where none was. */
export function dearestOf(prices: Prices, operation: string): number | undefined {
  const table = prices.get(operation);
  return table && dearestIn(table);
}

const dearestIn = ({ unsized, bySize }: PriceTable): number =>
  Math.max(unsized?.charged ?? 0, ...[...bySize.values()].map(({ any }) => any));

/**
 * The most a call can cost by what was seen of its operation, where a page of twice the size costs twice as much at
 * most; undefined where nothing was seen.
 */
export function mostOf(prices: Prices, call: Call): number | undefined {
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

/** The most any call was charged so far. */
export const dearest = (prices: Prices): number =>
  Math.max(0, ...[...prices.keys()].map((operation) => dearestOf(prices, operation) ?? 0));

/** The least an operation was charged so far. */
export function cheapestOf(prices: Prices, operation: string): number {
  const { bySize } = prices.get(operation) ?? { bySize: new Map<number, SizePrice>() };
  return Math.min(...[...bySize.values()].map(({ any }) => any));
}
