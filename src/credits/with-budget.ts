import { abortedError } from '../api/abort.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Answer, Call, Send } from '../api/send.ts';
import type { AskCredits } from './ask-credits.ts';
import type { CreditAccount, CreditLedger, Lease, ReserveRequest, Settlement } from './credit-ledger.ts';
import { overBudget } from './over-budget.ts';
import { isPaid, learnPrice, maxCostOf, quote } from './prices.ts';
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
    const admission = budget === undefined ? undefined : await admittedIfPaid(call, { ledger, budget });
    const { prices } = admission?.account ?? (await ledger.estimate(call.tenantId));
    const lease = admission?.lease;
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

interface Admitted {
  lease: Lease;
  account: CreditAccount;
}

/** What costs nothing, as far as is known, goes on while the account cannot be reached. */
async function admittedIfPaid(call: Call, budgeted: { ledger: CreditLedger; budget: number }) {
  try {
    return await admitted(call, budgeted);
  } catch (error) {
    const isAway = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    const { prices } = await budgeted.ledger.estimate(call.tenantId);
    if (!isAway || isPaid(call.operation, prices)) throw error;
    return undefined;
  }
}

/** Waits until the budget admits a call; throws if its price does not fit. */
async function admitted(call: Call, { ledger, budget }: { ledger: CreditLedger; budget: number }): Promise<Admitted> {
  const { tenantId, signal } = call;
  for (;;) {
    const admission = await ledger.reserve(tenantId, (account) => requestOf(call, account, budget));
    if (admission.kind === 'granted') return admission;
    if (admission.kind === 'refused') {
      const { account } = admission;
      throw overBudget({ account, budget, quoted: quote(account.prices, call), call });
    }
    await ledger.changed(tenantId, admission.version, signal).catch((error) => {
      throw signal.aborted ? abortedError(signal, false) : error;
    });
  }
}

function requestOf(call: Call, { prices }: CreditAccount, budget: number): ReserveRequest {
  const quoted = quote(prices, call);
  const paid = isPaid(call.operation, prices);
  const line = quoted.price !== undefined ? undefined : paid ? paidLine : call.operation.name;
  const credits = quoted.price ?? quoted.atLeast;
  const seen = maxCostOf(prices, call);
  const ifLost = paid ? seen && Math.max(1, seen, credits) : 0;
  return { budget, credits, paid, line, ifLost };
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
