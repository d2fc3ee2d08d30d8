import fc from 'fast-check';

/**
 * Generates pricing rules: a price per group of items, per call, or both. A rule counts either the requested or the
 * returned items. If `pricePerGroup` is 0, all calls are free.
 */
export const priceRules = fc
  .record({
    pricePerGroup: fc.constantFrom<number[]>(0, 1, 1, 3),
    groupSize: fc.oneof(fc.constantFrom(1, 5, 10, 1000), fc.integer({ min: 2, max: 60 })),
    pricePerCall: fc.constantFrom(0, 0, 2),
    minPrice: fc.constantFrom(0, 0, 2, 4),
    countsRequestedItems: fc.boolean(),
    isEmptyFree: fc.boolean(),
  })
  .map((price) => (price.pricePerGroup === 0 ? { ...price, pricePerCall: 0, minPrice: 0 } : price));
/** A pricing rule of the API, for property-based tests. */
export type PriceRule = typeof priceRules extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns the charge of a call in credits. */
export const computeCharge = (
  { pricePerGroup, groupSize, pricePerCall, minPrice, countsRequestedItems, isEmptyFree }: PriceRule,
  itemCount: number,
  requestedLimit: number,
) =>
  itemCount === 0 && isEmptyFree
    ? 0
    : Math.max(
        minPrice,
        pricePerCall + Math.ceil((countsRequestedItems ? requestedLimit : itemCount) / groupSize) * pricePerGroup,
      );
