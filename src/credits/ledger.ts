import type { UsageLimitAnswer } from '../api/schemas.ts';
import type { Prices } from './prices.ts';

/** The credit account of an API key, a connection or a tool call. */
export interface CreditAccount {
  /** The credits that the service stated it charged. */
  readonly spent: number;
  /** The number of paid calls. */
  readonly calls: number;
  /** The estimated credits of calls whose charge is unknown. A budget counts these credits as spent. */
  readonly uncertain: number;
  /** The highest cost of all calls in progress. */
  readonly reserved: number;
  /** The lowest cost of all calls in progress. */
  readonly reservedAtLeast: number;
  /** The number of paid calls in progress. */
  readonly paidInFlight: number;
  /** The balance that the service stated last. */
  readonly remaining: number | undefined;
  /** The prices that the key has seen. Accounts of connections and tool calls have none. */
  readonly prices: Prices;
  /** The UTC day of the spending, such as `2026-11-22`, if the budget is for one day. */
  readonly day?: string;
}

/** The request to reserve credits for a call. */
export interface ReserveRequest {
  budget: number;
  /** The credits to reserve: the highest expected cost, or the lowest if no charge bounds the cost. */
  credits: number;
  /** The lowest expected cost. The call is refused if the budget does not cover it. */
  atLeast: number;
  /** Whether the call counts toward the limit of concurrent paid calls. */
  isPaid: boolean;
  /** The highest price seen for any operation. */
  maxPrice: number;
  /** The name of the queue of a call with unknown price. The calls of a queue run one at a time. */
  queue?: string | undefined;
  /** The credits to count if the process ends before the call is settled. Undefined counts all remaining credits. */
  ifLost?: number | undefined;
}

/** The reservation of a call in progress. */
export interface Lease {
  id: string;
  credits: number;
  isPaid: boolean;
}

/** The decision whether a call may start. */
export type Admission =
  | { kind: 'granted'; lease: Lease; account: CreditAccount }
  /** A call in progress has to end first. `changed` waits for this, with `version`. */
  | { kind: 'wait'; version: string }
  | { kind: 'refused'; account: CreditAccount };

/** The result of a call for an account. */
export interface Settlement {
  /** The id of the settlement. If several processes settle the same call, the call counts once. */
  id?: string;
  charged: number;
  /** The credits that the service may have charged in addition. */
  uncertain: number;
  isPaidAnswer: boolean;
  /** The balance that the service stated. */
  remaining?: number | undefined;
  /** Restarts the time after which the spending expires, as if it had happened just now. */
  extendsRetention?: true;
  /** Adds the price of the call to the prices. Returns the same object if the call adds nothing new. */
  updatePrices?(prices: Prices): Prices;
}

/** A usage window of a tenant that is full. */
export interface FullWindow {
  usageLimit: UsageLimitAnswer;
  /** The credits left in the hourly or the daily window, whichever has less. */
  remaining: number;
  /** When the server last requested the windows from the service, in milliseconds. */
  checkedAt: number;
  /** A random id. Each answer of the service has another id. */
  id: string;
}

/** The full windows of tenants. If a full window is forgotten, the service refuses one more call. */
export interface FullWindows {
  get(tenantId: string): Promise<FullWindow | undefined>;
  set(tenantId: string, window: FullWindow | undefined): Promise<void>;
}

/** The accounts of all tenants. An account without spending never displaces an account with spending. */
export interface CreditLedger {
  /** Reads an account. Rejects with `unavailable` if the store of the account cannot be reached. */
  read(tenantId: string): Promise<CreditAccount>;
  /** Reads an account for an estimate. If the store cannot be reached, the account may be out of date. */
  estimate(tenantId: string): Promise<CreditAccount>;
  /**
   * Reserves credits if the budget allows the call now. Otherwise the call has to wait, or is refused. Rejects with
   * `unavailable` if the store cannot be reached.
   * @param requestOf builds the request from the current account, because the price depends on the account
   */
  reserve(tenantId: string, requestOf: (account: CreditAccount) => ReserveRequest): Promise<Admission>;
  /** Resolves when the account has changed since `version`, or rejects with the reason of the signal. */
  changed(tenantId: string, version: string, signal: AbortSignal): Promise<void>;
  /**
   * Records the cost of a call and ends its lease, in one step. Never rejects, because a settlement that fails is
   * repeated later.
   */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void>;
}

/** Returns the credits that a budget counts as spent or reserved. */
export const sumUsedCredits = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/** Returns whether credits fit into the remaining credits. Allows for rounding errors in sums of fractions. */
export const isAffordable = (credits: number, remaining: number): boolean => credits <= remaining + 1e-6;

/** The most concurrent paid calls of one account, if there is a budget. */
const maxConcurrentPaidCalls = 4;

/**
 * Decides whether a call may start under a budget: `now`, `later` or `never`.
 *
 * A call is refused if its lowest cost exceeds the budget minus the spending and the lowest costs of the calls in
 * progress. A call waits while its highest cost exceeds the budget minus the spending and the highest costs of the calls
 * in progress. Four paid calls may run at once. If fewer credits are left than four times the highest price, only one may
 * run. If the service then raises its price, the budget is exceeded by the rise of at most one
 * call.
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
