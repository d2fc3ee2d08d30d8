import type { CreditAccount, ReserveRequest } from './credit-ledger.ts';
import { dearest } from './prices.ts';

/** Paid calls of one tenant under way at once, where there is a budget. */
const maxPaidAtOnce = 4;

/** Credits that a budget counts as gone. */
export const used = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/**
 * The rule of a budget: a call whose credits do not fit beside what is spent and set aside is refused. Four paid calls
 * go at once, and one at a time when less is left than four of the dearest price seen: then a price that rises unseen
 * passes the budget by one call's rise at most.
 */
export function admit(account: CreditAccount, { budget, credits, paid }: ReserveRequest): 'now' | 'later' | 'never' {
  const left = budget - used(account);
  if ((credits > 0 || paid) && !fits(credits, left)) return 'never';
  if (!paid) return 'now';
  const places = fits(maxPaidAtOnce * dearest(account.prices), left) ? maxPaidAtOnce : 1;
  return account.paidUnderWay < places ? 'now' : 'later';
}

/** Sums of fractions are off by a little. */
export const fits = (credits: number, left: number): boolean => credits <= left + 1e-6;
