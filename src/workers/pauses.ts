import { setImmediate } from 'node:timers/promises';

/** How long others may have to wait for a turn of this thread, in milliseconds. */
const computingMs = 5;

/** For long work in the thread that answers callers: each pause gives others a turn, once this has computed long enough. */
export function pauses(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < computingMs) return;
    await setImmediate();
    since = performance.now();
  };
}
