import fc from 'fast-check';
import { test } from 'vitest';
import { keepsItsPromise, refusesNothingThatFits } from '../support/budget-promise.ts';
import { schedules } from '../support/credit-schedule.ts';

/** `npm run schedules` tries a hundred thousand. */
const options = { numRuns: 500 };

test('only one call of unknown price, or a price that rises, can exceed a budget', async () => {
  await fc.assert(fc.asyncProperty(schedules(true), keepsItsPromise), options);
});

test('where charges are stated and nothing fails, every call that fits is sent, and the ledger agrees', async () => {
  await fc.assert(fc.asyncProperty(schedules(false), refusesNothingThatFits), options);
});
