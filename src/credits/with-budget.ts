import { abortedError } from '../api/abort.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Answer, Call, Send } from '../api/send.ts';
import type { CreditLedger, Lease, Settlement } from './credit-ledger.ts';
import { overBudget } from './over-budget.ts';
import { dearestOf, learnPrice, mostOf, type Prices, quote } from './prices.ts';
import { balanceChange, readBalanceBefore } from './untold-charges.ts';

export interface BudgetOptions {
  ledger: CreditLedger;
  /** Undefined: what is spent is written down and not bounded. */
  budget: number | undefined;
}

/** How a call ended: what the service says it charged, `untold` where it may have charged and does not say. */
interface Outcome {
  charged: number | 'untold';
  answer?: Answer;
}

/**
 * Writes down what every call was charged, and keeps what a tenant spends here within a budget, under any number of
 * calls at once: what a call is expected to cost is set aside before it goes out, and settled after. A call whose price
 * is not known goes alone, so that a budget is passed by one such call at most.
 */
export function withBudget(send: Send, { ledger, budget }: BudgetOptions): Send {
  // Questions for the balance are part of the call that has them asked, so nothing bounds them; they may be charged.
  const ask = budget === undefined ? send : withBudget(send, { ledger, budget: undefined });
  return async (call) => {
    const { prices } = await ledger.read(call.tenantId);
    const lease = budget === undefined ? undefined : await admitted(call, { ledger, budget });
    const paid = lease?.paid ?? isPaid(call.operation, prices);
    const isMeasured = lease?.line === paidLine && mayCostMore(call, prices) && !isPaid(operations.getCredits, prices);
    let outcome: Outcome = { charged: 'untold' };
    try {
      if (isMeasured) await readBalanceBefore({ send: ask, call, ledger });
      const answer = await send({ ...call, paid });
      outcome = { answer, charged: chargeOf(answer, paid) };
      return answer;
    } catch (error) {
      outcome = { charged: chargeOfFailure(error, paid) };
      throw error;
    } finally {
      const uncertain = outcome.charged === 'untold' ? await estimate(outcome) : 0;
      // Only a call of unknown fate may still be charged.
      if (isMeasured && outcome.charged !== 'untold') await ledger.readBalance(call.tenantId, undefined);
      await ledger.settle(call.tenantId, settlementOf(call, outcome, uncertain), lease);
    }

    /** A call whose charge nobody states counts as the dearest of its operation, or as what the balance fell by. */
    async function estimate({ answer }: Outcome): Promise<number> {
      const account = await ledger.read(call.tenantId);
      const seen = dearestOf(account.prices, call.operation.name);
      if (budget === undefined) return seen ?? 0;
      if (seen !== undefined && !isMeasured) return Math.max(1, seen, lease?.credits ?? 0);
      const change = isMeasured ? await balanceChange({ send: ask, call, ledger }, answer !== undefined) : undefined;
      if (change !== undefined) return Math.max(change, seen ?? 0);
      // Nobody knows: it counts as the most it can have cost, or the budget is spent.
      return mostOf(account.prices, call) ?? Math.max(1, budget - account.spent - account.uncertain);
    }
  };
}

/**
 * Whether a call may cost more than was ever seen: no charge of its operation was stated, or none for so many items.
 * The balance before and after has to tell then, if nothing else does.
 */
function mayCostMore(call: Call, prices: Prices): boolean {
  const seen = dearestOf(prices, call.operation.name);
  return seen === undefined || (mostOf(prices, call) ?? 0) > seen;
}

/** The line in which paid calls of unknown price go one at a time. */
const paidLine = 'paid';

/** An operation that the document calls free is paid for all the same once it was seen to charge. */
const isPaid = ({ gated, name }: Operation, prices: Prices): boolean => gated || (dearestOf(prices, name) ?? 0) > 0;

/** Waits until the budget lets a call go; throws where its price does not fit. */
async function admitted(call: Call, { ledger, budget }: { ledger: CreditLedger; budget: number }): Promise<Lease> {
  const { tenantId, operation, signal } = call;
  for (;;) {
    const { prices } = await ledger.read(tenantId);
    const quoted = quote(prices, call);
    const paid = isPaid(operation, prices);
    const line = quoted.price !== undefined ? undefined : paid ? paidLine : operation.name;
    const credits = quoted.price ?? quoted.atLeast;
    const admission = await ledger.reserve(tenantId, { budget, credits, paid, line });
    if (admission.kind === 'granted') return admission.lease;
    if (admission.kind === 'refused') throw overBudget({ account: admission.account, budget, quoted, call });
    await ledger.changed(tenantId, admission.version, signal).catch(() => {
      throw abortedError(signal, false);
    });
  }
}

function chargeOf({ receipt: { charged, chargeUnreadable } }: Answer, paid: boolean): Outcome['charged'] {
  if (charged !== null) return charged;
  return paid || chargeUnreadable ? 'untold' : 0;
}

function chargeOfFailure(error: unknown, paid: boolean): Outcome['charged'] {
  if (!(error instanceof AdLibraryError)) return 'untold';
  const { charged, chargeUnreadable } = error.failure;
  if (charged !== undefined) return charged;
  return (paid || chargeUnreadable) && mayBeCharged(error.failure) ? 'untold' : 0;
}

function settlementOf(call: Call, { charged, answer }: Outcome, uncertain: number): Settlement {
  const { operation } = call;
  const stated = charged === 'untold' ? undefined : charged;
  const balance = operation.name === 'getCredits' ? (answer?.value as CreditStatusAnswer | undefined)?.credits : null;
  return {
    charged: stated ?? 0,
    uncertain,
    isPaidAnswer: answer !== undefined && operation.gated,
    remaining: answer?.receipt.remaining ?? balance ?? undefined,
    learn: (prices) => {
      // What a failure was charged is a price, too; for how many items, nobody knows.
      if (stated !== undefined && (answer || stated > 0)) learnPrice(prices, call, answer ?? noItems, stated);
    },
  };
}

const noItems = { value: { items: [] } };
