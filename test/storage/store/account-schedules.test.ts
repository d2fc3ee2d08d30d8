import fc from 'fast-check';
import { test } from 'vitest';
import { accountSchedules, assertOneLedger } from '../../support/account-schedule.ts';
import { describeEveryStore } from '../../support/stores.ts';

/** In a real store, so many happen at once, each to an account of its own. */
const concurrentSchedules = 10;

describeEveryStore('accounts of replicas', (open, { isReal }) => {
  test('are what one ledger would have, in whatever order requests, faults and deaths come', async () => {
    const store = await open();
    const some = fc.array(accountSchedules, { minLength: 1, maxLength: isReal ? concurrentSchedules : 1, size: 'max' });
    const property = fc.asyncProperty(some, async (schedules) => {
      await Promise.all(schedules.map((schedule) => assertOneLedger(schedule, store)));
    });
    await fc.assert(property, { numRuns: isReal ? 8 : 400 });
  });
});
