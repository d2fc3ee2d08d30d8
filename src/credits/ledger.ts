import type { ParsedUsageLimit } from '../api/schemas.ts';
import type { Prices } from './prices.ts';

/** The credits that an API key, a sign-in connection or a tool call has spent and reserved. */
export interface CreditAccount {
  /** The credits charged, as reported in the service's responses. */
  readonly spent: number;
  /** The number of calls for which the service charged credits. */
  readonly calls: number;
  /** The estimated credits for calls whose charge is unknown, e.g. after a timeout. Budgets count them as spent. */
  readonly uncertain: number;
  /** The sum of the highest expected costs of all calls in progress, in credits. */
  readonly reserved: number;
  /** The sum of the lowest expected costs of all calls in progress, in credits. */
  readonly reservedAtLeast: number;
  /** The number of calls in progress that the service may charge for. */
  readonly paidInFlight: number;
  /** The credit balance that the service reported in its latest response. */
  readonly remaining: number | undefined;
  /**
   * The prices that the service has charged to the API key. Empty if the account belongs to a connection or to a single
   * tool call, because prices are recorded for each API key only.
   */
  readonly prices: Prices;
  /** The UTC day of the spending, e.g. `2026-11-22`. Set only if the budget applies per day. */
  readonly day?: string;
}

/** A request to the ledger to reserve credits for one call, before the call is sent. */
export interface ReserveRequest {
  budget: number;
  /**
   * The number of credits to reserve. This is the highest expected cost, or the lowest expected cost if there is no
   * upper bound.
   */
  credits: number;
  /** The lowest expected cost. The ledger refuses the call if the budget does not cover it. */
  atLeast: number;
  /** True if the call may cost credits. The number of such calls that run at the same time is limited. */
  isPaid: boolean;
  /** The highest price that any operation has cost the API key so far. */
  maxPrice: number;
  /** The name of a queue. Calls in the same queue run one at a time. Set for calls whose price is unknown. */
  queue?: string | undefined;
  /**
   * The credits that count as spent if the process dies before the cost of the call is recorded. If undefined, all
   * remaining credits count as spent.
   */
  ifLost?: number | undefined;
}

/** A reservation of credits for a call in progress. It is released when the call has finished. */
export interface Lease {
  id: string;
  credits: number;
  isPaid: boolean;
}

/** The ledger's decision about a call: the call may start now (`granted`), must wait, or is refused. */
export type Admission =
  | { kind: 'granted'; lease: Lease; account: CreditAccount }
  /** Another call must finish first. To wait for that, pass `version` to `waitForChange`. */
  | { kind: 'wait'; version: string }
  | { kind: 'refused'; account: CreditAccount };

/** The final cost of a finished call. It is recorded in one account and replaces the reserved credits. */
export interface Settlement {
  /**
   * Identifies the settlement (the recorded cost). If several processes record the cost of the same call, it is counted
   * once.
   */
  id?: string;
  charged: number;
  /** The credits that the service may have charged in addition to `charged`. */
  uncertain: number;
  isPaidAnswer: boolean;
  /** The credit balance in the response, if the response includes one. */
  remaining?: number | undefined;
  /** If set, the retention period of the recorded spending starts again, just as after a paid call. */
  extendsRetention?: true;
  /** Returns `prices` with the price of this call added. Returns the same object if the call reveals no new price. */
  updatePrices?(prices: Prices): Prices;
}

/**
 * A usage window in which an API key has no credits left. A usage window is the service's hourly or daily limit on
 * credits.
 */
export interface FullUsageWindow {
  usageLimit: ParsedUsageLimit;
  /** The remaining credits in the hourly or the daily usage window, whichever is lower. */
  remaining: number;
  /** The time of the server's last request for the usage windows, in milliseconds by a clock that is never set back. */
  checkedAt: number;
  /**
   * A random id that changes with each response of the service. It shows whether another call has updated the window.
   */
  id: string;
}

/**
 * Stores which API keys have reached the service's hourly or daily limit on credits. Losing an entry is harmless: the
 * server sends one more call, and the service refuses it.
 */
export interface FullUsageWindows {
  get(tenantId: string): Promise<FullUsageWindow | undefined>;
  set(tenantId: string, window: FullUsageWindow | undefined): Promise<void>;
}

/**
 * Stores the credit accounts. To free space, an account without spending is always evicted before an account with
 * spending.
 */
export interface CreditLedger {
  /**
   * Returns the account of a tenant (API key), a connection or a tool call. Rejects with `unavailable` if the store
   * cannot be reached.
   */
  read(tenantId: string): Promise<CreditAccount>;
  /** Returns an account from which a cost is estimated. If the store cannot be reached, the account may be outdated. */
  estimate(tenantId: string): Promise<CreditAccount>;
  /**
   * Reserves credits if the budget allows the call to start now. Otherwise tells the caller to wait, or refuses the
   * call. Rejects with `unavailable` if the store cannot be reached.
   * @param buildRequest builds the request from the current account, because the expected price depends on its prices
   */
  reserve(tenantId: string, buildRequest: (account: CreditAccount) => ReserveRequest): Promise<Admission>;
  /**
   * Resolves when the account has changed since it had this `version`. If `signal` aborts first, rejects with the
   * reason of the signal.
   */
  waitForChange(tenantId: string, version: string, signal: AbortSignal): Promise<void>;
  /**
   * Records the cost of a call and releases its reservation in one transaction. Never rejects: if recording fails, it
   * is retried later.
   */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void>;
}

/** Returns the credits that count toward a budget: spent, uncertain and reserved credits. */
export const sumUsedCredits = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/**
 * Returns true if a cost does not exceed the remaining credits. Ignores tiny differences, because sums of fractional
 * credits contain floating-point errors.
 */
export const isAffordable = (credits: number, remaining: number): boolean => credits <= remaining + 1e-6;

/**
 * The maximum number of paid calls that run at the same time for an account with a budget. See `decideAdmission` for
 * the reason.
 */
const maxConcurrentPaidCalls = 4;

/**
 * Decides whether a call under a budget may start `now`, `later` or `never`.
 *
 * - Never: the lowest cost of the call exceeds the unspent credits minus the lowest costs of calls in progress.
 * - Later: the highest cost of the call exceeds the unspent credits minus the highest costs of calls in progress.
 * - Later: too many paid calls are in progress. Up to four may run at once. Only one may run if the remaining credits
 *   do not cover four calls at the highest price. If the service then raises its price, only this one call can exceed
 *   the budget.
 */
export function decideAdmission(account: CreditAccount, request: ReserveRequest): 'now' | 'later' | 'never' {
  const { budget, credits, atLeast, isPaid, maxPrice } = request;
  const { spent, uncertain, reserved, reservedAtLeast, paidInFlight } = account;
  const unspent = budget - spent - uncertain;
  if ((isPaid || atLeast > 0) && !isAffordable(atLeast, unspent - reservedAtLeast)) return 'never';
  if (!isPaid) return 'now';
  if (reserved > 0 && !isAffordable(credits, unspent - reserved)) return 'later';
  const maxConcurrentCalls = isAffordable(maxConcurrentPaidCalls * maxPrice, unspent - reserved)
    ? maxConcurrentPaidCalls
    : 1;
  return paidInFlight < maxConcurrentCalls ? 'now' : 'later';
}
