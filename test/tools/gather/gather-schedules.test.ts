import fc from 'fast-check';
import { afterAll, test } from 'vitest';
import { assertGatherings, GatheringServers, gatheringSchedules } from '../../support/gathering-schedule.ts';

const servers = new GatheringServers();
afterAll(() => servers.close());

/** A few, to see that they run: `npm run schedules` tries twenty thousand. */
const options = { numRuns: 60 };

test('whatever happens in which order, pages are paid once, complete is held, and what is stated agrees', async () => {
  const property = fc.asyncProperty(gatheringSchedules, (schedule) => assertGatherings(schedule, servers));
  await fc.assert(property, options);
}, 180_000);
