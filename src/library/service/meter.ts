import type { CreditStatus, UsageLimit } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import type { Caller } from './accounts.ts';
import { ApiError } from './request.ts';

const hourLength = 3_600_000;
const hoursPerDay = 24;

export type Meter = ReturnType<typeof meterIn>;

/**
 * Credits. The only record of spending is one table, credits per billing user and hour. The balance and the usage
 * windows are sums over it, so they cannot disagree.
 *
 * Windows follow the clock in UTC: the current hour and the current day. The period is the current calendar month; the
 * balance is full again when it starts.
 */
export function meterIn(database: Database, now: () => number) {
  function spentSince(caller: Caller, hour: number): number {
    const sql = 'SELECT coalesce(sum(credits), 0) AS spent FROM spending WHERE billingUserId = ? AND hour >= ?';
    return database.get<{ spent: number }>(sql, [caller.billingUserId, hour])?.spent ?? 0;
  }

  function usage(caller: Caller): UsageLimit {
    const hour = Math.floor(now() / hourLength);
    const hourlyCredits = spentSince(caller, hour);
    const dailyCredits = spentSince(caller, hour - (hour % hoursPerDay));
    const { hourlyLimit, dailyLimit, unmetered } = caller;
    const limitType = unmetered
      ? 'none'
      : dailyCredits >= dailyLimit
        ? 'daily'
        : hourlyCredits >= hourlyLimit
          ? 'hourly'
          : 'none';
    return { isLimitReached: limitType !== 'none', limitType, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit };
  }

  function status(caller: Caller): CreditStatus {
    const { planId, billingUserId, creditsMax, subscriptionStatus } = caller;
    const usageLimit = usage(caller);
    if (subscriptionStatus === null) {
      const none = { periodStart: null, periodEnd: null, credits: null, creditsMax: null };
      return { planId, billingUserId, ...none, usageLimit };
    }
    const { start, end } = period(now());
    const credits = Math.max(0, creditsMax - spentSince(caller, start / hourLength));
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
      throwIfOverLimit(usageLimit, credits, now());
      if (credits > 0) {
        database.run(
          `INSERT INTO spending VALUES (?, ?, ?)
           ON CONFLICT (billingUserId, hour) DO UPDATE SET credits = credits + excluded.credits`,
          [caller.billingUserId, Math.floor(now() / hourLength), credits],
        );
      }
      return balance - credits;
    },
  };
}

function throwIfOverLimit(usageLimit: UsageLimit, price: number, at: number): void {
  const { hourlyCredits, hourlyLimit, dailyCredits, dailyLimit } = usageLimit;
  const full = (used: number, limit: number) => used >= limit || used + price > limit;
  const daily = full(dailyCredits, dailyLimit);
  if (!daily && !full(hourlyCredits, hourlyLimit)) return;
  const window = daily ? hourLength * hoursPerDay : hourLength;
  const [name, used, limit] = daily ? ['daily', dailyCredits, dailyLimit] : ['hourly', hourlyCredits, hourlyLimit];
  const resetsAt = (Math.floor(at / window) + 1) * window;
  const message = `This answer costs ${price} credits; ${used} of the ${name} limit of ${limit} are used. The window ends at ${new Date(resetsAt).toISOString()}.`;
  throw new ApiError(429, 'usage_limit_exceeded', message, { price, usageLimit, resetsAt: resetsAt / 1000 });
}

/** The calendar month around `at`, in unix milliseconds. */
function period(at: number): { start: number; end: number } {
  const date = new Date(at);
  const start = (month: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1);
  return { start: start(0), end: start(1) };
}
