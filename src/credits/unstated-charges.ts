import type { Call, Send } from '../api/send.ts';
import type { AskCredits } from './ask-credits.ts';
import type { CreditLedger, Lease } from './credit-ledger.ts';
import { dearestOf, maxCostOf, type Prices } from './prices.ts';

/** The balance before and after a call, which shows a charge that the service does not state. */
export interface Balance {
  /** Reads it before the call. Counts late charges of an earlier call whose outcome was unknown. */
  readBefore(): Promise<void>;
  /**
   * By how much it has fallen since then, without what other calls were charged; undefined if it cannot be read. After
   * a call without an answer, a reading without a change is kept: the charge may still come.
   */
  change(isAnswered: boolean): Promise<number | undefined>;
  /** Removes the reading: only a call whose outcome is unknown may still be charged. */
  forget(): Promise<void>;
}

export interface BalanceOptions {
  call: Call;
  ledger: CreditLedger;
  send: Send;
  askCredits: AskCredits;
}

export function balanceOf({ call, ledger, send, askCredits }: BalanceOptions): Balance {
  const { tenantId } = call;
  const ask = async () => (await askCredits(send, call))?.credits ?? undefined;
  const forget = async () => void (await ledger.readBalance(tenantId, undefined));
  return {
    async readBefore() {
      const credits = await ask();
      const earlier = await ledger.readBalance(tenantId, credits);
      if (earlier === undefined || credits === undefined) return;
      const late = earlier.credits - credits - earlier.explained;
      if (late > 0) await ledger.settle(tenantId, { charged: 0, uncertain: late, isPaidAnswer: false });
    },
    async change(isAnswered) {
      const credits = await ask();
      const before = await ledger.readBalance(tenantId, credits);
      if (before === undefined || credits === undefined) return undefined;
      const change = Math.max(0, before.credits - credits - before.explained);
      if (change > 0 || isAnswered) await forget();
      return change;
    },
    forget,
  };
}

/**
 * Whether a call may cost more than any seen: no charge of its operation was stated, or none for so many items. Then
 * the balance shows an unstated charge.
 */
export function mayCostMore(call: Call, prices: Prices): boolean {
  const seen = dearestOf(prices, call.operation.name);
  return seen === undefined || (maxCostOf(prices, call) ?? 0) > seen;
}

interface UnstatedCharge {
  call: Call;
  ledger: CreditLedger;
  budget: number | undefined;
  lease: Lease | undefined;
  /** If it was read before the call. */
  balance: Balance | undefined;
  isAnswered: boolean;
}

/** A call without a stated charge counts as the dearest of its operation, or as the change of the balance. */
export async function estimateCharge(charge: UnstatedCharge): Promise<number> {
  const { call, ledger, budget, lease, balance, isAnswered } = charge;
  const account = await ledger.estimate(call.tenantId);
  const seen = dearestOf(account.prices, call.operation.name);
  if (budget === undefined) return seen ?? 0;
  if (seen !== undefined && balance === undefined) return Math.max(1, seen, lease?.credits ?? 0);
  const change = await balance?.change(isAnswered);
  if (change !== undefined) return Math.max(change, seen ?? 0);
  // Without any information, it counts as its maximum cost, or as the rest of the budget.
  return maxCostOf(account.prices, call) ?? Math.max(1, budget - account.spent - account.uncertain);
}
