import { abortedError } from '../api/abort.ts';
import type { Call, Connection, ServiceRequest } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { explainRefusal } from './credit-text.ts';
import { type CreditLedger, isAffordable, type Lease, type ReserveRequest } from './ledger.ts';
import { computeRequestBounds, getOverallMaxPrice, isExactPrice, isPaid, type Prices } from './prices.ts';
import { estimateUnstatedCost } from './settlement.ts';

/** A limit of credits, and the account that records the spending under this limit. */
export interface Limit {
  ledger: CreditLedger;
  account: string;
  /** Undefined if spending is recorded but not bounded. */
  budget: number | undefined;
  scope: 'tool call' | 'connection' | 'server';
}

/** A limit that bounds spending. */
export type Budget = Limit & { budget: number };

/** Returns whether a limit bounds spending. */
export const hasBudget = (limit: Limit): limit is Budget => limit.budget !== undefined;

/** Returns the name of the account in which the ledger records the spending of a connection. */
export const getConnectionAccount = ({ id }: Connection) => `connection ${id}`;

/** Reads the prices of a key. Prices belong to the key, and all limits of its calls use them. */
export type ReadPrices = (tenantId: string) => Promise<Prices>;

/**
 * Reserves the highest expected cost of a call under a budget. Waits if calls in progress have to end first. Returns
 * undefined if the account cannot be read and the call is probably free. Such a call is sent without a reservation.
 * @throws AdLibraryError `credit_budget` if the cost of the call exceeds the budget
 */
export async function reserveCredits(call: Call, budget: Budget, readPrices: ReadPrices): Promise<Lease | undefined> {
  try {
    return await waitForAdmission(call, budget, readPrices);
  } catch (error) {
    const isAway = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    if (!isAway || isPaid(call.request.operation, await readPrices(call.owner.tenantId))) throw error;
    return undefined;
  }
}

async function waitForAdmission(call: Call, limit: Budget, readPrices: ReadPrices): Promise<Lease> {
  const { ledger, account: accountId, budget, scope } = limit;
  const { request, owner, signal } = call;
  for (;;) {
    // The account of the key contains the prices. For this account, prices and reservations are read in one step.
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

/** The name of the queue in which paid calls of unknown price run one at a time. */
const paidQueue = 'paid';

/**
 * Builds the request to reserve the highest cost of a call. Calls of unknown price run one at a time, so that at most
 * one of them can exceed the budget.
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

/** Creates the error for a call that a limit refuses. */
export function createBudgetError(
  { scope, budget }: Budget,
  { problem, transient }: { problem: string; transient: boolean },
) {
  const refusal = { kind: 'credit_budget', problem, sent: false } as const;
  return new AdLibraryError(
    scope === 'tool call' ? { ...refusal, limit: scope, maxCredits: budget } : { ...refusal, limit: scope, transient },
  );
}
