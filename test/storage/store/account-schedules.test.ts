import fc from 'fast-check';
import { test } from 'vitest';
import { accountSchedules, assertOneLedger } from '../../support/account-schedule.ts';
import { describeEveryStore } from '../../support/stores.ts';

/** The number of schedules that run concurrently in a shared store, each with its own account. */
const concurrentSchedules = 10;

describeEveryStore('The credit ledger in the shared store', (open, { isReal }) => {
  test('the credits spent by several replicas always equal those of a single ledger, for any order of requests and failures', async () => {
    const store = await open();
    const someSchedules = fc.array(accountSchedules, {
      minLength: 1,
      maxLength: isReal ? concurrentSchedules : 1,
      size: 'max',
    });
    const property = fc.asyncProperty(someSchedules, async (schedules) => {
      await Promise.all(schedules.map((schedule) => assertOneLedger(schedule, store)));
    });
    await fc.assert(property, { numRuns: isReal ? 8 : 400 });
  });
});
