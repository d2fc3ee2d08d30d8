import { abortedError } from '../api/abort.ts';
import type { Call, Connection, ServiceRequest } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { budgetProblem } from './credit-text.ts';
import { type CreditLedger, fits, type Lease, type ReserveRequest } from './ledger.ts';
import { isKnown, isPaid, maxPrice, type Prices, requestBounds } from './prices.ts';
import { unstatedCost } from './settlement.ts';

/** A limit of credits, and the account that records what was spent of it. */
export interface Limit {
  ledger: CreditLedger;
  account: string;
  /** Undefined if spending is recorded but not bounded. */
  budget: number | undefined;
  scope: 'tool call' | 'connection' | 'server';
}

export type Budget = Limit & { budget: number };

export const hasBudget = (limit: Limit): limit is Budget => limit.budget !== undefined;

export const connectionAccount = ({ id }: Connection) => `connection ${id}`;

/** Reads the prices that the call's key has seen. They belong to the key, whichever limits its calls have. */
export type PricesOf = (tenantId: string) => Promise<Prices>;

/**
 * Reserves what a call may cost under a budget, and waits while it has to. Returns undefined if the account cannot be
 * reached and the call is not known to cost anything: then it goes on without a reservation.
 * @throws AdLibraryError `credit_budget` if the call does not fit
 */
export async function reserveCredits(call: Call, budget: Budget, pricesOf: PricesOf): Promise<Lease | undefined> {
  try {
    return await waitForAdmission(call, budget, pricesOf);
  } catch (error) {
    const isAway = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    if (!isAway || isPaid(call.request.operation, await pricesOf(call.owner.tenantId))) throw error;
    return undefined;
  }
}

async function waitForAdmission(call: Call, limit: Budget, pricesOf: PricesOf): Promise<Lease> {
  const { ledger, account: id, budget, scope } = limit;
  const { request, owner, signal } = call;
  for (;;) {
    // The account of the key holds the prices, so there they are as new as the reservations.
    const keyPrices = scope === 'server' ? undefined : await pricesOf(owner.tenantId);
    const admission = await ledger.reserve(id, ({ prices }) => reservationOf(request, keyPrices ?? prices, budget));
    if (admission.kind === 'granted') return admission.lease;
    if (admission.kind === 'refused') {
      const { account } = admission;
      const { spent, uncertain } = account;
      const prices = keyPrices ?? account.prices;
      const problem = budgetProblem({ account, budget, prices, request });
      throw overLimit(limit, {
        problem,
        transient: fits(requestBounds(prices, request).atLeast, budget - spent - uncertain),
      });
    }
    await ledger.changed(id, admission.version, signal).catch((error) => {
      throw signal.aborted ? abortedError(signal, false) : error;
    });
  }
}

/** The queue in which paid calls of unknown price run one at a time. */
const paidLine = 'paid';

/**
 * Reserves the highest cost of a call. A call of unknown price runs alone, so that at most one such call can exceed the
 * budget.
 */
function reservationOf(request: ServiceRequest, prices: Prices, budget: number): ReserveRequest {
  const bounds = requestBounds(prices, request);
  const { atLeast, atMost } = bounds;
  const paid = isPaid(request.operation, prices);
  return {
    budget,
    credits: paid && Number.isFinite(atMost) ? atMost : atLeast,
    atLeast,
    paid,
    maxPrice: maxPrice(prices),
    line: isKnown(bounds) ? undefined : paid ? paidLine : request.operation.name,
    ifLost: paid ? unstatedCost(prices, request) : 0,
  };
}

/** Returns the error of a call that a limit refuses. */
export function overLimit({ scope, budget }: Budget, { problem, transient }: { problem: string; transient: boolean }) {
  const refusal = { kind: 'credit_budget', problem, sent: false } as const;
  return new AdLibraryError(
    scope === 'tool call' ? { ...refusal, limit: scope, maxCredits: budget } : { ...refusal, limit: scope, transient },
  );
}
