import { setMaxListeners } from 'node:events';
import { AdLibraryError } from './errors.ts';

/** Settles like the promise, or rejects with the signal's reason if that aborts first. */
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
 * Aborts the controller when any of the signals aborts; returns a function that stops this. Unlike `AbortSignal.any`,
 * it then leaves nothing behind on signals that outlive it.
 */
function follow(controller: AbortController, signals: readonly AbortSignal[]): () => void {
  const ends = signals.map((signal) => {
    const abort = () => controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    return () => signal.removeEventListener('abort', abort);
  });
  return () => {
    for (const end of ends) end();
  };
}

export const timeIsUp = (): DOMException => new DOMException('Time is up', 'TimeoutError');

export function abortedError({ reason }: AbortSignal, sent: boolean): AdLibraryError {
  const late = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = late ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: late ? 'timeout' : 'network', problem, ...(!sent && { sent }) });
}

/** The error, if it is one of ours, or else the reason why the signal aborted, if it did. */
export const knownError = (error: unknown, signal: AbortSignal): AdLibraryError | undefined =>
  error instanceof AdLibraryError ? error : signal.aborted ? abortedError(signal, true) : undefined;

/** Runs work with a signal that aborts when any of the given ones does, or with a `TimeoutError` when time is up. */
export async function withDeadline<Value>(
  { signals, ms }: { signals: readonly AbortSignal[]; ms: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  // The work may do many things at once; Node warns of a leak from ten listeners on.
  setMaxListeners(0, controller.signal);
  const end = follow(controller, signals);
  const timer = setTimeout(() => controller.abort(timeIsUp()), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    end();
  }
}
