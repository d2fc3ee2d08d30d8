import { type Outcome, type RefusedCall, run, type Schedule } from './credit-schedule.ts';

/** What the README promises of a budget, told of a schedule by the service's own books. */

/**
 * What prices can rise by unseen: while calls are in flight, four of them, each by as much as there were requests
 * before; and with calls whose charge nobody states.
 */
const riseOf = ({ rule }: Schedule, { requests, unseenRise }: Outcome) =>
  rule.kind === 'rising' ? 4 * requests + unseenRise : 0;

/** A charge that comes after the balance was asked for it is noticed one call later. */
const lateOf = ({ plans }: Schedule, maxCharged: number) =>
  plans.some(({ fate }) => fate === 'late') ? maxCharged : 0;

/** Whether a budget is passed by one call of unknown price at most, or by a rise, and four calls go at once. */
export async function keepsItsPromise(schedule: Schedule): Promise<boolean> {
  const outcome = await run(schedule);
  const { charged, maxCharged, maxPaidInFlight } = outcome;
  const most = schedule.budget + Math.max(0, maxCharged - 1) + riseOf(schedule, outcome) + lateOf(schedule, maxCharged);
  return charged <= most && maxPaidInFlight <= 4;
}

/**
 * Prices that rise with each call may look as if they grew with the page, and a page may hold fewer items than it is
 * expected to be charged for. Then a call may be refused that would have fitted, but only if it did not fit at the price
 * expected of it, which the charges so far must allow.
 */
function isMistaken({ rule, budget }: Schedule, { message, maxExpected }: RefusedCall): boolean {
  const figure = (pattern: RegExp) => Number(pattern.exec(message)?.[1] ?? 0);
  const expected = Math.max(1, figure(/cost ([\d.]+?)( or more)?\./));
  const used = figure(/([\d.]+) spent/) + figure(/([\d.]+) counted/) + figure(/([\d.]+) reserved/);
  const isExpectedDearer = rule.kind === 'rising' || rule.kind === 'byItems';
  return isExpectedDearer && used + expected > budget && expected <= maxExpected;
}

/** Whether every call that fits goes, where charges are stated and nothing fails; and the ledger agrees. */
export async function refusesNothingThatFits(schedule: Schedule): Promise<boolean> {
  const { charged, counted, refused } = await run(schedule);
  const wrong = refused.filter((call) => call.fits && !isMistaken(schedule, call));
  return !schedule.rule.statesCharges || (wrong.length === 0 && counted === charged);
}
