import { follow, timeIsUp } from '../api/abort.ts';

/** Runs work with a signal that aborts when any of the given ones does, or with a `TimeoutError` when time is up. */
export async function withDeadline<Value>(
  { signals, ms }: { signals: readonly AbortSignal[]; ms: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  const end = follow(controller, signals);
  const timer = setTimeout(() => controller.abort(timeIsUp()), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    end();
  }
}
