import { randomUUID } from 'node:crypto';
import { abortedError } from '../../api/abort.ts';
import { AdLibraryError, type Failure } from '../../api/errors.ts';
import type { Call } from '../../api/send.ts';
import type { CallClaims, CallOutcome, Claim } from '../../api/with-claims.ts';
import { readAnswer, type WrittenAnswer, writeAnswer } from './answer-codec.ts';
import { claimScript, endScript, lookScript, renewClaimScript } from './claim-script.ts';
import type { Redis } from './open-redis.ts';
import type { Script } from './redis-connection.ts';
import { leaseMs, Renewals } from './renewals.ts';
import type { Waiters } from './waiters.ts';

/** Gated calls in progress in all replicas. While Redis cannot be reached, each replica sends its own. */
export class RedisClaims implements CallClaims {
  readonly #redis: Redis;
  readonly #waiters: Waiters;
  /** What this process has claimed: the key, by the id of the claim. */
  readonly #own = new Map<string, string>();
  readonly #renewals: Renewals;

  constructor(redis: Redis, waiters: Waiters) {
    this.#redis = redis;
    this.#waiters = waiters;
    this.#renewals = new Renewals(() =>
      Promise.all([...this.#own].map(([id, key]) => this.#run(renewClaimScript, key, [id, String(leaseMs)]))),
    );
  }

  async claim(call: Call): Promise<Claim> {
    const { tenantId, fingerprint, signal } = call;
    const key = this.#redis.keyOf(tenantId, 'claim', fingerprint);
    const id = randomUUID();
    try {
      for (;;) {
        const [state, detail] = await this.#run(claimScript, key, [id, String(leaseMs)]);
        if (state === 'granted') return this.#granted(id, key);
        if (state === 'lost') return { kind: 'lost', isFirst: true };
        const other = await this.#awaited(key, String(detail), call);
        if (other) return other;
      }
    } catch {
      if (signal.aborted) throw abortedError(signal, false);
      return { kind: 'granted', end: async () => {} };
    }
  }

  /** Waits for another process; undefined if it did not send the call. */
  async #awaited(key: string, owner: string, call: Call): Promise<Claim | undefined> {
    const watch = this.#waiters.watch(key);
    try {
      for (;;) {
        const [state, detail] = await this.#run(lookScript, key, [owner]);
        if (state === 'lost') return { kind: 'lost', isFirst: detail === 1 };
        if (state === 'gone') return undefined;
        if (state === 'ended') {
          const outcome = this.#opened(key, detail as Buffer, call);
          return outcome && { kind: 'ended', outcome };
        }
        await watch.next(call.signal);
      }
    } finally {
      watch.end();
    }
  }

  #granted(id: string, key: string): Claim {
    this.#own.set(id, key);
    this.#renewals.start();
    const end = async (outcome: CallOutcome | undefined) => {
      this.#own.delete(id);
      if (this.#own.size === 0) this.#renewals.stop();
      try {
        // Answers are large, and mostly nobody waits.
        const [isEnded] = await this.#run(endScript, key, [id, '', outcome ? '' : '1']);
        if (isEnded === 0 && outcome) await this.#run(endScript, key, [id, this.#sealed(key, outcome)]);
      } catch {
        // Whoever waits finds out when the claim runs out.
      }
    };
    return { kind: 'granted', end };
  }

  #sealed(key: string, outcome: CallOutcome): Buffer {
    if ('answer' in outcome)
      return this.#redis.seal.close(key, JSON.stringify({ answer: writeAnswer(outcome.answer) }));
    const { error } = outcome;
    const failure = error instanceof AdLibraryError ? error.failure : { kind: 'internal' };
    return this.#redis.seal.close(key, JSON.stringify({ failure }));
  }

  #opened(key: string, sealed: Buffer, { operation }: Call): CallOutcome | undefined {
    const text = this.#redis.seal.open(key, sealed);
    if (text === undefined) return undefined;
    const { failure, answer } = JSON.parse(String(text)) as { failure?: Failure; answer: WrittenAnswer };
    return failure ? { error: new AdLibraryError(failure) } : { answer: readAnswer(operation.name, answer) };
  }

  async #run(script: Script, key: string, args: (string | Buffer)[]): Promise<unknown[]> {
    const reply = await this.#redis.connection.run(script, [key], [this.#waiters.channel, ...args]);
    const [first, ...rest] = Array.isArray(reply) ? reply : [reply];
    return [Buffer.isBuffer(first) ? String(first) : first, ...rest];
  }
}
