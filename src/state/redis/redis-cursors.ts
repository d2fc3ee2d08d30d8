import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { CursorMemory, CursorState } from '../state.ts';
import type { Redis } from './open-redis.ts';
import { batches, type RedisCommands, readTime, script, unlessReply } from './redis-commands.ts';
import { Renewals } from './renewals.ts';

/** How long a cursor may be used without its filters, in milliseconds: at least a day, unless there are too many. */
const TTL = 86_400_000;
/** The cursors of one tenant: so many and so many bytes twice, since the earlier half makes room for the next one. */
const MAX_CURSORS = 1000;
const MAX_BYTES = 1024 * 1024;

/** KEYS: newer, earlier. ARGV: name, value, lifetime, maximum of cursors and of bytes. Its start and size are in `:started` and `:bytes`. */
const rememberScript = script(`
local newer, earlier = KEYS[1], KEYS[2]
${readTime}
local started = tonumber(redis.call('HGET', newer, ':started') or now)
local bytes = tonumber(redis.call('HGET', newer, ':bytes') or 0) + #ARGV[2]
local isFull = redis.call('HLEN', newer) > tonumber(ARGV[4]) or bytes > tonumber(ARGV[5]) or now - started > tonumber(ARGV[3])
if isFull and redis.call('EXISTS', newer) == 1 then
  redis.call('RENAME', newer, earlier)
  started, bytes = now, #ARGV[2]
end
redis.call('HSET', newer, ARGV[1], ARGV[2], ':started', started, ':bytes', bytes)
redis.call('PEXPIRE', newer, ARGV[3])
`);

/** KEYS: newer, earlier. ARGV: name. */
const recallScript = script(`
return redis.call('HGET', KEYS[1], ARGV[1]) or redis.call('HGET', KEYS[2], ARGV[1])
`);

const State = z.object({
  searchParams: z.record(z.string(), z.unknown()),
  serviceCursor: z.string().optional(),
});

/** Bytes of cursors that wait for Redis to come back. */
const MAX_UNSENT = 8 * 1024 * 1024;

interface Unsent {
  call: Parameters<RedisCommands['run']>;
  bytes: number;
}

/**
 * The cursors of all tenants, which all replicas share. Each replica remembers its own as well: it need not ask for
 * them, and while Redis cannot be reached, they are all it has. What could not be sent is sent as soon as Redis takes it.
 */
export class RedisCursors {
  readonly #redis: Redis;
  readonly #own: (tenantId: string) => CursorMemory;
  readonly #unsent = new LRUCache<string, Unsent>({ maxSize: MAX_UNSENT, sizeCalculation: ({ bytes }) => bytes });
  readonly #retries: Renewals;

  constructor(redis: Redis, own: (tenantId: string) => CursorMemory) {
    this.#redis = redis;
    this.#own = own;
    this.#retries = new Renewals(() => this.#sendUnsent(redis.connection));
    redis.connection.onUp((commands) => this.#sendUnsent(commands).catch(unlessReply));
  }

  of(tenantId: string): CursorMemory {
    const { connection, seal } = this.#redis;
    const { owner, keys } = this.#keysOf(tenantId);
    const own = this.#own(tenantId);
    const nameOf = (cursor: string) => seal.name('cursor', cursor);
    return {
      remember: async (cursor, state) => {
        await own.remember(cursor, state);
        const id = `${owner} ${nameOf(cursor)}`;
        const sealed = seal.close(id, JSON.stringify(state));
        if (sealed.length > MAX_BYTES || connection.memory.isTight()) return;
        const limits = [TTL, MAX_CURSORS, MAX_BYTES].map(String);
        const args = [nameOf(cursor), sealed, ...limits];
        const call: Unsent['call'] = [rememberScript, keys, args];
        await connection.run(...call).catch(() => {
          this.#unsent.set(id, { call, bytes: sealed.length });
          this.#retries.start();
        });
      },
      recall: async (cursor) => {
        const known = await own.recall(cursor);
        if (known !== undefined) return known;
        const sealed = (await connection.run(recallScript, keys, [nameOf(cursor)])) as Buffer | null;
        const text = sealed && seal.open(`${owner} ${nameOf(cursor)}`, sealed);
        return text ? (State.safeParse(JSON.parse(String(text))).data as CursorState | undefined) : undefined;
      },
    };
  }

  async #sendUnsent(commands: RedisCommands): Promise<void> {
    for (const some of batches([...this.#unsent]))
      await Promise.all(some.map(([id, { call }]) => commands.run(...call).then(() => this.#unsent.delete(id))));
    if (this.#unsent.size === 0) this.#retries.stop();
  }

  #keysOf(tenantId: string): { owner: string; keys: [string, string] } {
    const owner = this.#redis.keyOf(tenantId, 'cursors');
    return { owner, keys: [`${owner}:newer`, `${owner}:earlier`] };
  }
}
