import type { ServiceRequest, ServiceResponse } from '../api/call.ts';
import type { ParsedCreditStatus } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import type { CreditAccount, Settlement } from './ledger.ts';
import { computeRequestPriceBounds, getMaxPrice, learnPrice, type Prices } from './prices.ts';

/** The outcome of a call to the service: its response, or the error with which the call failed. */
export type CallOutcome = { response: ServiceResponse } | { error: unknown };

/** A call to the service that has ended with a response or an error. */
interface FinishedCall {
  request: ServiceRequest;
  outcome: CallOutcome;
  /** True if the operation was already known to cost credits when the call was sent. */
  isPaid: boolean;
}

/** The settlement (the cost to record) of a call that cost nothing. */
export const freeSettlement: Settlement = { chargedCredits: 0, uncertainCredits: 0, isPaidResponse: false };

/** Returns the charge that the service reported for a call, in credits, or undefined if the charge is unknown. */
export function readReportedCharge({ outcome, isPaid }: FinishedCall): number | undefined {
  if ('response' in outcome) {
    const { charged, isChargeUnreadable } = outcome.response.receipt;
    return charged ?? (isPaid || isChargeUnreadable ? undefined : 0);
  }
  const { error } = outcome;
  if (!(error instanceof AdLibraryError)) return undefined;
  const { charged, isChargeUnreadable } = error.failure;
  return charged ?? ((isPaid || isChargeUnreadable) && mayBeCharged(error.failure) ? undefined : 0);
}

/**
 * Builds the settlement of a call, i.e. the cost that the server records for the API key. The settlement contains the
 * charge, the credit balance, and a function that adds the price of this call to the known prices.
 */
export function buildSettlement(finishedCall: FinishedCall, charge: Charge): Settlement {
  const { request, outcome } = finishedCall;
  const response = 'response' in outcome ? outcome.response : undefined;
  const { chargedCredits, uncertainCredits } = charge;
  const isChargeReported = readReportedCharge(finishedCall) !== undefined;
  const creditStatus =
    request.operation.name === 'getCredits' ? (response?.validatedBody as ParsedCreditStatus | undefined) : undefined;
  return {
    chargedCredits,
    uncertainCredits,
    isPaidResponse: response !== undefined && request.operation.requiresCredits,
    remainingCredits: response?.receipt.remaining ?? creditStatus?.credits ?? undefined,
    // A failed call that was charged also reveals a price, although its response lists no items.
    updatePrices: (prices) =>
      isChargeReported && (response || chargedCredits > 0)
        ? learnPrice(prices, request, response ?? emptyResponse, chargedCredits)
        : prices,
  };
}

const emptyResponse = { validatedBody: { items: [] } };

/**
 * The credits that the service charged for a call (`chargedCredits`), and the credits that it may have charged in
 * addition (`uncertainCredits`).
 */
type Charge = Pick<Settlement, 'chargedCredits' | 'uncertainCredits'>;

/**
 * Computes the number of credits that a finished call adds to one credit account.
 *
 * If the charge is unknown, it is estimated from earlier charges of the operation. Without earlier charges, the call
 * counts as having used all remaining credits of the budget. If there is no budget either, it counts as free.
 */
export function computeCharge(
  { account, budget, prices }: { account: CreditAccount | undefined; budget: number | undefined; prices: Prices },
  finishedCall: FinishedCall,
): Charge {
  const reportedCharge = readReportedCharge(finishedCall);
  if (reportedCharge !== undefined) return { chargedCredits: reportedCharge, uncertainCredits: 0 };
  if (budget === undefined)
    return { chargedCredits: 0, uncertainCredits: estimateUnreportedCost(prices, finishedCall.request) ?? 0 };
  const { spentCredits = 0, uncertainCredits = 0 } = account ?? {};
  const remainingBudget = Math.max(1, budget - spentCredits - uncertainCredits);
  return {
    chargedCredits: 0,
    uncertainCredits: Math.max(1, estimateUnreportedCost(prices, finishedCall.request) ?? remainingBudget),
  };
}

/**
 * Estimates the cost, in credits, of a call whose charge is unknown. Returns the highest charge of the operation so far
 * or the highest expected cost of the requested page, whichever is higher. Returns undefined if there is no upper
 * bound.
 */
export function estimateUnreportedCost(prices: Prices, request: ServiceRequest): number | undefined {
  const { atMost: highestExpectedCost } = computeRequestPriceBounds(prices, request);
  const cost = Math.max(highestExpectedCost, getMaxPrice(prices, request.operation.name) ?? 0);
  return Number.isFinite(cost) ? cost : undefined;
}
