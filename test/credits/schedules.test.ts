import fc from 'fast-check';
import { test } from 'vitest';
import { keepsItsPromise, refusesNothingThatFits } from '../support/budget-promise.ts';
import { schedules } from '../support/credit-schedule.ts';

/** `npm run schedules` tries a hundred thousand. */
const options = { numRuns: 500 };

test('a budget is passed by one call of unknown price at most, or by a rise, whatever is called and fails', async () => {
  await fc.assert(fc.asyncProperty(schedules(true), keepsItsPromise), options);
});

test('where charges are stated and nothing fails, no call that fits is refused, and the ledger agrees', async () => {
  await fc.assert(fc.asyncProperty(schedules(false), refusesNothingThatFits), options);
});
