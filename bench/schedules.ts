/**
 * Tests the server with random sequences of events, called schedules (property-based testing). The program searches for
 * a schedule that violates a guarantee of the server. Budget schedules consist of calls, prices and faults. Account
 * schedules consist of replicas (server processes), their requests, faults and crashes. Gathering schedules consist of
 * `gather_ads` calls, other calls, changed ads, clock changes and lost processes.
 *
 * The schedules are distributed over all processors: `npm run schedules -- 20000`. Account schedules run separately in
 * each installed store: `npm run schedules:stores -- 20000`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { MemoryStore } from '../src/storage/drivers/memory.ts';
import type { Store } from '../src/storage/storage.ts';
import { type AccountSchedule, accountSchedules, assertOneLedger } from '../test/support/account-schedule.ts';
import { creditSchedules, isBudgetRespected, isEveryFittingCallAdmitted } from '../test/support/credit-schedule.ts';
import { assertGatherings, GatheringServers, gatheringSchedules } from '../test/support/gathering-schedule.ts';
import { sharedStores } from '../test/support/stores.ts';

const { values: optionValues, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, stores: { type: 'boolean' }, alone: { type: 'boolean' } },
});
const scheduleCount = Number(positionals[0] ?? 20_000);
const seed = Number(optionValues.seed ?? Date.now() % 2 ** 31);
const processCount = availableParallelism();
/**
 * The number of schedules (random sequences of calls and failures) that run at the same time in a real store. Each
 * schedule uses a separate credit account, and spends most of its time waiting for the store.
 */
const concurrentScheduleCount = 40;

const createLedgerCheck = (store: Store) => (schedule: AccountSchedule) => assertOneLedger(schedule, store);

if (optionValues.stores) await checkInRealStores();
else if (optionValues.alone) await checkInMemory();
else await runInAllProcesses();

async function checkProperty<Run>(
  name: string,
  property: fc.IAsyncProperty<[Run]>,
  schedulesPerRun = 1,
): Promise<void> {
  const result = await fc.check(property, { numRuns: Math.ceil(scheduleCount / schedulesPerRun), seed });
  const { failed, counterexample, errorInstance } = result;
  const cause = errorInstance instanceof Error ? `\n${errorInstance.message}` : '';
  const outcome = failed ? `FAILED ${fc.stringify(counterexample)}${cause}` : 'held';
  process.stdout.write(`${name}: ${outcome} in ${schedulesPerRun * result.numRuns} schedules (seed ${seed})\n`);
  if (failed) process.exitCode = 1;
}

/** Runs the schedules in as many processes as the machine has processors. Each process uses a different random seed. */
async function runInAllProcesses(): Promise<void> {
  const startTime = performance.now();
  const schedulesPerProcess = `${Math.ceil(scheduleCount / processCount)}`;
  const children = Array.from({ length: processCount }, (_, processIndex) =>
    fork(fileURLToPath(import.meta.url), [schedulesPerProcess, '--alone', '--seed', `${seed + processIndex}`]),
  );
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]));
  if (codes.some((code) => code !== 0)) process.exitCode = 1;
  process.stdout.write(
    `${((performance.now() - startTime) / 60_000).toFixed(1)} minutes in ${processCount} processes\n`,
  );
}

async function checkInMemory(): Promise<void> {
  await checkProperty('a budget is respected', fc.asyncProperty(creditSchedules(true), isBudgetRespected));
  await checkProperty(
    'every call that fits is admitted',
    fc.asyncProperty(creditSchedules(false), isEveryFittingCallAdmitted),
  );
  const accounts = fc.asyncProperty(accountSchedules, createLedgerCheck(new MemoryStore(() => 0)));
  await checkProperty('accounts equal those of a single ledger', accounts);
  // Start new servers after every 500 schedules. Otherwise the data that the servers store would fill the memory.
  let [servers, scheduleNumber] = [new GatheringServers(), 0];
  const gatheringProperty = fc.asyncProperty(gatheringSchedules, async (schedule) => {
    if (++scheduleNumber % 500 === 0) {
      await servers.close();
      servers = new GatheringServers();
    }
    await assertGatherings(schedule, servers);
  });
  await checkProperty('gatherings are paid once and stated correctly', gatheringProperty);
  await servers.close();
}

async function checkInRealStores(): Promise<void> {
  for (const { name, start } of sharedStores.filter(({ isInstalled }) => isInstalled)) {
    const server = await start();
    const store = server.open();
    await store.connect();
    const concurrentAccountSchedules = fc.array(accountSchedules, {
      minLength: concurrentScheduleCount,
      maxLength: concurrentScheduleCount,
    });
    const property = fc.asyncProperty(
      concurrentAccountSchedules,
      async (accountSchedulesOfRun) => void (await Promise.all(accountSchedulesOfRun.map(createLedgerCheck(store)))),
    );
    await checkProperty(
      `accounts equal those of a single ledger, ${concurrentScheduleCount} concurrently in ${name}`,
      property,
      concurrentScheduleCount,
    );
    await store.close();
    await server.close();
  }
}
