import { type MemoryStateOptions, memoryState } from '../memory-state.ts';
import type { State } from '../state.ts';
import type { Redis } from './open-redis.ts';
import { redisAnswers } from './redis-answers.ts';
import { RedisClaims } from './redis-claims.ts';
import { RedisCreditLedger } from './redis-credit-ledger.ts';
import { RedisCursors } from './redis-cursors.ts';
import { redisWindows } from './redis-windows.ts';
import { Removals } from './removals.ts';
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
    forget: async (tenantId) => {
      await Promise.all([own.forget(tenantId), cursors.forget(tenantId), answers.drop(tenantId)]);
    },
  };
}
