import { LRUCache } from 'lru-cache';
import type { Redis } from './open-redis.ts';
import { script } from './redis-commands.ts';

/** How long accepted keys are remembered, and tried ones are counted, in milliseconds. */
const acceptedMs = 900_000;
const triedMs = 60_000;
/** For how long, and of how many keys, it is not asked again whether they were accepted. */
const recently = { ttl: 2000, max: 10_000 };

const countScript = script(`
local tried = redis.call('INCRBY', KEYS[1], ARGV[1])
if tried < 0 then tried = 0 redis.call('SET', KEYS[1], 0) end
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ${triedMs}) end
return { tried, redis.call('PTTL', KEYS[1]) }
`);

interface TriedKeys {
  add(address: string, more: 1 | -1): Promise<{ tried: number; msLeft: number }>;
}

/** What all replicas know of keys. */
export function redisKeys({ connection, seal, keyOf }: Redis) {
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'accepted');
  const recent = new LRUCache<string, true>(recently);
  return {
    /** The secret with which tenant ids are made. */
    tenantSecret: seal.name('tenant secret'),
    /** Keys that the service accepted lately. While Redis cannot be reached, none counts as accepted. */
    keys: {
      has: async (tenantId: string) => {
        if (recent.has(tenantId)) return true;
        const key = keyOfTenant(tenantId);
        const isAccepted = await connection.send(key, ['EXISTS', key]).then(
          (exists) => exists === 1,
          () => false,
        );
        if (isAccepted) recent.set(tenantId, true);
        return isAccepted;
      },
      add: (tenantId: string) => {
        const key = keyOfTenant(tenantId);
        connection.send(key, ['SET', key, '1', 'PX', String(acceptedMs)]).catch(() => {});
      },
      remove: (tenantId: string) => {
        recent.delete(tenantId);
        const key = keyOfTenant(tenantId);
        connection.send(key, ['DEL', key]).catch(() => {});
      },
    },
    /** Unknown keys that addresses tried. While Redis cannot be reached, each replica counts its own. */
    tried: (own: TriedKeys): TriedKeys => ({
      add: async (address, more) => {
        try {
          const key = keyOf(`address ${address}`, 'tried');
          const [tried, msLeft] = (await connection.run(countScript, [key], [String(more)])) as [number, number];
          return { tried, msLeft };
        } catch {
          return own.add(address, more);
        }
      },
    }),
  };
}
