import type { Log } from './log.ts';

/** One tool call that has ended. */
export interface CallEvent {
  /** `unknown` where it is none of ours: such a name is the caller's text. */
  tool: string;
  /** Whose call it was. Never logged. */
  tenantId: string;
  ms: number;
  /** Why it failed; `cancelled` when nobody waits for it any more. */
  kind?: string | undefined;
  /** HTTP status of the service's error. */
  status?: number | undefined;
  requestId?: string | null | undefined;
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

export type OnCall = (event: CallEvent) => void;

export const logCalls =
  (log: Log): OnCall =>
  ({ tenantId: _, ...fields }) =>
    log.info('call', fields);
