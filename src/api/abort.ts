import { setMaxListeners } from 'node:events';
import { AdLibraryError } from './errors.ts';

/** Settles like the promise, or rejects with the signal's reason if the signal aborts first. */
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
 * Aborts the controller when one of the signals aborts. Returns a function that removes the listeners from the signals.
 * `AbortSignal.any` has no such function and leaves its listeners on signals that live longer.
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

/** Returns the reason with which a signal aborts when a deadline has passed. */
export const timeIsUp = (): DOMException => new DOMException('Time is up', 'TimeoutError');

/**
 * Returns the error of a call whose signal has aborted: `timeout` after a deadline, otherwise `network`.
 * @param sent false if the request has certainly not left the process
 */
export function abortedError({ reason }: AbortSignal, sent: boolean): AdLibraryError {
  const isTimeout = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = isTimeout ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: isTimeout ? 'timeout' : 'network', problem, ...(!sent && { sent }) });
}

/**
 * Returns the error itself if it is an `AdLibraryError`. Otherwise returns the error of the abort if the signal has
 * aborted, and undefined if the error is unexpected.
 */
export const knownError = (error: unknown, signal: AbortSignal): AdLibraryError | undefined =>
  error instanceof AdLibraryError ? error : signal.aborted ? abortedError(signal, true) : undefined;

/**
 * Runs work with a deadline.
 * @param options the work is aborted when one of the `signals` aborts, or with a `TimeoutError` after `ms` milliseconds
 * @param work receives the signal that aborts it
 */
export async function withDeadline<Value>(
  { signals, ms }: { signals: readonly AbortSignal[]; ms: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  // Work may add many listeners to the signal. Node would warn about a memory leak if there are more than ten.
  setMaxListeners(0, controller.signal);
  const removeListeners = abortWithSignals(controller, signals);
  const timer = setTimeout(() => controller.abort(timeIsUp()), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    removeListeners();
  }
}
