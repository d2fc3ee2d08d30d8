import { LRUCache } from 'lru-cache';
import { type MemoryStateOptions, memoryState } from '../memory-state.ts';
import type { RejectedKeys, State } from '../state.ts';
import type { Redis } from './open-redis.ts';
import { redisAnswers } from './redis-answers.ts';
import { RedisClaims } from './redis-claims.ts';
import { type RedisCommands, script, unlessReply } from './redis-commands.ts';
import { RedisCreditLedger } from './redis-credit-ledger.ts';
import { RedisCursors } from './redis-cursors.ts';
import { redisWindows } from './redis-windows.ts';
import { Removals } from './removals.ts';
import { Renewals } from './renewals.ts';
import { Waiters } from './waiters.ts';

/** The state of all replicas, in Redis. Limits of calls in progress are those of each process. */
export function redisState({ redis, ...options }: MemoryStateOptions & { redis: Redis }): State {
  const { ttl, now } = options;
  const waiters = new Waiters(redis.connection, redis.channelOf('changes'));
  const removals = new Removals(redis, ttl);
  const answers = redisAnswers({ redis, removals, ttl, now });
  const own = memoryState(options);
  const cursors = new RedisCursors(redis, own.cursorsOf);
  return {
    ...own,
    ledger: new RedisCreditLedger(redis, waiters),
    claims: new RedisClaims({ redis, waiters, removals }),
    answers,
    windows: redisWindows(redis, now),
    cursorsOf: (tenantId) => cursors.of(tenantId),
    rejectedKeys: redisRejectedKeys(redis),
  };
}

/** How long a rejection is remembered, in milliseconds: as long as anything that is kept for a key. */
const rejectedMs = 30 * 86_400_000;
/** Rejections that wait for Redis to take them. */
const maxPending = 10_000;

/** KEYS: the rejection, the key's account, its dataset, its exports. ARGV: lifetime. */
const rejectScript = script(`
local isPaid = (tonumber(redis.call('HGET', KEYS[2], 'paidAt')) or 0) > 0
if isPaid or redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
`);

/** While Redis cannot be reached, nothing that is kept there is served to anybody. */
function redisRejectedKeys({ connection, keyOf }: Redis): RejectedKeys {
  const pending = new LRUCache<string, true>({ max: maxPending });
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'rejected');
  const reject = async (tenantId: string, commands: RedisCommands) => {
    const kept = [keyOf(tenantId, 'account'), `${keyOf(tenantId, 'dataset')}:about`, keyOf(tenantId, 'exports')];
    await commands.run(rejectScript, [keyOfTenant(tenantId), ...kept], [String(rejectedMs)]);
    pending.delete(tenantId);
  };
  const sendPending = async (commands: RedisCommands) => {
    for (const tenantId of [...pending.keys()]) await reject(tenantId, commands).catch(unlessReply);
    if (pending.size === 0) retries.stop();
  };
  const retries = new Renewals(() => sendPending(connection));
  connection.onUp(sendPending);
  return {
    has: async (tenantId) => {
      const key = keyOfTenant(tenantId);
      if (pending.has(tenantId)) return true;
      return connection.send(key, ['EXISTS', key]).then(
        (exists) => exists === 1,
        () => false,
      );
    },
    add: async (tenantId) => {
      pending.set(tenantId, true);
      await reject(tenantId, connection).catch(() => retries.start());
    },
    answered: (tenantId, isNamed) => {
      if (!isNamed) return;
      pending.delete(tenantId);
      const key = keyOfTenant(tenantId);
      connection.send(key, ['DEL', key]).catch(() => {});
    },
  };
}
