import { setMaxListeners } from 'node:events';
import { AdLibraryError } from './errors.ts';

/** Returns the result of `promise`. If `signal` aborts first, rejects with the signal's reason. */
export async function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let rejectWithReason = () => {};
  const aborted = new Promise<never>((_, reject) => {
    rejectWithReason = () => reject(signal.reason);
  });
  if (signal.aborted) rejectWithReason();
  signal.addEventListener('abort', rejectWithReason, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', rejectWithReason);
  }
}

/**
 * Aborts the controller when one of the signals aborts. Returns a function that removes the listeners.
 * `AbortSignal.any` is not used, because its listeners cannot be removed and would accumulate on long-lived signals.
 */
function abortWithSignals(controller: AbortController, signals: readonly AbortSignal[]): () => void {
  const removeListeners = signals.map((signal) => {
    const abort = () => controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    return () => signal.removeEventListener('abort', abort);
  });
  return () => {
    for (const removeListener of removeListeners) removeListener();
  };
}

/** Creates the error that becomes the reason of an abort signal when its deadline has passed. */
export const createTimeoutError = (): DOMException => new DOMException('Time is up', 'TimeoutError');

/**
 * Returns the error for a call whose signal has aborted. The kind of error is `timeout` if a deadline has passed, and
 * `network` otherwise.
 * @param wasSent false if it is certain that the request never left this process
 */
export function createAbortError({ reason }: AbortSignal, wasSent: boolean): AdLibraryError {
  const isTimeout = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = isTimeout ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: isTimeout ? 'timeout' : 'network', problem, ...(!wasSent && { wasSent }) });
}

/**
 * Converts the error of a failed call to an `AdLibraryError`. Returns undefined for an unexpected error, such as a bug.
 * An error is unexpected if it is not an `AdLibraryError` and the signal has not aborted.
 */
export const toAdLibraryError = (error: unknown, signal: AbortSignal): AdLibraryError | undefined =>
  error instanceof AdLibraryError ? error : signal.aborted ? createAbortError(signal, true) : undefined;

/**
 * Runs `work` with a deadline.
 * @param options the signals that abort `work`, and the time in milliseconds after which a `TimeoutError` aborts it
 * @param work receives the signal that aborts it
 */
export async function withDeadline<Value>(
  { signals, timeoutMs }: { signals: readonly AbortSignal[]; timeoutMs: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  // Remove the limit on listeners. `work` may add many of them, and Node warns of a memory leak at more than ten.
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
