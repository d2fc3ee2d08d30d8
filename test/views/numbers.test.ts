import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRounded } from '../../src/views/numbers.ts';

test('the function formatRounded formats any number exactly as toLocaleString does', () => {
  const priceLike = fc.tuple(fc.integer(), fc.constantFrom(1, 4, 8, 1000, 2000)).map(([number, by]) => number / by);
  fc.assert(
    fc.property(fc.oneof(fc.double(), fc.integer(), priceLike), (number) => {
      expect(formatRounded(number)).toBe(number.toLocaleString('en-US'));
    }),
    { examples: [[0], [-0], [999], [1000], [1_234_567.8915], [1e21], [-0.0001]], numRuns: 1000 },
  );
});
