import type { CreditAccount, ReserveRequest } from './credit-ledger.ts';
import { dearest } from './prices.ts';

/** Concurrent paid calls of one tenant, if there is a budget. */
const maxPaidAtOnce = 4;

/** Credits that a budget counts as spent or reserved. */
export const used = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/**
 * The rule of a budget: a call is refused if its credits do not fit beside what is spent and reserved, and waits if only
 * what is reserved to be safe is in its way. Four paid calls may run at once, but only one if less is left than four times the highest price seen: then a price that rises unseen
 * exceeds the budget by the rise of one call at most.
 */
export function admit(account: CreditAccount, { budget, credits, paid }: ReserveRequest): 'now' | 'later' | 'never' {
  const left = budget - used(account);
  if ((credits > 0 || paid) && !fits(credits, left + account.spare)) return 'never';
  if (!paid) return 'now';
  if (!fits(credits, left)) return 'later';
  const maxPaid = fits(maxPaidAtOnce * dearest(account.prices), left) ? maxPaidAtOnce : 1;
  return account.paidUnderWay < maxPaid ? 'now' : 'later';
}

/** Allows for rounding errors in sums of fractions. */
export const fits = (credits: number, left: number): boolean => credits <= left + 1e-6;
