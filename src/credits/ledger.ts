import type { UsageLimitAnswer } from '../api/schemas.ts';
import { maxPrice, type Prices } from './prices.ts';

export interface CreditAccount {
  /** Credits that the service stated it charged for calls made here, and the number of those calls. */
  readonly spent: number;
  readonly calls: number;
  /** Estimated credits of calls that may have been charged without stating it. A budget counts them as spent. */
  readonly uncertain: number;
  readonly reserved: number;
  readonly paidInFlight: number;
  readonly remaining: number | undefined;
  readonly prices: Prices;
  /** The day (UTC, ISO text) whose spending this is, where a budget is for one day. */
  readonly day?: string;
}

export interface ReserveRequest {
  budget: number;
  /** Credits to reserve: the expected cost, or the least. */
  credits: number;
  /** Counts towards the limit of concurrent paid calls. */
  paid: boolean;
  /** Calls of unknown price run one at a time: the name of their queue. */
  line?: string | undefined;
  /** Credits to count if the process ends before the call is settled; undefined counts the rest of the budget. */
  ifLost?: number | undefined;
}

export interface Lease {
  id: string;
  credits: number;
  paid: boolean;
  line: string | undefined;
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
  keeps?: true;
  /** The call was answered without a charge, and the balance shows none yet: `uncertain` is what counts until then. */
  isUnshown?: boolean;
  /** The prices with what was learned; the same ones if that is nothing new. */
  learn?(prices: Prices): Prices;
}

/** A reading of the balance. Two of them show what the calls in between were charged. */
export interface BalanceReading {
  credits: number;
  /** Charges stated since then for calls that began after the reading. */
  explained: number;
  /** Leases up to this number began before the reading. */
  lease: number;
  /** An answered call since then stated no charge, and the balance shows none yet. */
  isUnshown?: boolean;
  /** In milliseconds since the epoch. */
  at: number;
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
   * later. Resolves to the number of the settlement, where replicas number answers by it: higher than all before.
   */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<number | undefined>;
  /**
   * Stores a reading of the balance, or removes it; returns the previous one. A reading stays where a charge has yet to
   * show and the balance is the same.
   */
  readBalance(tenantId: string, credits: number | undefined): Promise<BalanceReading | undefined>;
}

/** Concurrent paid calls of one tenant, if there is a budget. */
const maxPaidAtOnce = 4;

/** Credits that a budget counts as spent or reserved. */
export const used = ({ spent, uncertain, reserved }: CreditAccount): number => spent + uncertain + reserved;

/**
 * The rule of a budget: a call is refused if its credits do not fit beside what is spent and reserved. Four paid calls
 * may run at once, but only one if less is left than four times the highest price seen: then a price that rises unseen
 * exceeds the budget by the rise of one call at most.
 */
export function admit(account: CreditAccount, { budget, credits, paid }: ReserveRequest): 'now' | 'later' | 'never' {
  const remaining = budget - used(account);
  if ((credits > 0 || paid) && !fits(credits, remaining)) return 'never';
  if (!paid) return 'now';
  const maxPaid = fits(maxPaidAtOnce * maxPrice(account.prices), remaining) ? maxPaidAtOnce : 1;
  return account.paidInFlight < maxPaid ? 'now' : 'later';
}

/** Allows for rounding errors in sums of fractions. */
export const fits = (credits: number, remaining: number): boolean => credits <= remaining + 1e-6;
