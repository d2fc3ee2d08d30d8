import { abortedError } from '../api/abort.ts';
import type { Call, Connection, ServiceRequest } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { explainRefusal } from './credit-text.ts';
import { type CreditLedger, isAffordable, type Lease, type ReserveRequest } from './ledger.ts';
import { computeRequestBounds, getOverallMaxPrice, isExactPrice, isPaid, type Prices } from './prices.ts';
import { estimateUnstatedCost } from './settlement.ts';

/** A credit limit, and the ledger account that records the spending under the limit. */
export interface Limit {
  ledger: CreditLedger;
  account: string;
  /** The largest number of credits to spend. If undefined, spending is recorded but not limited. */
  budget: number | undefined;
  scope: 'tool call' | 'connection' | 'server';
}

/** A limit with a maximum number of credits. */
export type Budget = Limit & { budget: number };

/** Returns true if the limit has a maximum number of credits. */
export const isBudget = (limit: Limit): limit is Budget => limit.budget !== undefined;

/** Returns the id of the ledger account that records the spending of a sign-in connection. */
export const getConnectionAccount = ({ id }: Connection) => `connection ${id}`;

/** Reads the prices that were charged to an API key. All limits of the key's calls use the same prices. */
export type ReadPrices = (tenantId: string) => Promise<Prices>;

/**
 * Reserves the highest expected cost of a call in one budget. Waits for calls in progress if the budget may suffice
 * once they have ended. Returns undefined if the account cannot be read and the call is probably free. The call is then
 * sent without a reservation.
 * @throws AdLibraryError `credit_budget` if the cost of the call exceeds the budget
 */
export async function reserveCredits(call: Call, budget: Budget, readPrices: ReadPrices): Promise<Lease | undefined> {
  try {
    return await waitForAdmission(call, budget, readPrices);
  } catch (error) {
    const isStoreUnavailable = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    if (!isStoreUnavailable || isPaid(call.request.operation, await readPrices(call.owner.tenantId))) throw error;
    return undefined;
  }
}

async function waitForAdmission(call: Call, limit: Budget, readPrices: ReadPrices): Promise<Lease> {
  const { ledger, account: accountId, budget, scope } = limit;
  const { request, owner, signal } = call;
  for (;;) {
    // Prices are stored in the account of the API key. When that account is the one to reserve in, the prices and the
    // reservations are read in the same transaction.
    const keyPrices = scope === 'server' ? undefined : await readPrices(owner.tenantId);
    const admission = await ledger.reserve(accountId, ({ prices }) =>
      buildReserveRequest(request, keyPrices ?? prices, budget),
    );
    if (admission.kind === 'granted') return admission.lease;
    if (admission.kind === 'refused') {
      const { account } = admission;
      const { spent, uncertain } = account;
      const prices = keyPrices ?? account.prices;
      const problem = explainRefusal({ account, budget, prices, request });
      throw createBudgetError(limit, {
        problem,
        transient: isAffordable(computeRequestBounds(prices, request).atLeast, budget - spent - uncertain),
      });
    }
    await ledger.changed(accountId, admission.version, signal).catch((error) => {
      throw signal.aborted ? abortedError(signal, false) : error;
    });
  }
}

/** Paid calls of unknown price share this queue, which runs them one at a time. */
const paidQueue = 'paid';

/**
 * Builds the request to reserve the highest cost of a call. Calls of unknown price run one at a time, so at most one of
 * them can exceed the budget.
 */
function buildReserveRequest(request: ServiceRequest, prices: Prices, budget: number): ReserveRequest {
  const bounds = computeRequestBounds(prices, request);
  const { atLeast, atMost } = bounds;
  const isPaidCall = isPaid(request.operation, prices);
  return {
    budget,
    credits: isPaidCall && Number.isFinite(atMost) ? atMost : atLeast,
    atLeast,
    isPaid: isPaidCall,
    maxPrice: getOverallMaxPrice(prices),
    queue: isExactPrice(bounds) ? undefined : isPaidCall ? paidQueue : request.operation.name,
    ifLost: isPaidCall ? estimateUnstatedCost(prices, request) : 0,
  };
}

/** Creates the error that a call gets when a limit refuses it. */
export function createBudgetError(
  { scope, budget }: Budget,
  { problem, transient }: { problem: string; transient: boolean },
) {
  const refusal = { kind: 'credit_budget', problem, sent: false } as const;
  return new AdLibraryError(
    scope === 'tool call' ? { ...refusal, limit: scope, maxCredits: budget } : { ...refusal, limit: scope, transient },
  );
}
