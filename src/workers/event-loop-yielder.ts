import { setImmediate } from 'node:timers/promises';

/** How long this thread may compute before other callers get an event-loop turn, in milliseconds. */
const maxComputingMs = 5;

/**
 * Returns a function to await between the steps of long work in the thread that answers callers. It gives other callers
 * an event-loop turn if the work has computed for long enough since the last turn.
 */
export function createEventLoopYielder(): () => Promise<void> {
  let lastYieldAt = performance.now();
  return async () => {
    if (performance.now() - lastYieldAt < maxComputingMs) return;
    await setImmediate();
    lastYieldAt = performance.now();
  };
}
