import type { RedisConnection } from './redis-connection.ts';

/** How often to look again without a message, in milliseconds: messages may be lost. */
const pollMs = 500;

/** Notices changes of a key from when it was made until it is ended. */
export interface Watch {
  /** Resolves when the key may have changed since the last time; rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<void>;
  end(): void;
}

/** Waits for changes of keys, which whoever changes one publishes. */
export class Waiters {
  readonly channel: string;
  readonly #waking = new Map<string, Set<() => void>>();

  constructor(connection: RedisConnection, channel: string) {
    this.channel = channel;
    const wake = (key: string) => {
      for (const one of this.#waking.get(key) ?? []) one();
    };
    connection.listen(channel, wake).catch(() => {});
  }

  watch(key: string): Watch {
    const ofKey = this.#waking.get(key) ?? new Set();
    this.#waking.set(key, ofKey);
    let isChanged = false;
    let resume = () => {};
    const wake = () => {
      isChanged = true;
      resume();
    };
    ofKey.add(wake);
    return {
      next: async (signal) => {
        if (!isChanged && !signal.aborted) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(wake, pollMs);
            signal.addEventListener('abort', wake, { once: true });
            resume = () => {
              clearTimeout(timer);
              signal.removeEventListener('abort', wake);
              resolve();
            };
          });
        }
        isChanged = false;
        signal.throwIfAborted();
      },
      end: () => {
        ofKey.delete(wake);
        if (ofKey.size === 0 && this.#waking.get(key) === ofKey) this.#waking.delete(key);
      },
    };
  }
}
