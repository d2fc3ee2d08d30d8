import { AdLibraryError } from './errors.ts';

/** Settles as the promise does, or rejects with the reason of the signal if that aborts first. */
export function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    const stay = () => signal.removeEventListener('abort', leave);
    promise.then(resolve, reject).then(stay);
  });
}

/**
 * Has the controller abort when any of the signals does; returns what ends that. Nothing is left behind on signals
 * that outlive it, as `AbortSignal.any` would leave it.
 */
export function follow(controller: AbortController, signals: readonly AbortSignal[]): () => void {
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

/** The reason of an abort where time is up. */
export const timeIsUp = (): DOMException => new DOMException('Time is up', 'TimeoutError');

/** What became of a call whose signal aborted: the deadline, or a caller who left. */
export function abortedError({ reason }: AbortSignal, sent: boolean): AdLibraryError {
  const late = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = late ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: late ? 'timeout' : 'network', problem, ...(!sent && { sent }) });
}
