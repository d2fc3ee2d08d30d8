import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  creditSchedules,
  isBudgetRespected,
  isEveryFittingCallAdmitted,
  type Plan,
} from '../support/credit-schedule.ts';

/** Keeps the test fast. `npm run schedules` tries many more schedules. */
const options = { numRuns: 150 };

test('spending exceeds the credit budget only if a price rises or the price of a call is unknown', async () => {
  await fc.assert(fc.asyncProperty(creditSchedules(true), isBudgetRespected), options);
});

test('every call that fits the credit budget is sent if the API reports all charges', async () => {
  await fc.assert(fc.asyncProperty(creditSchedules(false), isEveryFittingCallAdmitted), options);
});

test('the price of an empty page does not lower the expected price of a larger page', async () => {
  const rule = {
    kind: 'byLimit',
    credits: 1,
    hits: 0,
    hasVaryingHits: false,
    reportsCharges: true,
    reportsBalance: false,
  } as const;
  const failed = { fate: 'http 502', isCharged: true } as const;
  const plans: Plan[] = [{ fate: 'answer', isCharged: true }, ...Array.from({ length: 9 }, () => failed)];
  const steps = [undefined, 50, 50, 50].flatMap((limit) => [{ begin: 'search' as const, limit }, { answer: 0 }]);
  expect(await isBudgetRespected({ budget: 5, rule, plans, steps })).toBe(true);
});
