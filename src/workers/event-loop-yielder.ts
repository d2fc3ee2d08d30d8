import { setImmediate as yieldToEventLoop } from 'node:timers/promises';

/** How long a computation may block the event loop, in milliseconds. */
const maxBlockingMs = 5;

/**
 * Returns a function that a long computation must await between its steps. The function yields to the event loop if
 * `maxBlockingMs` have passed since the last yield, so that other calls make progress.
 */
export function createEventLoopYielder(): () => Promise<void> {
  let lastYieldAt = performance.now();
  return async () => {
    if (performance.now() - lastYieldAt < maxBlockingMs) return;
    await yieldToEventLoop();
    lastYieldAt = performance.now();
  };
}
