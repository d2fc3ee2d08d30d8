import type { Prices } from './prices.ts';

/** What is known of one tenant's credits. */
export interface CreditAccount {
  /** Credits that the service says it charged for calls made here, and in how many calls. */
  readonly spent: number;
  readonly calls: number;
  /** Credits of calls that may have been charged, estimated: no charge was stated. A budget counts them as spent. */
  readonly uncertain: number;
  /** Credits set aside for calls under way, and how many of those are paid. */
  readonly reserved: number;
  readonly paidUnderWay: number;
  /** Credits left, as the service last said. */
  readonly remaining: number | undefined;
  /** Calls that kept answers made unnecessary, and what they would have cost again. */
  readonly savedCalls: number;
  readonly savedCredits: number;
  readonly prices: Prices;
}

/** What a call wants of its tenant's budget. */
export interface ReserveRequest {
  budget: number;
  /** Credits to set aside. */
  credits: number;
  /** Takes one of the places that paid calls have. */
  paid: boolean;
  /** Calls of unknown price go one at a time: the name of their line. */
  line?: string | undefined;
}

/** Credits set aside for one call. */
export interface Lease {
  tenantId: string;
  credits: number;
  paid: boolean;
  line: string | undefined;
  /** In the order in which leases were given. */
  number: number;
}

export type Admission =
  | { kind: 'granted'; lease: Lease }
  /** Something that is under way has to end first: `version` is for `changed`. */
  | { kind: 'wait'; version: number }
  | { kind: 'refused'; account: CreditAccount };

/** How a call ended, for the account. */
export interface Settlement {
  /** Credits that the service says it charged. */
  charged: number;
  /** Credits that it may have charged besides. */
  uncertain: number;
  /** An answer came that was paid for. */
  isPaidAnswer: boolean;
  remaining?: number | undefined;
  /** Writes into the prices what was learned. */
  learn?(prices: Prices): void;
}

/** A reading of the balance, to find out what calls in between were charged. */
export interface BalanceReading {
  credits: number;
  /** Credits stated since for calls that began after the reading. */
  explained: number;
  /** Leases up to this number began before the reading. */
  lease: number;
  /** In milliseconds since the epoch. */
  at: number;
}

/** The accounts of all tenants. What was spent is never forgotten to make room for tenants who spent nothing. */
export interface CreditLedger {
  read(tenantId: string): Promise<CreditAccount>;
  /** Sets credits aside where the budget allows it now; says to wait, or that they do not fit. */
  reserve(tenantId: string, request: ReserveRequest): Promise<Admission>;
  /** Resolves when the account is no longer as it was at that version, or rejects with the signal's reason. */
  changed(tenantId: string, version: number, signal: AbortSignal): Promise<void>;
  /** Writes down how a call ended and gives its lease back, in one step. */
  settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void>;
  /** A kept answer made a call unnecessary that would have cost so much. */
  saved(tenantId: string, credits: number): Promise<void>;
  /** Keeps a reading of the balance, or forgets it; returns the one before with what explains its change. */
  readBalance(tenantId: string, credits: number | undefined): Promise<BalanceReading | undefined>;
}
