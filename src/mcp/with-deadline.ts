/**
 * Runs work with a signal that aborts when any of the given ones does, or with a `TimeoutError` when time is up.
 * Nothing is left behind on signals that outlive the work, as `AbortSignal.any` would leave it.
 */
export async function withDeadline<Value>(
  { signals, ms }: { signals: readonly AbortSignal[]; ms: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  const cleanUps = signals.map((signal) => {
    const abort = () => controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    return () => signal.removeEventListener('abort', abort);
  });
  const timer = setTimeout(() => controller.abort(new DOMException('Time is up', 'TimeoutError')), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    for (const cleanUp of cleanUps) cleanUp();
  }
}
