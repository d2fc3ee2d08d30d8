import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AdLibraryError, abortedError, answerNameOf, type Call, type Failure } from '../../api/call.ts';
import { memoryOf } from '../memory-state.ts';
import type { CallClaims, CallOutcome, Claim, OnLost } from '../state.ts';
import { readAnswer, type WrittenAnswer, writeAnswer } from '../store/answer-codec.ts';
import { stateUnavailable } from '../store/state-error.ts';
import { claimScript, endScript, lookScript, lostMs, renewClaimScript } from './claim-script.ts';
import type { Redis } from './open-redis.ts';
import { batches, type RedisCommands, type Script, unlessReply } from './redis-commands.ts';
import type { Removals } from './removals.ts';
import { leaseMs, Renewals } from './renewals.ts';
import type { Waiters } from './waiters.ts';

/** Memory for claims that could not be ended yet, with their outcomes. */
const maxUnendedBytes = 64 * 1024 * 1024;
/** The overhead of one. */
const unendedBytes = 1024;
/** Claims of which it is remembered that they have ended. */
const maxEnded = 20_000;

type GrantedClaim = Extract<Claim, { kind: 'granted' }>;

const unknownToRedis: GrantedClaim = { kind: 'granted', end: async () => {} };

/** The end of a claim, as it is to be sent. */
interface Ending {
  key: string;
  outcome: CallOutcome | undefined;
  onLost: OnLost;
}

/** The claim of another process. */
interface ClaimOfAnother {
  key: string;
  owner: string;
  call: Call;
}

export interface RedisClaimsOptions {
  redis: Redis;
  waiters: Waiters;
  removals: Removals;
}

