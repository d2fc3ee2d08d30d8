import type { ServiceRequest, ServiceResponse } from '../api/call.ts';
import type { ParsedCreditStatus } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import type { CreditAccount, Settlement } from './ledger.ts';
import { computeRequestBounds, getMaxPrice, learnPrice, type Prices } from './prices.ts';

/** The outcome of a call: a response, or the error with which the call failed. */
export type Outcome = { response: ServiceResponse } | { error: unknown };

/** A call that has ended with a response or an error. */
interface FinishedCall {
  request: ServiceRequest;
  outcome: Outcome;
  /** True if the operation was already known to cost credits when the call was sent. */
  isPaid: boolean;
}

/** The settlement (the recorded cost) of a call that cost nothing. */
export const emptySettlement: Settlement = { charged: 0, uncertain: 0, isPaidResponse: false };

/** Returns the charge that the service reported for a call, in credits, or undefined if the charge is unknown. */
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
 * Builds the settlement of a call, i.e. the cost to record in the account of the API key. It contains the charge, the
 * balance, and the price that the charge reveals.
 */
export function buildSettlement(finishedCall: FinishedCall, charge: Charge): Settlement {
  const { request, outcome } = finishedCall;
  const response = 'response' in outcome ? outcome.response : undefined;
  const { charged, uncertain } = charge;
  const isChargeReported = readReportedCharge(finishedCall) !== undefined;
  const status =
    request.operation.name === 'getCredits' ? (response?.value as ParsedCreditStatus | undefined) : undefined;
  return {
    charged,
    uncertain,
    isPaidResponse: response !== undefined && request.operation.requiresCredits,
    remaining: response?.receipt.remaining ?? status?.credits ?? undefined,
    // An error with a charge also reveals a price, although the number of its items is unknown.
    updatePrices: (prices) =>
      isChargeReported && (response || charged > 0)
        ? learnPrice(prices, request, response ?? emptyResponse, charged)
        : prices,
  };
}

const emptyResponse = { value: { items: [] } };

/** The charged credits of a call, and the credits that were possibly charged (`uncertain`). */
type Charge = Pick<Settlement, 'charged' | 'uncertain'>;

/**
 * Computes the credits of a call that count toward one credit limit.
 *
 * If the charge is unknown, it is estimated from earlier charges of the operation. Without earlier charges, the call
 * counts as having used all remaining credits of the budget, or as 0 if there is no budget.
 */
export function computeCharge(
  { account, budget, prices }: { account: CreditAccount | undefined; budget: number | undefined; prices: Prices },
  finishedCall: FinishedCall,
): Charge {
  const charged = readReportedCharge(finishedCall);
  if (charged !== undefined) return { charged, uncertain: 0 };
  if (budget === undefined) return { charged: 0, uncertain: estimateUnreportedCost(prices, finishedCall.request) ?? 0 };
  const { spent = 0, uncertain = 0 } = account ?? {};
  const remainingCredits = Math.max(1, budget - spent - uncertain);
  return {
    charged: 0,
    uncertain: Math.max(1, estimateUnreportedCost(prices, finishedCall.request) ?? remainingCredits),
  };
}

/**
 * Estimates the cost of a call whose charge is unknown: the highest charge of the operation so far, or the highest
 * expected cost of the requested page if that is more. Returns undefined if no charge is known.
 */
export function estimateUnreportedCost(prices: Prices, request: ServiceRequest): number | undefined {
  const { atMost } = computeRequestBounds(prices, request);
  const cost = Math.max(atMost, getMaxPrice(prices, request.operation.name) ?? 0);
  return Number.isFinite(cost) ? cost : undefined;
}
