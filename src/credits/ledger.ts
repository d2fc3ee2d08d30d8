import type { UsageLimitAnswer } from '../api/schemas.ts';
import type { Prices } from './prices.ts';

/** The credit account of an API key, a sign-in connection or a tool call. */
export interface CreditAccount {
  /** Credits charged, according to the service's responses. */
  readonly spent: number;
  /** The number of paid calls. */
  readonly calls: number;
  /** Estimated credits for calls whose charge is unknown. Budgets count them as spent. */
  readonly uncertain: number;
  /** The sum of the highest expected costs of all calls in progress. */
  readonly reserved: number;
  /** The sum of the lowest expected costs of all calls in progress. */
  readonly reservedAtLeast: number;
  /** The number of paid calls in progress. */
  readonly paidInFlight: number;
  /** The balance in the service's latest response. */
  readonly remaining: number | undefined;
  /** The prices that were charged to the API key. Empty for accounts of connections and tool calls. */
  readonly prices: Prices;
  /** The UTC day of the spending, e.g. `2026-11-22`, if the budget is for one day. */
  readonly day?: string;
}

/** A request to reserve credits for one call. */
export interface ReserveRequest {
  budget: number;
  /** The credits to reserve: the highest expected cost, or the lowest expected cost if there is no upper bound. */
  credits: number;
  /** The lowest expected cost. The call is refused if the budget does not cover this cost. */
  atLeast: number;
  /** True if the call counts toward the limit on concurrent paid calls. */
  isPaid: boolean;
  /** The highest price seen for any operation of the API key. */
  maxPrice: number;
  /** Calls with the same queue name run one at a time. Set for calls of unknown price. */
  queue?: string | undefined;
  /**
   * The credits to count as spent if the process ends before the call is settled. If undefined, all remaining credits
   * count as spent.
   */
  ifLost?: number | undefined;
}

/** The credits that are reserved for a call in progress. */
export interface Lease {
  id: string;
  credits: number;
  isPaid: boolean;
}

/** The ledger's decision about a call: start now, wait, or refuse. */
export type Admission =
  | { kind: 'granted'; lease: Lease; account: CreditAccount }
  /** A call in progress must end first. Pass `version` to `changed` to wait for that. */
  | { kind: 'wait'; version: string }
  | { kind: 'refused'; account: CreditAccount };

/** The cost of a finished call, to be recorded in one account. */
export interface Settlement {
  /** Identifies the settlement. If several processes settle the same call, the call is counted once. */
  id?: string;
  charged: number;
  /** Credits that the service may have charged in addition to `charged`. */
  uncertain: number;
  isPaidAnswer: boolean;
  /** The balance in the response, if the service stated one. */
  remaining?: number | undefined;
  /** Restarts the retention period of the account's spending, as after a paid call. */
  extendsRetention?: true;
  /** Adds the price of this call. Returns the same `prices` object if there is nothing to add. */
  updatePrices?(prices: Prices): Prices;
}

/** A full usage window of an API key. A usage window is the service's hourly or daily limit on credits. */
export interface FullWindow {
  usageLimit: UsageLimitAnswer;
  /** Credits left in the hourly or the daily window, whichever is lower. */
  remaining: number;
  /** When the server last requested the usage windows from the service, in milliseconds on a monotonic clock. */
  checkedAt: number;
  /** A random id that is new for each response of the service. */
  id: string;
}

/**
 * Stores the full usage windows of API keys. If an entry is lost, the service refuses one additional call, and nothing
 * worse happens.
 */
export interface FullWindows {
  get(tenantId: string): Promise<FullWindow | undefined>;
  set(tenantId: string, window: FullWindow | undefined): Promise<void>;
}

/** Stores the credit accounts. An account with spending is never evicted to make room for one without spending. */
export interface CreditLedger {
  /** Returns an account. Rejects with `unavailable` if the store cannot be reached. */
  read(tenantId: string): Promise<CreditAccount>;
  /** Returns an account for an estimate. If the store cannot be reached, the returned account may be out of date. */
  estimate(tenantId: string): Promise<CreditAccount>;
  /**
   * Reserves credits if the budget allows the call to start now. Otherwise tells the caller to wait, or refuses the
   * call. Rejects with `unavailable` if the store cannot be reached.
   * @param buildRequest builds the request from the current state of the account, because the price depends on this
   *   state
   */
  reserve(tenantId: string, buildRequest: (account: CreditAccount) => ReserveRequest): Promise<Admission>;
  /**
   * Resolves when the account is no longer at `version`. Rejects with the reason of the signal if that aborts first.
   */
  changed(tenantId: string, version: string, signal: AbortSignal): Promise<void>;
  /**
   * Records the cost of a call and ends its lease in one transaction. Never rejects: a settlement that fails is retried
   * later.
   */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void>;
}

/** Returns the credits that a budget counts as used: spent, uncertain and reserved credits. */
export const sumUsedCredits = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/**
 * Returns true if a cost is within the remaining credits. Tolerates floating-point errors in sums of fractional
 * credits.
 */
export const isAffordable = (credits: number, remaining: number): boolean => credits <= remaining + 1e-6;

/** The largest number of concurrent paid calls for an account with a budget. */
const maxConcurrentPaidCalls = 4;

/**
 * Decides when a call may start under a budget: `now`, `later` or `never`.
 *
 * - Never: the lowest cost of the call does not fit the unspent credits, minus the lowest costs of calls in progress.
 * - Later: the highest cost of the call does not fit the unspent credits, minus the highest costs of calls in progress.
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
