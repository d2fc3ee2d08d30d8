import * as z from 'zod';
import type { CursorState } from '../cursor-state.ts';
import type { CursorMemory } from '../state.ts';
import type { Redis } from './open-redis.ts';
import { script } from './redis-connection.ts';

/** How long a cursor may be used without its filters, in milliseconds: at least a day, unless there are too many. */
const TTL = 86_400_000;
/** The cursors of one tenant: so many and so many bytes twice, since the earlier half makes room for the next one. */
const MAX_CURSORS = 1000;
const MAX_BYTES = 1024 * 1024;

/** KEYS: newer, earlier. ARGV: name, value, lifetime, maximum of cursors and of bytes. Its start and size are in `:started` and `:bytes`. */
const rememberScript = script(`
local newer, earlier = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
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

export interface RedisCursorsOptions {
  redis: Pick<Redis, 'connection' | 'seal' | 'keyOf'>;
  tenantId: string;
  /** Receives what went wrong while a cursor was remembered. It works all the same as long as its filters come with it. */
  onError(error: unknown): void;
}

/** The cursors of one tenant, which all replicas share. */
export function redisCursors({ redis, tenantId, onError }: RedisCursorsOptions): CursorMemory {
  const { connection, seal, keyOf } = redis;
  const owner = keyOf(tenantId, 'cursors');
  const keys: [string, string] = [`${owner}:newer`, `${owner}:earlier`];
  const nameOf = (cursor: string) => seal.name('cursor', cursor);
  return {
    async remember(cursor, state) {
      const name = nameOf(cursor);
      const sealed = seal.close(`${owner} ${name}`, JSON.stringify(state));
      if (sealed.length > MAX_BYTES) return;
      const limits = [TTL, MAX_CURSORS, MAX_BYTES].map(String);
      await connection.run(rememberScript, keys, [name, sealed, ...limits]).catch(onError);
    },
    async recall(cursor) {
      const name = nameOf(cursor);
      const sealed = (await connection.run(recallScript, keys, [name])) as Buffer | null;
      const text = sealed && seal.open(`${owner} ${name}`, sealed);
      return text ? (State.safeParse(JSON.parse(String(text))).data as CursorState | undefined) : undefined;
    },
  };
}
