import type { Answer, Call } from '../api/send.ts';

/** What one operation was seen to cost. */
export interface Seen {
  /** The most an answer of so many items was charged; an operation that answers with one object counts as one item. */
  bySize: Map<number, number>;
  /** Items on a full page of a call that gave no limit: the service's own page size. */
  page?: number;
}

/** By operation. */
export type Prices = Map<string, Seen>;

export const emptyPrices = (): Prices => new Map();

/** Page size to reckon with where neither the call nor an earlier page tells one (document, *Limits* 1). */
const assumedPage = 50;

export function learnPrice(prices: Prices, call: Call, { value, receipt: { charged } }: Answer): void {
  if (charged === null || !call.operation.gated) return;
  const { items, hasMore } = value as { items?: unknown; hasMore?: unknown };
  const size = Array.isArray(items) ? items.length : 1;
  const seen: Seen = prices.get(call.operation.name) ?? { bySize: new Map() };
  seen.bySize.set(size, Math.max(charged, seen.bySize.get(size) ?? 0));
  if (hasMore === true && limitOf(call) === undefined) seen.page = size;
  prices.set(call.operation.name, seen);
}

/**
 * The most a call can cost, from what the operation was seen to cost; undefined where nothing is known yet.
 *
 * The document does not give prices. Whatever follows the number of items without growing faster than it costs at
 * most as much as enough pages of a size seen before, so the cheapest such reckoning is a bound.
 */
export function expectedPrice(prices: Prices, call: Call): number | undefined {
  const seen = prices.get(call.operation.name);
  if (seen === undefined) return undefined;
  const wanted = itemsWanted(call, seen);
  const bounds = [...seen.bySize].map(([size, charged]) =>
    size === 0 ? Infinity : Math.ceil(wanted / size) * charged,
  );
  const bound = Math.min(...bounds);
  return Number.isFinite(bound) ? bound : undefined;
}

/** A call's `limit`, where it may have one and has. */
function limitOf({ body, query }: Call): number | undefined {
  const limit = body?.limit ?? query.limit;
  return typeof limit === 'number' ? limit : undefined;
}

export const isList = ({ operation }: Call): boolean => operation.list === true;

/** A cursor goes on with pages of the size it began with, which may be any size seen. */
function itemsWanted(call: Call, { bySize, page }: Seen): number {
  if (!isList(call)) return 1;
  const limit = limitOf(call);
  if (limit !== undefined) return limit;
  const goesOn = (call.body?.cursor ?? call.query.cursor) !== undefined;
  const largest = Math.max(page ?? assumedPage, ...bySize.keys());
  return goesOn ? largest : (page ?? largest);
}

/** What answers of how many items were charged, the largest last; an empty answer tells nothing of a price. */
export function pricesSeen({ bySize }: Seen): { items: number; charged: number }[] {
  const seen = [...bySize].filter(([items]) => items > 0).map(([items, charged]) => ({ items, charged }));
  return seen.sort((a, b) => a.items - b.items).slice(-mostTold);
}

/** Sizes told of one operation. */
const mostTold = 4;

/** The least an operation was charged so far. */
export function lowestPrice(prices: Prices, { operation }: Call): number {
  return Math.min(...(prices.get(operation.name)?.bySize.values() ?? []));
}

/** The most any call was charged so far. */
export function highestPrice(prices: Prices): number {
  return Math.max(0, ...[...prices.values()].flatMap(({ bySize }) => [...bySize.values()]));
}
