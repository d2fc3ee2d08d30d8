import { createAbortError } from '../api/abort.ts';
import type { ApiCall, ServiceRequest, SignInConnection } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { explainRefusal } from './credit-text.ts';
import { type CreditLedger, isAffordable, type Lease, type ReserveRequest } from './ledger.ts';
import { computeRequestPriceBounds, getOverallMaxPrice, isExactPrice, isPaidOperation, type Prices } from './prices.ts';
import { estimateUnreportedCost } from './settlement.ts';

/** A credit limit, and the account in which the ledger records how much of the limit is spent. */
export interface SpendingLimit {
  ledger: CreditLedger;
  accountId: string;
  /** The maximum number of credits that may be spent. If undefined, spending is unlimited but still recorded. */
  budget: number | undefined;
  scope: 'tool call' | 'connection' | 'server';
}

/** A spending limit with a maximum number of credits. Only such a limit can refuse a call. */
export type LimitWithBudget = SpendingLimit & { budget: number };

/** Returns true if the limit has a maximum number of credits. Other limits only record spending. */
export const hasBudget = (limit: SpendingLimit): limit is LimitWithBudget => limit.budget !== undefined;

/**
 * Returns the id of the account that records the spending of a sign-in connection, e.g. `connection 7f3a`. The prefix
 * ensures that this id never equals the account id of an API key.
 */
export const getConnectionAccountId = ({ id }: SignInConnection) => `connection ${id}`;

/** Reads the prices that the service has charged to a tenant (API key) so far. */
export type ReadPrices = (tenantId: string) => Promise<Prices>;

/**
 * Reserves the highest expected cost of a call in a budget. Waits if the budget may suffice once calls in progress have
 * finished. Returns undefined if the account cannot be read and the call is probably free. The call is then sent
 * without a reservation.
 * @throws AdLibraryError `credit_budget` if the cost of the call exceeds the budget
 */
export async function reserveCredits(
  call: ApiCall,
  budget: LimitWithBudget,
  readPrices: ReadPrices,
): Promise<Lease | undefined> {
  try {
    return await reserveWhenAffordable(call, budget, readPrices);
  } catch (error) {
    const isStoreUnavailable = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    if (!isStoreUnavailable || isPaidOperation(call.request.operation, await readPrices(call.owner.tenantId)))
      throw error;
    return undefined;
  }
}

async function reserveWhenAffordable(call: ApiCall, limit: LimitWithBudget, readPrices: ReadPrices): Promise<Lease> {
  const { ledger, accountId, budget, scope } = limit;
  const { request, owner, signal } = call;
  for (;;) {
    // Prices are stored in the account of the API key. For the scope `server`, `reserve` itself reads them from that
    // account, in the same transaction.
    const keyPrices = scope === 'server' ? undefined : await readPrices(owner.tenantId);
    const admission = await ledger.reserve(accountId, ({ prices }) =>
      buildReserveRequest(request, keyPrices ?? prices, budget),
    );
    if (admission.kind === 'granted') return admission.lease;
    if (admission.kind === 'refused') {
      const { account } = admission;
      const { spentCredits, uncertainCredits } = account;
      const prices = keyPrices ?? account.prices;
      const problem = explainRefusal({ account, budget, prices, request });
      throw createBudgetError(limit, {
        problem,
        isTransient: isAffordable(
          computeRequestPriceBounds(prices, request).atLeast,
          budget - spentCredits - uncertainCredits,
        ),
      });
    }
    await ledger.waitForChange(accountId, admission.version, signal).catch((error) => {
      throw signal.aborted ? createAbortError(signal, false) : error;
    });
  }
}

/**
 * The name of the queue for paid calls with an unknown price. Calls in this queue run one at a time, so that at most
 * one of them can exceed the budget.
 */
const unknownPriceQueue = 'paid';

/**
 * Builds the request to reserve the highest expected cost of a call. Calls with an unknown price get a queue in which
 * they run one at a time, so that at most one of them can exceed the budget.
 */
function buildReserveRequest(request: ServiceRequest, prices: Prices, budget: number): ReserveRequest {
  const bounds = computeRequestPriceBounds(prices, request);
  const { atLeast, atMost } = bounds;
  const isPaidCall = isPaidOperation(request.operation, prices);
  return {
    budget,
    credits: isPaidCall && Number.isFinite(atMost) ? atMost : atLeast,
    atLeast,
    isPaid: isPaidCall,
    maxPrice: getOverallMaxPrice(prices),
    queue: isExactPrice(bounds) ? undefined : isPaidCall ? unknownPriceQueue : request.operation.name,
    creditsIfLost: isPaidCall ? estimateUnreportedCost(prices, request) : 0,
  };
}

/**
 * Creates the error for a call that would exceed a credit limit. `isTransient` means that the call may succeed once the
 * calls in progress have finished.
 */
export function createBudgetError(
  { scope, budget }: LimitWithBudget,
  { problem, isTransient }: { problem: string; isTransient: boolean },
) {
  const refusal = { kind: 'credit_budget', problem, wasSent: false } as const;
  return new AdLibraryError(
    scope === 'tool call'
      ? { ...refusal, limit: scope, maxCredits: budget }
      : { ...refusal, limit: scope, isTransient },
  );
}
