import type { CreditStatus, UsageLimit } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import type { Caller } from './accounts.ts';
import { ApiError } from './request.ts';

const hour = 3_600_000;
const day = 24 * hour;
const hourOf = (time: number) => Math.floor(time / hour);

export type Meter = ReturnType<typeof meterIn>;

/**
 * Credits. The only record of spending is one table, credits per billing user and hour. The balance and the usage
 * windows are sums over it, so they cannot disagree.
 *
 * Windows follow the clock in UTC: the current hour and the current day. The period is the current calendar month; the
 * balance is full again when it starts.
 */
export function meterIn(database: Database, now: () => number) {
  function spentSince(caller: Caller, since: number): number {
    const sql = 'SELECT coalesce(sum(credits), 0) AS spent FROM spending WHERE billingUserId = ? AND hour >= ?';
    return database.get<{ spent: number }>(sql, [caller.billingUserId, since])?.spent ?? 0;
  }

  function usage(caller: Caller): UsageLimit {
    const { hourlyLimit, dailyLimit, unmetered } = caller;
    const at = now();
    const hourlyCredits = spentSince(caller, hourOf(at));
    const dailyCredits = spentSince(caller, hourOf(at - (at % day)));
    const counted = { hourlyCredits, hourlyLimit, dailyCredits, dailyLimit };
    const limitType = (!unmetered && fullWindow(counted, 0)?.name) || 'none';
    return { isLimitReached: limitType !== 'none', limitType, ...counted };
  }

  function status(caller: Caller): CreditStatus {
    const { planId, billingUserId, creditsMax, subscriptionStatus } = caller;
    const usageLimit = usage(caller);
    if (subscriptionStatus === null) {
      const none = { periodStart: null, periodEnd: null, credits: null, creditsMax: null };
      return { planId, billingUserId, ...none, usageLimit };
    }
    const { start, end } = period(now());
    const credits = Math.max(0, creditsMax - spentSince(caller, hourOf(start)));
    return { planId, billingUserId, periodStart: start / 1000, periodEnd: end / 1000, credits, creditsMax, usageLimit };
  }

  return {
    status,
    /**
     * Takes the whole price or nothing. Call it inside the transaction that produces the answer.
     * @returns credits remaining
     * @throws ApiError 402 without subscription or credits, 429 when a window would overflow
     */
    charge(caller: Caller, credits: number): number {
      const { credits: balance, periodEnd, usageLimit } = status(caller);
      if (balance === null) {
        throw new ApiError(402, 'subscription_required', 'This account has no subscription; the operation needs one.');
      }
      if (balance === 0 || credits > balance) {
        const message =
          balance === 0 ? 'No credits remain' : `This answer costs ${credits} credits and ${balance} remain`;
        const details = { price: credits, credits: balance, periodEnd };
        throw new ApiError(402, 'credits_exhausted', `${message} until the period ends.`, details);
      }
      const full = fullWindow(usageLimit, credits);
      if (full) {
        const { name, length, used, limit } = full;
        const resetsAt = now() - (now() % length) + length;
        const message = `This answer costs ${credits} credits; ${used} of the ${name} limit of ${limit} are used. The window ends at ${new Date(resetsAt).toISOString()}.`;
        const details = { price: credits, usageLimit, resetsAt: resetsAt / 1000 };
        throw new ApiError(429, 'usage_limit_exceeded', message, details);
      }
      if (credits > 0) {
        database.run(
          `INSERT INTO spending VALUES (?, ?, ?)
           ON CONFLICT (billingUserId, hour) DO UPDATE SET credits = credits + excluded.credits`,
          [caller.billingUserId, hourOf(now()), credits],
        );
      }
      return balance - credits;
    },
  };
}

type Counted = Pick<UsageLimit, 'hourlyCredits' | 'hourlyLimit' | 'dailyCredits' | 'dailyLimit'>;

/** The window that has no room for an answer of this price. */
function fullWindow({ hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: Counted, price: number) {
  const windows = [
    { name: 'daily', length: day, used: dailyCredits, limit: dailyLimit },
    { name: 'hourly', length: hour, used: hourlyCredits, limit: hourlyLimit },
  ];
  return windows.find(({ used, limit }) => used >= limit || used + price > limit);
}

/** The calendar month around `at`, in unix milliseconds. */
function period(at: number): { start: number; end: number } {
  const date = new Date(at);
  const start = (month: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1);
  return { start: start(0), end: start(1) };
}
