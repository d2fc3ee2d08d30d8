import type { UsageLimitAnswer } from '../api/schemas.ts';
import type { Prices } from './prices.ts';

/** What is known of the credits of an API key, a connection, or a tool call. */
export interface CreditAccount {
  /** Credits that the service stated it charged, and the number of the paid calls. */
  readonly spent: number;
  readonly calls: number;
  /** Estimated credits of calls that may have been charged without stating it. A budget counts them as spent. */
  readonly uncertain: number;
  /** Credits reserved for calls in progress: what they may cost at most, and what they cost at least. */
  readonly reserved: number;
  readonly reservedAtLeast: number;
  readonly paidInFlight: number;
  readonly remaining: number | undefined;
  /** The prices that the key has seen. Accounts of connections and tool calls have none. */
  readonly prices: Prices;
  /** The day (UTC, ISO text) whose spending this is, where a budget is for one day. */
  readonly day?: string;
}

export interface ReserveRequest {
  budget: number;
  /** Credits to reserve: the highest expected cost, or the lowest if nothing bounds it. */
  credits: number;
  /** The lowest expected cost. The call is refused if the budget does not cover it. */
  atLeast: number;
  /** Counts towards the limit of concurrent paid calls. */
  isPaid: boolean;
  /** The highest price seen for any operation. */
  maxPrice: number;
  /** Calls of unknown price run one at a time: the name of their queue. */
  queue?: string | undefined;
  /** Credits to count if the process ends before the call is settled; undefined counts the rest of the budget. */
  ifLost?: number | undefined;
}

export interface Lease {
  id: string;
  credits: number;
  isPaid: boolean;
}

export type Admission =
  | { kind: 'granted'; lease: Lease; account: CreditAccount }
  /** A call in progress has to end first; pass `version` to `changed`. */
  | { kind: 'wait'; version: string }
  | { kind: 'refused'; account: CreditAccount };

export interface Settlement {
  /** Where several processes find out how a call ended, it counts once. */
  id?: string;
  charged: number;
  /** Credits that it may have charged in addition. */
  uncertain: number;
  isPaidAnswer: boolean;
  remaining?: number | undefined;
  /** The spending counts for longer, as if it had happened just now. */
  extendsRetention?: true;
  /** Returns the prices with what the call showed, or the same prices if it showed nothing new. */
  updatePrices?(prices: Prices): Prices;
}

/** The usage windows of a tenant, the credits left in them, and when the service was last asked. */
export interface FullWindow {
  usageLimit: UsageLimitAnswer;
  remaining: number;
  checkedAt: number;
  /** A new one each time the windows were read. */
  id: string;
}

/** The full windows of tenants. One that is forgotten costs a refused call. */
export interface FullWindows {
  get(tenantId: string): Promise<FullWindow | undefined>;
  set(tenantId: string, window: FullWindow | undefined): Promise<void>;
}

/** The accounts of all tenants. Tenants who spent nothing never displace those who spent something. */
export interface CreditLedger {
  /** Rejects with `unavailable` if the account cannot be read, because it is not in this process. */
  read(tenantId: string): Promise<CreditAccount>;
  /** The same for estimates: where the account cannot be read, what this process knows of it. */
  estimate(tenantId: string): Promise<CreditAccount>;
  /**
   * Reserves credits if the budget allows it now; otherwise the call has to wait, or is refused. Rejects with
   * `unavailable` if the account cannot be reached.
   * @param requestOf what to reserve, by the prices of the account as it is
   */
  reserve(tenantId: string, requestOf: (account: CreditAccount) => ReserveRequest): Promise<Admission>;
  /** Resolves when the account has changed since that version, or rejects with the signal's reason. */
  changed(tenantId: string, version: string, signal: AbortSignal): Promise<void>;
  /**
   * Records how a call ended and returns its lease, in one step. Never rejects: a settlement that fails is repeated
   * later.
   */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void>;
}

/** Credits that a budget counts as spent or reserved. */
export const sumUsedCredits = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/** Returns whether credits fit, with room for rounding errors in sums of fractions. */
export const isAffordable = (credits: number, remaining: number): boolean => credits <= remaining + 1e-6;

/** Concurrent paid calls of one account, if there is a budget. */
const maxConcurrentPaidCalls = 4;

/**
 * Decides whether a call may start under a budget. The call is refused if its lowest cost does not fit beside what is
 * spent and the lowest costs of the calls in progress. It waits while its highest cost does not fit beside what those
 * calls may cost. Four paid calls may run at once, but only one if less is left than four times the highest price seen:
 * then a price that rises unseen exceeds the budget by the rise of one call at most.
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
