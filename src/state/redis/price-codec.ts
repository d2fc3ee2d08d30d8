import type { Prices, PriceTable } from '../../credits/prices.ts';

/** The charges seen, as text. */
export const writePrices = (prices: Prices): string =>
  JSON.stringify([...prices].map(([operation, { bySize, ...rest }]) => [operation, { ...rest, bySize: [...bySize] }]));

export const readPrices = (text: string): Prices =>
  new Map(
    (JSON.parse(text) as [string, Omit<PriceTable, 'bySize'> & { bySize: [number, never][] }][]).map(
      ([operation, table]) => [operation, { ...table, bySize: new Map(table.bySize) }],
    ),
  );
