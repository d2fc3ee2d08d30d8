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
