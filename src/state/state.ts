import type { CallRegister } from '../api/in-flight-calls.ts';
import type { RejectedKeys } from '../api/rejected-keys.ts';
import type { KeptAnswers } from '../api/with-cache.ts';
import type { CallClaims } from '../api/with-claims.ts';
import type { CreditLedger } from '../credits/credit-ledger.ts';
import type { FullWindows } from '../credits/with-usage-windows.ts';

/** Everything that outlives a call, for all tenants: in this process, or shared by all replicas. */
export interface State {
  ledger: CreditLedger;
  answers: KeptAnswers;
  windows: FullWindows;
  calls: CallRegister;
  /** Gated calls in progress in all replicas; undefined where there is only this process. */
  claims?: CallClaims;
  /** The cursors of one tenant. */
  cursorsOf(tenantId: string): CursorMemory;
  rejectedKeys: RejectedKeys;
}

export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** What is remembered about a cursor, for callers who leave the filters out. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, if it is too long to be part of ours. */
  serviceCursor?: string | undefined;
}