/** Gated calls in progress in all replicas. While Redis cannot be reached, each replica sends its own. */
export class RedisClaims implements CallClaims {
  readonly #redis: Redis;
  readonly #waiters: Waiters;
  readonly #removals: Removals;
  /** What this process has claimed: the key, by the id of the claim. */
  readonly #own = new Map<string, string>();
  /** What Redis does not know the end of, by the id of the claim. In it such a claim looks as if its process had died. */
  readonly #unended = new LRUCache<string, Ending>({
    maxSize: maxUnendedBytes,
    ttl: lostMs,
    sizeCalculation: ({ outcome }) =>
      unendedBytes + (outcome && 'answer' in outcome ? memoryOf(outcome.answer.raw) : 0),
  });
  /** The keys of claims that have ended, by id: an earlier copy of Redis may still hold them. */
  readonly #ended = new LRUCache<string, string>({ max: maxEnded, ttl: lostMs });
  readonly #renewals: Renewals;

  constructor({ redis, waiters, removals }: RedisClaimsOptions) {
    this.#redis = redis;
    this.#waiters = waiters;
    this.#removals = removals;
    this.#renewals = new Renewals(() => this.#renew(redis.connection));
    redis.connection.onUp(async (commands) => {
      await this.#endAgain(commands);
      await this.#renew(commands);
    });
  }

  async claim(call: Call, onLost: OnLost): Promise<Claim> {
    const { signal } = call;
    const id = randomUUID();
    let key: string | undefined;
    try {
      key = await this.#keyOf(call);
      for (;;) {
        const [state, ...ids] = await this.#run(claimScript, key, [id, String(leaseMs)]);
        const other = state === 'wait' ? await this.#awaited({ key, owner: String(ids[0]), call }, onLost) : undefined;
        if (other) return other;
        if (state === 'wait') continue;
        await Promise.all(ids.map(String).map(onLost));
        return state === 'granted' ? this.#granted(id, key, onLost) : { kind: 'lost' };
      }
    } catch {
      // It may have been granted all the same.
      const claim = key === undefined ? unknownToRedis : this.#granted(id, key, onLost);
      if (!signal.aborted) return claim;
      void claim.end(undefined);
      throw abortedError(signal, false);
    }
  }

  /** A call of after a removal does not wait for one of before it, whose answer may be older. */
  async #keyOf(call: Call): Promise<string> {
    const { tenantId, fingerprint } = call;
    if (!this.#redis.connection.isUp()) throw stateUnavailable();
    const { group } = answerNameOf(call);
    const stamps = group === undefined ? [] : [await this.#removals.prolongedStamp(tenantId, group)];
    return this.#redis.keyOf(tenantId, 'claim', fingerprint, ...stamps);
  }

  /** Waits for another process; undefined if it did not send the call. */
  async #awaited({ key, owner, call }: ClaimOfAnother, onLost: OnLost): Promise<Claim | undefined> {
    const watch = this.#waiters.watch(key);
    try {
      for (;;) {
        const [state, detail] = await this.#run(lookScript, key, [owner]);
        if (state === 'lost') {
          await onLost(owner);
          return { kind: 'lost' };
        }
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

  #granted(id: string, key: string, onLost: OnLost): GrantedClaim {
    this.#own.set(id, key);
    this.#renewals.start();
    const end = async (outcome: CallOutcome | undefined) => {
      this.#own.delete(id);
      const ending = { key, outcome, onLost };
      await this.#end(id, ending, this.#redis.connection).catch(() => this.#unended.set(id, ending));
      this.#stopIfIdle();
    };
    return { kind: 'granted', end };
  }

  async #end(id: string, { key, outcome, onLost }: Ending, commands: RedisCommands): Promise<void> {
    // Answers are large, and mostly nobody waits.
    const [isEnded, ...lost] = await this.#run(endScript, key, [id, '', outcome ? '' : '1'], commands);
    if (isEnded === 0 && outcome) await this.#run(endScript, key, [id, this.#sealed(key, outcome), '1'], commands);
    this.#unended.delete(id);
    this.#ended.set(id, key);
    await Promise.all(lost.map(String).map(onLost));
  }

  async #endAgain(commands: RedisCommands): Promise<void> {
    const end = ([id, key]: [string, string]) => this.#run(endScript, key, [id, '', '1'], commands).catch(unlessReply);
    for (const some of batches([...this.#ended])) await Promise.all(some.map(end));
  }

  #stopIfIdle(): void {
    if (this.#own.size + this.#unended.size === 0) this.#renewals.stop();
  }

  /** Renews the claims of this process, and ends those that could not be ended. */
  async #renew(commands: RedisCommands): Promise<void> {
    this.#unended.purgeStale();
    const renewed = [...this.#own].map(([id, key]) =>
      this.#run(renewClaimScript, key, [id, String(leaseMs)], commands),
    );
    const ended = [...this.#unended].map(([id, ending]) => this.#end(id, ending, commands));
    await Promise.all([...renewed, ...ended].map((one) => one.catch(unlessReply)));
    this.#stopIfIdle();
  }

  #sealed(key: string, outcome: CallOutcome): Buffer | string {
    try {
      return this.#redis.seal.close(key, JSON.stringify(written(outcome)));
    } catch {
      // Nested too deep: those who wait make the call themselves.
      return '';
    }
  }

  #opened(key: string, sealed: Buffer, { operation }: Call): CallOutcome | undefined {
    const text = this.#redis.seal.open(key, sealed);
    if (text === undefined) return undefined;
    const { failure, answer } = JSON.parse(String(text)) as { failure?: Failure; answer: WrittenAnswer };
    return failure ? { error: new AdLibraryError(failure) } : { answer: readAnswer(operation.name, answer) };
  }

  async #run(
    script: Script,
    key: string,
    args: (string | Buffer)[],
    commands: RedisCommands = this.#redis.connection,
  ): Promise<unknown[]> {
    const reply = await commands.run(script, [key], [this.#waiters.channel, ...args]);
    const [first, ...rest] = Array.isArray(reply) ? reply : [reply];
    return [Buffer.isBuffer(first) ? String(first) : first, ...rest];
  }
}

function written(outcome: CallOutcome) {
  if ('answer' in outcome) return { answer: writeAnswer(outcome.answer) };
  const { error } = outcome;
  return { failure: error instanceof AdLibraryError ? error.failure : { kind: 'internal' } };
}
