import type { ServiceRequest, ServiceResponse } from '../api/call.ts';
import type { ParsedCreditStatus } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import type { CreditAccount, Settlement } from './ledger.ts';
import { computeRequestBounds, getMaxPrice, learnPrice, type Prices } from './prices.ts';

/** The result of a call: a response, or the error with which the call failed. */
export type Outcome = { response: ServiceResponse } | { error: unknown };

/** A call that has ended, either with a response or with an error. */
interface FinishedCall {
  request: ServiceRequest;
  outcome: Outcome;
  /** True if the operation was known to cost credits when the call was sent. */
  isPaid: boolean;
}

/** The settlement (the recorded cost) of a call that cost nothing. */
export const emptySettlement: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };

/** Returns the charge that the service reported for a call. Returns undefined if the charge is unknown. */
export function readReportedCharge({ outcome, isPaid }: FinishedCall): number | undefined {
  if ('response' in outcome) {
    const { charged, chargeUnreadable } = outcome.response.receipt;
    return charged ?? (isPaid || chargeUnreadable ? undefined : 0);
  }
  const { error } = outcome;
  if (!(error instanceof AdLibraryError)) return undefined;
  const { charged, chargeUnreadable } = error.failure;
  return charged ?? ((isPaid || chargeUnreadable) && mayBeCharged(error.failure) ? undefined : 0);
}

/**
 * Builds the settlement, i.e. the final cost to record, for the account of the API key. It contains the charge, the
 * balance and the learned price.
 */
export function buildSettlement(endedCall: FinishedCall, charge: Charge): Settlement {
  const { request, outcome } = endedCall;
  const response = 'response' in outcome ? outcome.response : undefined;
  const { charged, uncertain } = charge;
  const isStated = readReportedCharge(endedCall) !== undefined;
  const status =
    request.operation.name === 'getCredits' ? (response?.value as ParsedCreditStatus | undefined) : undefined;
  return {
    charged,
    uncertain,
    isPaidAnswer: response !== undefined && request.operation.requiresCredits,
    remaining: response?.receipt.remaining ?? status?.credits ?? undefined,
    // An error that reports a charge also reveals a price, although its number of items is unknown.
    updatePrices: (prices) =>
      isStated && (response || charged > 0) ? learnPrice(prices, request, response ?? noItems, charged) : prices,
  };
}

const noItems = { value: { items: [] } };

/**
 * The credits of a call that count toward one credit limit: charged credits, and credits that were possibly charged
 * (`uncertain`).
 */
type Charge = Pick<Settlement, 'charged' | 'uncertain'>;

/**
 * Computes the credits of a call that count toward one limit.
 *
 * If the charge is unknown, the function uses the higher of two values: the highest charge of the operation so far, and
 * the highest expected cost of the page. If the operation has no observed charge, the call counts as having used all
 * remaining credits of the budget. Without a budget, it counts as 0.
 */
export function computeCharge(
  { account, budget, prices }: { account: CreditAccount | undefined; budget: number | undefined; prices: Prices },
  endedCall: FinishedCall,
): Charge {
  const charged = readReportedCharge(endedCall);
  if (charged !== undefined) return { charged, uncertain: 0 };
  if (budget === undefined) return { charged: 0, uncertain: estimateUnreportedCost(prices, endedCall.request) ?? 0 };
  const { spent = 0, uncertain = 0 } = account ?? {};
  const remainingCredits = Math.max(1, budget - spent - uncertain);
  return { charged: 0, uncertain: Math.max(1, estimateUnreportedCost(prices, endedCall.request) ?? remainingCredits) };
}

/** Estimates the cost of a call whose charge is unknown. Returns undefined if the operation has no observed charge. */
export function estimateUnreportedCost(prices: Prices, request: ServiceRequest): number | undefined {
  const { atMost } = computeRequestBounds(prices, request);
  const cost = Math.max(atMost, getMaxPrice(prices, request.operation.name) ?? 0);
  return Number.isFinite(cost) ? cost : undefined;
}
