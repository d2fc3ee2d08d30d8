import type { Answer, Call } from '../api/send.ts';

/** What one operation was seen to cost, by how many items came back; operations of one object count one item. */
export type Prices = Map<string, Map<number, number>>;

/** Page size to reckon with where neither the call nor an earlier page tells one (document, *Limits* 1). */
const assumedPage = 50;

export function learnPrice(prices: Prices, call: Call, { value, receipt }: Answer): void {
  if (receipt.charged === null) return;
  const items = itemsIn(value);
  const seen = prices.get(call.operation.name) ?? new Map<number, number>();
  seen.set(items, receipt.charged);
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
  const bounds = [...seen].map(([items, charged]) => (items === 0 ? Infinity : Math.ceil(wanted / items) * charged));
  const bound = Math.min(...bounds);
  return Number.isFinite(bound) ? bound : undefined;
}

const isList = ({ operation }: Call) => operation.name.startsWith('search') || operation.name.startsWith('list');

function itemsWanted(call: Call, seen: Map<number, number>): number {
  if (!isList(call)) return 1;
  const limit = call.body?.limit ?? call.query.limit;
  return typeof limit === 'number' ? limit : Math.max(assumedPage, ...seen.keys());
}

function itemsIn(value: unknown): number {
  const { items } = value as { items?: unknown };
  return Array.isArray(items) ? items.length : 1;
}

/** The price of an operation in words: "1", or "1 to 5 (by number of items)". */
export function priceText(seen: ReadonlyMap<number, number>): string {
  const charges = [...seen.values()];
  const least = Math.min(...charges);
  const most = Math.max(...charges);
  return least === most ? `${most}` : `${least} to ${most}, by number of items`;
}
