import { abortedError } from '../api/abort.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Answer, Call, Send } from '../api/send.ts';
import type { AskCredits } from './ask-credits.ts';
import type { CreditLedger, Lease, Settlement } from './credit-ledger.ts';
import { overBudget } from './over-budget.ts';
import { isPaid, learnPrice, quote } from './prices.ts';
import { balanceOf, estimateCharge, mayCostMore } from './unstated-charges.ts';

export interface BudgetOptions {
  ledger: CreditLedger;
  /** If undefined, spending is recorded but not bounded. */
  budget: number | undefined;
  askCredits: AskCredits;
}

/** How a call ended: the stated charge, or `unknown` if the service may have charged without stating it. */
interface Outcome {
  charged: number | 'unknown';
  answer?: Answer;
}

/**
 * Records what every call was charged, and keeps a tenant's spending within a budget, even with many calls at once: the
 * expected cost of a call is reserved before it is sent, and settled afterwards. Calls of unknown price run one at a
 * time, so that at most one such call can exceed the budget.
 */
export function withBudget(send: Send, { ledger, budget, askCredits }: BudgetOptions): Send {
  // Reading the balance is part of the call that needs it, so it needs no reservation; but it may be charged.
  const ask = budget === undefined ? send : withBudget(send, { ledger, budget: undefined, askCredits });
  return async (call) => {
    const { prices } = await ledger.read(call.tenantId);
    const lease = budget === undefined ? undefined : await admitted(call, { ledger, budget });
    const paid = lease?.paid ?? isPaid(call.operation, prices);
    const isMeasured = lease?.line === paidLine && mayCostMore(call, prices) && !isPaid(operations.getCredits, prices);
    const balance = isMeasured ? balanceOf({ call, ledger, send: ask, askCredits }) : undefined;
    let outcome: Outcome = { charged: 'unknown' };
    try {
      await balance?.readBefore();
      const answer = await send({ ...call, paid });
      outcome = { answer, charged: chargeOf(answer, paid) };
      return answer;
    } catch (error) {
      outcome = { charged: chargeOfFailure(error, paid) };
      throw error;
    } finally {
      const isAnswered = outcome.answer !== undefined;
      const isUnstated = outcome.charged === 'unknown';
      const uncertain = isUnstated ? await estimateCharge({ call, ledger, budget, lease, balance, isAnswered }) : 0;
      if (!isUnstated) await balance?.forget();
      await ledger.settle(call.tenantId, settlementOf(call, outcome, uncertain), lease);
    }
  };
}

/** The queue in which paid calls of unknown price run one at a time. */
const paidLine = 'paid';

/** Waits until the budget admits a call; throws if its price does not fit. */
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
  return paid || chargeUnreadable ? 'unknown' : 0;
}

function chargeOfFailure(error: unknown, paid: boolean): Outcome['charged'] {
  if (!(error instanceof AdLibraryError)) return 'unknown';
  const { charged, chargeUnreadable } = error.failure;
  if (charged !== undefined) return charged;
  return (paid || chargeUnreadable) && mayBeCharged(error.failure) ? 'unknown' : 0;
}

function settlementOf(call: Call, { charged, answer }: Outcome, uncertain: number): Settlement {
  const { operation } = call;
  const stated = charged === 'unknown' ? undefined : charged;
  const balance = operation.name === 'getCredits' ? (answer?.value as CreditStatusAnswer | undefined)?.credits : null;
  return {
    charged: stated ?? 0,
    uncertain,
    isPaidAnswer: answer !== undefined && operation.gated,
    remaining: answer?.receipt.remaining ?? balance ?? undefined,
    learn: (prices) => {
      // The charge of a failure is a price, too, but for an unknown number of items.
      if (stated !== undefined && (answer || stated > 0)) learnPrice(prices, call, answer ?? noItems, stated);
    },
  };
}

const noItems = { value: { items: [] } };
