import type { RedisConnection } from './redis-connection.ts';

/** How often to look again without a message, in milliseconds: messages may be lost. */
const pollMs = 500;

/** Waits for changes of keys, which whoever changes one publishes. */
export class Waiters {
  readonly channel: string;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(connection: RedisConnection, channel: string) {
    this.channel = channel;
    connection.listen(channel, (key) => this.#wake(key)).catch(() => {});
  }

  /** Resolves when the key may have changed; rejects with the signal's reason. */
  async wait(key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    let wake = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const timer = setTimeout(wake, pollMs);
    signal.addEventListener('abort', wake, { once: true });
    waiting.add(wake);
    await woken;
    clearTimeout(timer);
    signal.removeEventListener('abort', wake);
    waiting.delete(wake);
    if (waiting.size === 0) this.#waiting.delete(key);
    signal.throwIfAborted();
  }

  #wake(key: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake();
  }
}
