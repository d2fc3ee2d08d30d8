import { setImmediate } from 'node:timers/promises';

/** The longest time that this thread may compute before it yields to the event loop, in milliseconds. */
const maxComputingMs = 5;

/**
 * Returns a function to await between the steps of long work in the thread that answers callers. The function yields to
 * the event loop if the work has computed for `maxComputingMs` since it last yielded, so that other calls make progress.
 */
export function createEventLoopYielder(): () => Promise<void> {
  let lastYieldAt = performance.now();
  return async () => {
    if (performance.now() - lastYieldAt < maxComputingMs) return;
    await setImmediate();
    lastYieldAt = performance.now();
  };
}
