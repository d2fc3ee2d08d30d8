/**
 * Calls back after so many milliseconds, unless it is stopped before. Answers that have arrived while this process was
 * busy are read first: timers come at the beginning of a turn of the event loop.
 */
export function later(ms: number, callback: () => void): () => void {
  let isStopped = false;
  const end = () => {
    if (!isStopped) callback();
  };
  const timer = setTimeout(() => setImmediate(() => setImmediate(end)), ms);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** Settles like the promise; rejects if that takes too long. */
export function soon<Value>(promise: Promise<Value> | undefined, ms: number): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = later(ms, () => reject(new Error(`no answer within ${ms} ms`)));
    if (promise === undefined) reject(new Error('not connected'));
    promise?.then(resolve, reject).finally(stop);
  });
}
