import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCreditAmount, formatRoundedNumber } from '../../src/views/numbers.ts';

test('the function formatRoundedNumber formats any number exactly as toLocaleString does', () => {
  const priceLike = fc.tuple(fc.integer(), fc.constantFrom(1, 4, 8, 1000, 2000)).map(([number, by]) => number / by);
  fc.assert(
    fc.property(fc.oneof(fc.double(), fc.integer(), priceLike), (number) => {
      expect(formatRoundedNumber(number)).toBe(number.toLocaleString('en-US'));
    }),
    { examples: [[0], [-0], [999], [1000], [1_234_567.8915], [1e21], [-0.0001]], numRuns: 1000 },
  );
});

test('the function formatCreditAmount rounds to six decimals', () => {
  const amounts = [0.0004, 1e-6, 1e-7, 12_345.678901, 0.1 + 0.2];
  expect(amounts.map(formatCreditAmount)).toEqual(['0.0004', '0.000001', '0', '12,345.678901', '0.3']);
});
