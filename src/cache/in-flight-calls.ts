import { createAbortError, createTimeoutError, raceAbort } from '../api/abort.ts';
import type { ApiCall, CallProgress, SendCall, ServiceResponse } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';

/** The limits of the calls in progress, and the function to call when a response is lost. */
export interface InFlightCallOptions {
  /**
   * The maximum number of calls in progress per tenant (API key), including calls for which no caller is waiting any
   * more.
   */
  maxCallsPerTenant: number;
  /** The maximum number of calls in progress for all tenants together. */
  maxCalls: number;
  /**
   * How long a call may take after its start, in milliseconds, even if its callers have disconnected. This is also the
   * time limit of a tool call.
   */
  timeoutMs: number;
  /** Called by `close` for each call that was sent but got no response. The service may have charged for the call. */
  onResponseLost(call: ApiCall): void;
}

/**
 * How long `close` waits for aborted calls to record their cost, in milliseconds. After that, the process closes the
 * ledger, so that no cost can be recorded any more.
 */
const maxSettlementWaitMs = 1000;

interface TrackedCall {
  call: ApiCall;
  abortController: AbortController;
  callerCount: number;
  completion: Promise<void>;
}

/** A call in progress, which any number of callers can share. */
export interface InFlightCall {
  call: ApiCall;
  /** Resolves when the call has succeeded or failed. Never rejects. */
  completion: Promise<void>;
  /** Adds a caller to the call and resolves to the response. Rejects if `signal` aborts before the response arrives. */
  joinCall(signal: AbortSignal): Promise<ServiceResponse>;
  isAborted(): boolean;
}

/**
 * Creates a tracker of calls in progress, which is independent of their callers.
 *
 * A call that was sent continues even if all callers disconnect. The service charges for it anyway, and its cached
 * response serves the next identical call. A call that was not sent yet is aborted when its last caller disconnects.
 */
export function createInFlightCallTracker({
  maxCallsPerTenant,
  maxCalls,
  timeoutMs,
  onResponseLost,
}: InFlightCallOptions) {
  const trackedCalls = new Set<TrackedCall>();
  const countCallsOfTenant = (tenantId: string) =>
    [...trackedCalls].filter(({ call }) => call.owner.tenantId === tenantId).length;

  const runTracked = async (trackedCall: TrackedCall, send: SendCall): Promise<ServiceResponse> => {
    const { call, abortController } = trackedCall;
    trackedCalls.add(trackedCall);
    const timer = setTimeout(() => abortController.abort(createTimeoutError()), timeoutMs).unref();
    try {
      if (trackedCalls.size > maxCalls || countCallsOfTenant(call.owner.tenantId) > maxCallsPerTenant)
        throw createTooManyCallsError();
      return await send(call);
    } finally {
      clearTimeout(timer);
      trackedCalls.delete(trackedCall);
    }
  };

  const waitUntilSettled = async (maxWaitMs: number) => {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxWaitMs);
    });
    const allSettled = Promise.all([...trackedCalls].map(({ completion }) => completion));
    await Promise.race([allSettled, timeout]).finally(() => clearTimeout(timer));
  };

  return {
    /**
     * Starts a call that continues even if its callers disconnect. If too many calls are in progress, the call fails
     * with the error `busy`.
     */
    startCall(callToStart: ApiCall, send: SendCall): InFlightCall {
      const abortController = new AbortController();
      const progress: CallProgress = { isSent: false, hasWaitingCaller: () => trackedCall.callerCount > 0 };
      const { request, owner, cacheOptions, creditLimit } = callToStart;
      const call: ApiCall = {
        request,
        owner,
        signal: abortController.signal,
        cacheOptions,
        creditLimit,
        progress,
      };
      const trackedCall: TrackedCall = {
        call,
        abortController,
        callerCount: 0,
        completion: Promise.resolve(),
      };
      const pendingResponse = runTracked(trackedCall, send);
      trackedCall.completion = pendingResponse.then(
        () => {},
        () => {},
      );
      return {
        call,
        completion: trackedCall.completion,
        joinCall: (signal) => awaitResponse(trackedCall, pendingResponse, signal),
        isAborted: () => abortController.signal.aborted,
      };
    },
    /**
     * Waits up to `maxWaitMs` milliseconds for calls in progress. Then aborts all remaining calls and waits until their
     * cost is recorded.
     */
    async close(maxWaitMs: number) {
      if (maxWaitMs > 0) await waitUntilSettled(maxWaitMs);
      for (const { abortController, call } of trackedCalls) {
        if (call.progress.isSent || call.progress.mayHaveBeenPerformed) onResponseLost(call);
        abortController.abort();
      }
      await waitUntilSettled(maxSettlementWaitMs);
    },
  };
}

async function awaitResponse(
  trackedCall: TrackedCall,
  pendingResponse: Promise<ServiceResponse>,
  signal: AbortSignal,
): Promise<ServiceResponse> {
  const { abortController, call } = trackedCall;
  trackedCall.callerCount++;
  try {
    return await raceAbort(pendingResponse, signal);
  } catch (error) {
    throw signal.aborted && error === signal.reason
      ? createAbortError(signal, call.progress.isSent || call.progress.mayHaveBeenPerformed === true)
      : error;
  } finally {
    trackedCall.callerCount--;
    if (trackedCall.callerCount === 0 && !call.progress.isSent) abortController.abort(signal.reason);
  }
}

const createTooManyCallsError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many cancelled calls are still waiting for the service.',
    wasSent: false,
    details: { retryAfterSeconds: 10 },
  });
