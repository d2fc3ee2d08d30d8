import { createHash } from 'node:crypto';
import { ErrorReply, type RedisArgument } from '@redis/client';

/** A Lua script, which Redis runs in one step. */
export interface Script {
  text: string;
  sha: string;
}

export const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') });

/** What scripts begin with that need the time: that of Redis, so that the clocks of replicas do not matter. */
export const readTime = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Adds a part to a list that is not in use yet. KEYS: it. ARGV: its lifetime if it never is, the part. */
export const pushScript = script(`
redis.call('RPUSH', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
`);

/** Sends commands. Rejects with `unavailable` if that fails, which may mean that a command was carried out all the same. */
export interface RedisCommands {
  /**
   * Sends a command; bulk strings arrive as buffers.
   * @param key decides which node of a cluster is asked
   */
  send(key: string, args: readonly RedisArgument[]): Promise<unknown>;
  /** Runs a script, whose keys must share a hash tag. */
  run(script: Script, keys: readonly [string, ...string[]], args: readonly RedisArgument[]): Promise<unknown>;
}

export const commandsOf = (send: RedisCommands['send']): RedisCommands => ({
  send,
  run: async ({ text, sha }, keys, args) => {
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await send(keys[0], ['EVALSHA', sha, ...rest]);
    } catch (error) {
      if (!replyOf(error)?.startsWith('NOSCRIPT')) throw error;
      return send(keys[0], ['EVAL', text, ...rest]);
    }
  },
});

/** The error that Redis stated; undefined if it did not answer. */
export function replyOf(error: unknown): string | undefined {
  const { cause = error } = error as Error;
  return cause instanceof ErrorReply ? cause.message : undefined;
}

/** Redis says that this is not the time for any command. */
export const isNotNow = (reply: string): boolean => /^(?:LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|NOAUTH) /.test(reply);

/** Passes over an error that Redis states, which concerns one command, and not the others. */
export function unlessReply(error: unknown): void {
  const reply = replyOf(error);
  if (reply === undefined || isNotNow(reply)) throw error;
}

/** Whether a command that failed may have been carried out: it was sent, and Redis did not refuse it. */
export const mayHaveArrived = (error: unknown): boolean =>
  (error as Error).cause !== undefined && replyOf(error) === undefined;

/** How many commands are sent at a time, where there are many. */
const batch = 500;

export function* batches<Item>(all: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < all.length; start += batch) yield all.slice(start, start + batch);
}
