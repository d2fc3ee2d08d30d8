/**
 * Looks for a schedule under which a promise is not kept: of calls, prices and faults for budgets, of replicas, their
 * requests, faults and deaths for accounts, and of gatherings, other calls, changes, clocks and lost processes for what
 * is paid, held and stated: npm run schedules -- 20000
 */
import fc from 'fast-check';
import type { Store } from '../src/state/ports.ts';
import { type AccountSchedule, accountSchedules, assertOneLedger } from '../test/support/account-schedule.ts';
import { keepsItsPromise, refusesNothingThatFits } from '../test/support/budget-promise.ts';
import { schedules } from '../test/support/credit-schedule.ts';
import { assertGatherings, GatheringServers } from '../test/support/gathering-run.ts';
import { gatheringSchedules } from '../test/support/gathering-schedule.ts';
import { MemoryStore } from '../test/support/memory-store.ts';
import { realStores } from '../test/support/stores.ts';

const count = Number(process.argv[2] ?? 20_000);
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
/** In a real store, so many happen at once, each to an account of its own: most of its time is waiting. */
const atOnce = 40;

async function check<Run>(
  name: string,
  property: fc.IAsyncProperty<[Run]>,
  schedules: number,
  inRun = 1,
): Promise<void> {
  const result = await fc.check(property, { numRuns: Math.ceil(schedules / inRun), seed });
  const { failed, counterexample, errorInstance } = result;
  const cause = errorInstance instanceof Error ? `\n${errorInstance.message}` : '';
  const outcome = failed ? `FAILED ${fc.stringify(counterexample)}${cause}` : 'held';
  process.stdout.write(`${name}: ${outcome} in ${inRun * result.numRuns} schedules (seed ${seed})\n`);
  if (failed) process.exitCode = 1;
}

// A schedule of calls takes a fraction of the time.
const calls = Math.ceil(2.5 * count);
await check('a budget keeps its promise', fc.asyncProperty(schedules(true), keepsItsPromise), calls);
await check('no call that fits is refused', fc.asyncProperty(schedules(false), refusesNothingThatFits), calls);
const ofOneLedger = (store: Store) => (schedule: AccountSchedule) => assertOneLedger(schedule, store);
const inMemory = fc.asyncProperty(accountSchedules, ofOneLedger(new MemoryStore(() => 0)));
await check('accounts are those of one ledger, in memory', inMemory, count);
for (const { name, start } of realStores.filter(({ isInstalled }) => isInstalled)) {
  const server = await start();
  const store = server.open();
  await store.connect();
  const together = fc.array(accountSchedules, { minLength: atOnce, maxLength: atOnce });
  const held = fc.asyncProperty(together, async (some) => void (await Promise.all(some.map(ofOneLedger(store)))));
  await check(`accounts are those of one ledger, ${atOnce} at once in ${name}`, held, count, atOnce);
  await store.close();
  await server.close();
}
const servers = new GatheringServers();
const gatherings = fc.asyncProperty(gatheringSchedules, (schedule) => assertGatherings(schedule, servers));
await check('gatherings keep their promises', gatherings, count);
await servers.close();
