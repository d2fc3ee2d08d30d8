import { run, type Schedule } from './credit-schedule.ts';

/** What the README promises of a budget, told of a schedule by the service's own books. */

/**
 * What prices can rise by unseen: while calls are under way, four of them, each by as much as there were calls before;
 * and with calls whose charge nobody states.
 */
const riseOf = ({ rule, steps }: Schedule, unseenRise: number) =>
  rule.kind === 'rising' ? 4 * steps.filter((step) => 'begin' in step).length + unseenRise : 0;

/** A charge that comes after the balance was asked for it is noticed one call later. */
const lateOf = ({ plans }: Schedule, dearest: number) => (plans.some(({ fate }) => fate === 'late') ? dearest : 0);

/** Whether a budget is passed by one call of unknown price at most, or by a rise, and four calls go at once. */
export async function keepsItsPromise(schedule: Schedule): Promise<boolean> {
  const { charged, dearest, unseenRise, maxPaidUnderWay } = await run(schedule);
  const most = schedule.budget + Math.max(0, dearest - 1) + riseOf(schedule, unseenRise) + lateOf(schedule, dearest);
  return charged <= most && maxPaidUnderWay <= 4;
}

/** Prices that rise with each call may look as if they grew with the page, and such a page is then expected to be dear. */
const isMistaken = ({ rule }: Schedule, refused: string) => rule.kind === 'rising' && refused.startsWith('search');

/** Whether every call that fits goes, where charges are stated and nothing fails; and the ledger agrees. */
export async function refusesNothingThatFits(schedule: Schedule): Promise<boolean> {
  const { charged, counted, wronglyRefused } = await run(schedule);
  const wrong = wronglyRefused.filter((refused) => !isMistaken(schedule, refused));
  return !schedule.rule.statesCharges || (wrong.length === 0 && counted === charged);
}
