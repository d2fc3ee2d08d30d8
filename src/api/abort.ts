import { setMaxListeners } from 'node:events';
import { AdLibraryError } from './errors.ts';

/** Returns the result of `promise`. Rejects with the reason of `signal` if the signal aborts first. */
export async function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let rejectWithReason = () => {};
  const abortedPromise = new Promise<never>((_, reject) => {
    rejectWithReason = () => reject(signal.reason);
  });
  if (signal.aborted) rejectWithReason();
  signal.addEventListener('abort', rejectWithReason, { once: true });
  try {
    return await Promise.race([promise, abortedPromise]);
  } finally {
    signal.removeEventListener('abort', rejectWithReason);
  }
}

/**
 * Aborts the controller when one of the signals aborts, and returns a function that removes the listeners. The
 * listeners of `AbortSignal.any` cannot be removed, so they would accumulate on signals that live long.
 */
function abortWithSignals(controller: AbortController, signals: readonly AbortSignal[]): () => void {
  const removeListeners = signals.map((signal) => {
    const abortFromSignal = () => controller.abort(signal.reason);
    if (signal.aborted) abortFromSignal();
    signal.addEventListener('abort', abortFromSignal);
    return () => signal.removeEventListener('abort', abortFromSignal);
  });
  return () => {
    for (const removeListener of removeListeners) removeListener();
  };
}

/**
 * Creates the reason with which a signal aborts after a time limit. `createAbortError` recognizes this reason by the
 * name `TimeoutError`.
 */
export const createTimeoutError = (): DOMException => new DOMException('Time is up', 'TimeoutError');

/**
 * Creates the error for a call whose signal has aborted. The kind of the error is `timeout` after a time limit, and
 * `network` otherwise.
 * @param wasSent false if it is certain that the request never left this process
 */
export function createAbortError({ reason }: AbortSignal, wasSent: boolean): AdLibraryError {
  const isTimeout = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = isTimeout ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: isTimeout ? 'timeout' : 'network', problem, ...(!wasSent && { wasSent }) });
}

/**
 * Converts the error of a failed call to an `AdLibraryError`. Returns undefined for an unexpected error, such as a bug,
 * if the signal has not aborted.
 */
export const toAdLibraryError = (error: unknown, signal: AbortSignal): AdLibraryError | undefined =>
  error instanceof AdLibraryError ? error : signal.aborted ? createAbortError(signal, true) : undefined;

/**
 * Runs `work` with a time limit.
 * @param options `work` is aborted when one of `signals` aborts, or with a `TimeoutError` after `timeoutMs`
 * milliseconds
 * @param work receives the signal that aborts it
 */
export async function withDeadline<Value>(
  { signals, timeoutMs }: { signals: readonly AbortSignal[]; timeoutMs: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  // `work` may add many listeners, and Node warns of a memory leak at more than ten. Turn off this warning.
  setMaxListeners(0, controller.signal);
  const removeListeners = abortWithSignals(controller, signals);
  const timer = setTimeout(() => controller.abort(createTimeoutError()), timeoutMs);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    removeListeners();
  }
}
