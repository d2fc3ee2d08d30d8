import fc from 'fast-check';

/**
 * Generates pricing rules: a price per group of items, per call, or both. A rule counts either the requested or the
 * returned items. With 0 credits, all calls are free.
 */
export const priceRules = fc
  .record({
    credits: fc.constantFrom<number[]>(0, 1, 1, 3),
    perItems: fc.oneof(fc.constantFrom(1, 5, 10, 1000), fc.integer({ min: 2, max: 60 })),
    fee: fc.constantFrom(0, 0, 2),
    least: fc.constantFrom(0, 0, 2, 4),
    isByAsked: fc.boolean(),
    isEmptyFree: fc.boolean(),
  })
  .map((price) => (price.credits === 0 ? { ...price, fee: 0, least: 0 } : price));
/** A pricing rule of the API, for property-based tests. */
export type PriceRule = typeof priceRules extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns the charge of a call in credits. */
export const computeCharge = (
  { credits, perItems, fee, least, isByAsked, isEmptyFree }: PriceRule,
  itemCount: number,
  requestedLimit: number,
) =>
  itemCount === 0 && isEmptyFree
    ? 0
    : Math.max(least, fee + Math.ceil((isByAsked ? requestedLimit : itemCount) / perItems) * credits);
