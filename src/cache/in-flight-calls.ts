import { createAbortError, createTimeoutError, raceAbort } from '../api/abort.ts';
import type { ApiCall, CallProgress, SendCall, ServiceResponse } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';

export interface InFlightOptions {
  /**
   * The maximum number of calls in progress for one tenant (one API key), including calls that nobody waits for any
   * more.
   */
  maxCallsPerTenant: number;
  /** The maximum number of calls in progress for all API keys together. */
  maxCalls: number;
  /**
   * How long a call may continue after its last caller has disconnected, in milliseconds. Equals the time limit of a
   * tool call.
   */
  timeoutMs: number;
  /** Called at `close` for each call that was sent but received no response. The service may have charged for it. */
  onLost(call: ApiCall): void;
}

/**
 * How long an aborted call may take to record its cost, in milliseconds. After that, the process closes the ledger,
 * which records all costs.
 */
const maxSettleMs = 1000;

interface TrackedCall {
  call: ApiCall;
  abort: AbortController;
  callers: number;
  settled: Promise<void>;
}

/** A call in progress. Any number of callers can join it and wait for its response. */
export interface InFlightCall {
  call: ApiCall;
  /** Resolves when the call has finished, whether it succeeded or failed. */
  settled: Promise<void>;
  /**
   * Adds a caller to the call and returns the call's response. Rejects if `signal` aborts before the response arrives.
   */
  join(signal: AbortSignal): Promise<ServiceResponse>;
  isAborted(): boolean;
}

/**
 * Tracks calls in progress, independently of their callers. A call that was sent continues until its response arrives,
 * even if all callers have disconnected. The service performs and charges the call in any case, and the cached response
 * serves the next identical request. A call that was not sent yet is aborted when its last caller disconnects.
 */
export function trackInFlightCalls({ maxCallsPerTenant, maxCalls, timeoutMs, onLost }: InFlightOptions) {
  const tracked = new Set<TrackedCall>();
  const countCallsOfTenant = (tenantId: string) =>
    [...tracked].filter(({ call }) => call.owner.tenantId === tenantId).length;

  const runTracked = async (entry: TrackedCall, send: SendCall): Promise<ServiceResponse> => {
    const { call, abort } = entry;
    tracked.add(entry);
    const timer = setTimeout(() => abort.abort(createTimeoutError()), timeoutMs).unref();
    try {
      if (tracked.size > maxCalls || countCallsOfTenant(call.owner.tenantId) > maxCallsPerTenant)
        throw createTooManyCallsError();
      return await send(call);
    } finally {
      clearTimeout(timer);
      tracked.delete(entry);
    }
  };

  const waitUntilSettled = async (maxMs: number) => {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxMs);
    });
    const allSettled = Promise.all([...tracked].map(({ settled }) => settled));
    await Promise.race([allSettled, timeout]).finally(() => clearTimeout(timer));
  };

  return {
    /**
     * Starts a call that continues even if its callers disconnect. The call fails with a `busy` error if too many calls
     * are in progress.
     */
    start(callToStart: ApiCall, send: SendCall): InFlightCall {
      const abort = new AbortController();
      const progress: CallProgress = { isSent: false, isWanted: () => entry.callers > 0 };
      const { request, owner, cache, creditLimit } = callToStart;
      const call: ApiCall = { request, owner, signal: abort.signal, cache, creditLimit, progress };
      const entry: TrackedCall = { call, abort, callers: 0, settled: Promise.resolve() };
      const answer = runTracked(entry, send);
      entry.settled = answer.then(
        () => {},
        () => {},
      );
      return {
        call,
        settled: entry.settled,
        join: (signal) => receiveAnswer(entry, answer, signal),
        isAborted: () => abort.signal.aborted,
      };
    },
    /**
     * Waits up to `maxWaitMs` milliseconds for calls in progress. Then aborts the remaining calls and waits until their
     * cost is recorded.
     */
    async close(maxWaitMs: number) {
      if (maxWaitMs > 0) await waitUntilSettled(maxWaitMs);
      for (const { abort, call } of tracked) {
        if (call.progress.isSent || call.progress.mayBePerformed) onLost(call);
        abort.abort();
      }
      await waitUntilSettled(maxSettleMs);
    },
  };
}

async function receiveAnswer(
  entry: TrackedCall,
  answer: Promise<ServiceResponse>,
  signal: AbortSignal,
): Promise<ServiceResponse> {
  const { abort, call } = entry;
  entry.callers++;
  try {
    return await raceAbort(answer, signal);
  } catch (error) {
    throw signal.aborted && error === signal.reason
      ? createAbortError(signal, call.progress.isSent || call.progress.mayBePerformed === true)
      : error;
  } finally {
    entry.callers--;
    if (entry.callers === 0 && !call.progress.isSent) abort.abort(signal.reason);
  }
}

const createTooManyCallsError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many cancelled calls are still waiting for the service.',
    wasSent: false,
    details: { retryAfterSeconds: 10 },
  });
