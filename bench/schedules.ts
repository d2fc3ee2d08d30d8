/**
 * Looks for a schedule of calls, prices and faults under which a budget is passed by more than is promised, or refuses
 * a call that fits: npm run schedules -- 100000
 */
import fc from 'fast-check';
import { keepsItsPromise, refusesNothingThatFits } from '../test/support/budget-promise.ts';
import { schedules } from '../test/support/credit-schedule.ts';

const count = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
for (const [name, faulty, holds] of [
  ['a budget keeps its promise', true, keepsItsPromise],
  ['no call that fits is refused', false, refusesNothingThatFits],
] as const) {
  const result = await fc.check(fc.asyncProperty(schedules(faulty), holds), { numRuns: Math.ceil(count / 2), seed });
  const outcome = result.failed ? `FAILED ${fc.stringify(result.counterexample)}` : 'held';
  process.stdout.write(`${name}: ${outcome} in ${result.numRuns} schedules (seed ${seed})\n`);
  if (result.failed) process.exitCode = 1;
}
