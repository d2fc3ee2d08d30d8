import type { Log } from './log.ts';

/** One tool call that has ended. */
export interface CallEvent {
  /** `unknown` if there is no such tool: its name is caller input. */
  tool: string;
  /** Never logged. */
  tenantId: string;
  ms: number;
  /** Why it failed; `cancelled` if its caller left. */
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
