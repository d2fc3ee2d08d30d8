import fc from 'fast-check';
import { afterAll, test } from 'vitest';
import { assertGatherings, GatheringServers, gatheringSchedules } from '../../support/gathering-schedule.ts';

const servers = new GatheringServers();
afterAll(() => servers.close());

/** Keeps the test fast. `npm run schedules` tries twenty thousand schedules. */
const options = { numRuns: 60 };

test('gather_ads pays for each page only once, whatever the order of requests, failures and restarts', async () => {
  const property = fc.asyncProperty(gatheringSchedules, (schedule) => assertGatherings(schedule, servers));
  await fc.assert(property, options);
}, 180_000);
