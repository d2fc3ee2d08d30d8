import type { Answer, ServiceRequest } from '../api/call.ts';
import type { CreditStatusAnswer } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import type { CreditAccount, Settlement } from './ledger.ts';
import { computeRequestBounds, getMaxPrice, learnPrice, type Prices } from './prices.ts';

/** How a call ended. */
export type Outcome = { answer: Answer } | { error: unknown };

interface EndedCall {
  request: ServiceRequest;
  outcome: Outcome;
  /** Whether the call was known to cost credits when it was sent. */
  isPaid: boolean;
}

export const emptySettlement: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };

/** Returns what the service stated it charged for a call; undefined if it may have charged an amount that it did not state. */
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

/** Returns what the account of the key records of a call: its charge, the balance that it stated, and its price. */
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
    // The charge of a failure is a price, too, but for an unknown number of items.
    updatePrices: (prices) =>
      isStated && (answer || charged > 0) ? learnPrice(prices, request, answer ?? noItems, charged) : prices,
  };
}

const noItems = { value: { items: [] } };

type Charge = Pick<Settlement, 'charged' | 'uncertain'>;

/**
 * Returns what a call counts under a limit. A charge that the service did not state counts as the highest price seen
 * for the operation, or as the highest cost of its page if that is more. If no price was seen, it counts as the rest of
 * the budget; without a budget, as nothing.
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

/** Returns what a call counts whose charge is unknown; undefined if no charge seen tells. */
export function estimateUnstatedCost(prices: Prices, request: ServiceRequest): number | undefined {
  const { atMost } = computeRequestBounds(prices, request);
  const cost = Math.max(atMost, getMaxPrice(prices, request.operation.name) ?? 0);
  return Number.isFinite(cost) ? cost : undefined;
}
