/**
 * How long a test waits for an event before it fails, in milliseconds. The limit is shorter than Vitest's test timeout,
 * so that the error names the missing event. Even on a busy machine, events take far less time.
 */
const eventLimitMs = 30_000;

/**
 * Resolves with the result of the promise. Rejects if the promise does not settle in time.
 * @param event the event to name in the error message, e.g. "the second request"
 */
export async function waitFor<Value>(promise: Promise<Value>, event: string, limitMs = eventLimitMs): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${limitMs} ms for ${event}, which did not happen.`)), limitMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts to wait like `waitFor`, with a limit of one minute, for a test that awaits the result later. If the promise
 * rejects before that, Node does not report an unhandled rejection.
 */
export function waitInBackground<Value>(promise: Promise<Value>, event: string): Promise<Value> {
  const result = waitFor(promise, event, 60_000);
  result.catch(() => {});
  return result;
}

/**
 * Checks a condition until it is true.
 * @param intervalMs the pause between two checks
 * @throws Error with the source code of the condition if the condition does not become true in time
 */
export async function waitUntil(condition: () => boolean | Promise<boolean>, intervalMs = 5): Promise<void> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > eventLimitMs)
      throw new Error(`This condition did not become true within ${eventLimitMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
