import type { StateLog } from '../store/state-log.ts';
import { Renewals } from './renewals.ts';

/** How old the last look at the memory may be, in milliseconds. */
const goodEnoughMs = 2000;
/** The part of the memory from which on only what is necessary is kept, and the part at which there is room again. */
const nearlyFull = 0.8;
const roomAgain = 0.75;

export interface RedisMemoryOptions {
  /** Asks for `INFO memory`. */
  info(): Promise<unknown>;
  /** Tries to write something. */
  write(): Promise<unknown>;
  log: StateLog;
}

/** Looks after the memory of Redis, and logs once what is wrong with it. */
export class RedisMemory {
  readonly #options: RedisMemoryOptions;
  readonly #writes: Renewals;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #isTight = false;
  #policy: string | undefined;
  /** The code of the error with which it refuses new values. */
  #refusedBy: string | undefined;

  constructor(options: RedisMemoryOptions) {
    this.#options = options;
    this.#writes = new Renewals(() => this.#tryToWrite());
  }

  /** Whether what can be done without should not be kept, so that there is room for what was spent. */
  isTight(): boolean {
    if (performance.now() - this.#checkedAt > goodEnoughMs) void this.check().catch(() => {});
    return this.#isTight;
  }

  async check(): Promise<void> {
    this.#checkedAt = performance.now();
    const lines = String(await this.#options.info()).split('\r\n');
    const info = new Map(lines.map((line) => line.split(':')).map(([name, value]) => [name, value]));
    const [used, max] = [Number(info.get('used_memory') ?? 0), Number(info.get('maxmemory') ?? 0)];
    this.#checkPolicy(max > 0 ? info.get('maxmemory_policy') : undefined);
    const isTight = max > 0 && used > (this.#isTight ? roomAgain : nearlyFull) * max;
    if (isTight && !this.#isTight)
      this.#options.log.warn('the shared state is nearly full: answers and cursors are no longer kept in it', {
        used,
        max,
      });
    this.#isTight = isTight;
  }

  /** Notes that it refused a command. */
  refused(reply: string): void {
    const code = /^(?:OOM|MISCONF)(?= )/.exec(reply)?.[0];
    if (code === undefined || code === this.#refusedBy) return;
    this.#refusedBy = code;
    this.#options.log.warn('the shared state takes no new values', { problem: reply });
    this.#writes.start();
  }

  close(): void {
    this.#writes.stop();
  }

  async #tryToWrite(): Promise<void> {
    await this.#options.write();
    this.#refusedBy = undefined;
    this.#writes.stop();
    this.#options.log.info('the shared state takes new values again');
  }

  /** Redis must refuse new values when it is full, and not forget what was spent. */
  #checkPolicy(policy: string | undefined): void {
    if (policy === this.#policy) return;
    this.#policy = policy;
    if (policy === undefined || policy === 'noeviction') return;
    this.#options.log.warn('the shared state may forget what was spent: set maxmemory-policy to noeviction', {
      policy,
    });
  }
}
