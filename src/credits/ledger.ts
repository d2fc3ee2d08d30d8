import type { ParsedUsageLimit } from '../api/schemas.ts';
import type { Prices } from './prices.ts';

/** The credits that an API key, a sign-in connection or a tool call has spent and reserved. */
export interface CreditAccount {
  /** The credits that the service has charged, according to its responses. */
  readonly spentCredits: number;
  /** The number of calls that the service has charged for. */
  readonly paidCallCount: number;
  /**
   * The estimated credits for calls whose charge is unknown, e.g. after a timeout. Budgets count these credits as
   * spent.
   */
  readonly uncertainCredits: number;
  /** The sum of the highest expected costs of all calls in progress, in credits. */
  readonly reservedCredits: number;
  /** The sum of the lowest expected costs of all calls in progress, in credits. */
  readonly minReservedCredits: number;
  /** The number of calls in progress that the service may charge for. */
  readonly runningPaidCallCount: number;
  /** The credit balance that the service reported in its latest response. */
  readonly remainingCredits: number | undefined;
  /**
   * The prices that the service has charged to the API key. Empty for the account of a connection or a tool call,
   * because prices are recorded only for API keys.
   */
  readonly prices: Prices;
  /** The UTC day of the spending, e.g. `2026-11-22`. Set only if the budget is per day. */
  readonly day?: string;
}

/** A request to reserve credits for one call, before the call is sent. */
export interface ReserveRequest {
  budget: number;
  /**
   * The number of credits to reserve: the highest expected cost, or the lowest expected cost if there is no upper
   * bound.
   */
  credits: number;
  /** The lowest expected cost. The ledger refuses the call if the budget does not cover this cost. */
  atLeast: number;
  /** True if the call may cost credits. The number of such calls that run at the same time is limited. */
  isPaid: boolean;
  /** The highest price that the API key has paid so far for a call of any operation. */
  maxPrice: number;
  /**
   * The name of a queue, for calls whose exact price is not known. Calls in the same queue run one at a time. While a
   * paid call in a queue runs, no other paid call starts.
   */
  queue?: string | undefined;
  /**
   * The credits that count as spent if this process dies before it records the cost of the call. If undefined, all
   * remaining credits count as spent.
   */
  creditsIfLost?: number | undefined;
}

/** A reservation of credits for a call in progress. It ends when the call has finished. */
export interface Lease {
  id: string;
  credits: number;
  isPaid: boolean;
}

/** The ledger's decision about a call: the call may start now (`granted`), must wait, or is refused. */
export type Admission =
  | { kind: 'granted'; lease: Lease; account: CreditAccount }
  /** Another call must finish first. Pass `version` to `waitForChange` to wait until the account changes. */
  | { kind: 'wait'; version: string }
  | { kind: 'refused'; account: CreditAccount };

/** The cost of a finished call. Recording it in an account replaces the credits that were reserved for the call. */
export interface Settlement {
  /**
   * The id of the settlement (the recorded cost). If several processes record the same settlement, the ledger counts it
   * only once.
   */
  id?: string;
  chargedCredits: number;
  /** The credits that the service may have charged in addition to `chargedCredits`. */
  uncertainCredits: number;
  isPaidResponse: boolean;
  /** The credit balance in the response, if the response includes one. */
  remainingCredits?: number | undefined;
  /** If true, the ledger keeps the recorded spending for another 30 days from now, as it does after a paid call. */
  extendsRetention?: true;
  /** Adds the price of this call to `prices`. Returns the same object if the call reveals no new price. */
  updatePrices?(prices: Prices): Prices;
}

/** The hourly and daily limits on the credits of an API key that has reached one of these limits. */
export interface ReachedUsageLimit {
  usageLimit: ParsedUsageLimit;
  /** The credits that remain within the hourly or the daily limit, whichever are fewer. */
  remainingCredits: number;
  /**
   * The time at which this server last asked the service for the usage limits, in milliseconds of a monotonic clock.
   */
  checkedAt: number;
  /** A random id that changes with each response of the service, so that a call can detect a newer response. */
  id: string;
}

