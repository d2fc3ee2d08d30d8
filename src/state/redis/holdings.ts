import type { Redis } from './open-redis.ts';
import { type RedisCommands, readTime, script } from './redis-commands.ts';

/**
 * KEYS: sizes, ends, total. ARGV: the holder, its bytes (0 if it has none any more), its lifetime in milliseconds.
 * Forgets some whose lifetime is over, and returns the total.
 */
const setScript = script(`
local sizes, ends, total = KEYS[1], KEYS[2], KEYS[3]
${readTime}
local change = 0
local function drop(holder)
  change = change - (redis.call('ZSCORE', sizes, holder) or 0)
  redis.call('ZREM', sizes, holder)
  redis.call('ZREM', ends, holder)
end
for _, holder in ipairs(redis.call('ZRANGE', ends, '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)) do drop(holder) end
drop(ARGV[1])
if tonumber(ARGV[2]) > 0 then
  redis.call('ZADD', sizes, ARGV[2], ARGV[1])
  redis.call('ZADD', ends, now + ARGV[3], ARGV[1])
  change = change + ARGV[2]
end
local sum = redis.call('INCRBY', total, change)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, 2 * ARGV[3]) end
return sum
`);

/** As a script, because its answer has the same form in every version of the protocol. */
const listScript = script("return redis.call('ZRANGE', KEYS[1], 0, ARGV[1], 'REV', 'WITHSCORES')");

export interface Holding {
  name: string;
  bytes: number;
}

/** Holders that are looked at when there is no more room. */
const MAX_LISTED = 1000;

/** How much each holder keeps of one kind, and all of them together. */
export class Holdings {
  readonly #connection: RedisCommands;
  readonly #keys: [string, string, string];
  readonly #ttl: number;

  /** @param ttl how long what is held is kept, in milliseconds */
  constructor({ connection, seal }: Pick<Redis, 'connection' | 'seal'>, kind: string, ttl: number) {
    this.#connection = connection;
    // Of this secret: what others keep in the same Redis cannot be read, and is none of our business.
    const tag = `ad-library:{${seal.name('holdings', kind)}}:${kind}`;
    this.#keys = [`${tag}-sizes`, `${tag}-ends`, `${tag}-total`];
    this.#ttl = ttl;
  }

  /** Returns how much all hold together. */
  async set({ name, bytes }: Holding): Promise<number> {
    return (await this.#connection.run(setScript, this.#keys, [name, String(bytes), String(this.#ttl)])) as number;
  }

  /** Those who hold the most, in descending order. */
  async inDescendingOrder(): Promise<Holding[]> {
    const [sizes] = this.#keys;
    const answer = (await this.#connection.run(listScript, [sizes], [String(MAX_LISTED - 1)])) as Buffer[];
    const listed: Holding[] = [];
    for (let index = 0; index + 1 < answer.length; index += 2)
      listed.push({ name: String(answer[index]), bytes: Number(answer[index + 1]) });
    return listed;
  }
}
