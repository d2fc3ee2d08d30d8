import type { Answer, ServiceRequest } from '../api/call.ts';
import type { CreditStatusAnswer } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import type { CreditAccount, Settlement } from './ledger.ts';
import { computeRequestBounds, getMaxPrice, learnPrice, type Prices } from './prices.ts';

/** The answer of a call, or the error with which the call failed. */
export type Outcome = { answer: Answer } | { error: unknown };

/** A call that has ended. */
interface EndedCall {
  request: ServiceRequest;
  outcome: Outcome;
  /** Whether the call was known to cost credits when it was sent. */
  isPaid: boolean;
}

/** The settlement of a call that cost nothing. */
export const emptySettlement: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };

/** Returns the charge that the service stated for a call, or undefined if the charge is unknown. */
export function readStatedCharge({ outcome, isPaid }: EndedCall): number | undefined {
  if ('answer' in outcome) {
    const { charged, chargeUnreadable } = outcome.answer.receipt;
    return charged ?? (isPaid || chargeUnreadable ? undefined : 0);
  }
  const { error } = outcome;
  if (!(error instanceof AdLibraryError)) return undefined;
  const { charged, chargeUnreadable } = error.failure;
  return charged ?? ((isPaid || chargeUnreadable) && mayBeCharged(error.failure) ? undefined : 0);
}

/** Builds the settlement of a call for the account of its key: the charge, the stated balance and the price. */
export function buildSettlement(ended: EndedCall, charge: Charge): Settlement {
  const { request, outcome } = ended;
  const answer = 'answer' in outcome ? outcome.answer : undefined;
  const { charged, uncertain } = charge;
  const isStated = readStatedCharge(ended) !== undefined;
  const status =
    request.operation.name === 'getCredits' ? (answer?.value as CreditStatusAnswer | undefined) : undefined;
  return {
    charged,
    uncertain,
    isPaidAnswer: answer !== undefined && request.operation.gated,
    remaining: answer?.receipt.remaining ?? status?.credits ?? undefined,
    // A failed call with a charge also shows a price, although the number of its items is unknown.
    updatePrices: (prices) =>
      isStated && (answer || charged > 0) ? learnPrice(prices, request, answer ?? noItems, charged) : prices,
  };
}

const noItems = { value: { items: [] } };

/** The credits of a call that count under a limit. */
type Charge = Pick<Settlement, 'charged' | 'uncertain'>;

/**
 * Computes the credits of a call that count under a limit. An unknown charge counts as the highest charge of the
 * operation, or as the highest cost of its page if that is more. If the operation has no price yet, an unknown charge
 * counts as all remaining credits of the budget. Without a budget, it then counts as 0.
 */
export function computeCharge(
  { account, budget, prices }: { account: CreditAccount | undefined; budget: number | undefined; prices: Prices },
  ended: EndedCall,
): Charge {
  const charged = readStatedCharge(ended);
  if (charged !== undefined) return { charged, uncertain: 0 };
  if (budget === undefined) return { charged: 0, uncertain: estimateUnstatedCost(prices, ended.request) ?? 0 };
  const { spent = 0, uncertain = 0 } = account ?? {};
  const remainingCredits = Math.max(1, budget - spent - uncertain);
  return { charged: 0, uncertain: Math.max(1, estimateUnstatedCost(prices, ended.request) ?? remainingCredits) };
}

/** Estimates the charge of a call whose charge is unknown. Returns undefined if its operation has no price yet. */
export function estimateUnstatedCost(prices: Prices, request: ServiceRequest): number | undefined {
  const { atMost } = computeRequestBounds(prices, request);
  const cost = Math.max(atMost, getMaxPrice(prices, request.operation.name) ?? 0);
  return Number.isFinite(cost) ? cost : undefined;
}