/**
 * Stores the API keys that have reached the service's hourly or daily limit on credits. A lost entry is harmless: the
 * server sends one more call, and the service refuses it.
 */
export interface ReachedUsageLimitStore {
  get(tenantId: string): Promise<ReachedUsageLimit | undefined>;
  set(tenantId: string, reachedLimit: ReachedUsageLimit | undefined): Promise<void>;
}

/**
 * Stores the credit accounts. When memory is full, accounts without spending are evicted before accounts with spending.
 */
export interface CreditLedger {
  /**
   * Returns the account of a tenant (API key), a connection or a tool call.
   * @throws AdLibraryError `unavailable` if the store cannot be reached
   */
  read(accountId: string): Promise<CreditAccount>;
  /**
   * Returns the account from which the cost of a call is estimated. If the store cannot be reached, the returned
   * account may be outdated.
   */
  readPossiblyOutdated(accountId: string): Promise<CreditAccount>;
  /**
   * Reserves credits if the budget allows the call to start now. Otherwise tells the caller to wait, or refuses the
   * call.
   * @param buildRequest builds the request from the current account, which contains the prices
   * @throws AdLibraryError `unavailable` if the store cannot be reached
   */
  reserve(accountId: string, buildRequest: (account: CreditAccount) => ReserveRequest): Promise<Admission>;
  /**
   * Resolves when the account has changed since `version`. Rejects with the reason of `signal` if the signal aborts
   * first.
   */
  waitForChange(accountId: string, version: string, signal: AbortSignal): Promise<void>;
  /**
   * Records the cost of a call and releases its reservation in one transaction. Never rejects; a failed write is
   * retried later.
   */
  settle(accountId: string, settlement: Settlement, lease?: Lease): Promise<void>;
}

/** Returns the credits that count toward a budget: spent, uncertain and reserved credits. */
export const sumUsedCredits = ({ spentCredits, uncertainCredits, reservedCredits }: CreditAccount): number =>
  spentCredits + uncertainCredits + reservedCredits;

/**
 * Returns true if a cost is within the remaining credits. Tolerates a difference of 1e-6, because sums of fractional
 * credits contain floating-point errors.
 */
export const isAffordable = (cost: number, remainingCredits: number): boolean => cost <= remainingCredits + 1e-6;

/**
 * The maximum number of paid calls that may run at once for an account with a budget. If the service raises its prices,
 * only these calls can exceed the budget.
 */
const maxConcurrentPaidCalls = 4;

/**
 * Decides whether a call may start `now`, `later` or `never`.
 *
 * - Never: the lowest cost of the call exceeds `unspentCredits` minus the lowest costs of calls in progress.
 * - Later: the highest cost of the call exceeds `unspentCredits` minus the highest costs of calls in progress.
 * - Later: too many paid calls are in progress. Up to four may run at once. Only one may run if the remaining credits
 * do not cover four calls at the highest price. If the service then raises its price, only this call can exceed the
 * budget.
 */
export function decideAdmission(account: CreditAccount, request: ReserveRequest): 'now' | 'later' | 'never' {
  const { budget, credits, atLeast, isPaid, maxPrice } = request;
  const { spentCredits, uncertainCredits, reservedCredits, minReservedCredits, runningPaidCallCount } = account;
  const unspentCredits = budget - spentCredits - uncertainCredits;
  if ((isPaid || atLeast > 0) && !isAffordable(atLeast, unspentCredits - minReservedCredits)) return 'never';
  if (!isPaid) return 'now';
  if (reservedCredits > 0 && !isAffordable(credits, unspentCredits - reservedCredits)) return 'later';
  const maxConcurrentCalls = isAffordable(maxConcurrentPaidCalls * maxPrice, unspentCredits - reservedCredits)
    ? maxConcurrentPaidCalls
    : 1;
  return runningPaidCallCount < maxConcurrentCalls ? 'now' : 'later';
}
