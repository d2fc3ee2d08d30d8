/** Settles like the promise; rejects if that takes too long, but not because this process was busy in the meantime. */
export function soon<Value>(promise: Promise<Value> | undefined, ms: number): Promise<Value> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${ms} ms`));
    // Answers that have arrived meanwhile are read before that: timers come first in a turn of the event loop.
    const timer = setTimeout(() => setImmediate(() => setImmediate(late)), ms);
    if (promise === undefined) reject(new Error('not connected'));
    promise?.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
