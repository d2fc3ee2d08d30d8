import type { Datasets } from '../dataset.ts';
import type { ExportStore } from '../exports.ts';
import type { MemoryStateOptions } from '../memory-state.ts';
import type { State, Turns } from '../state.ts';
import { openRedis, type RedisOptions } from './open-redis.ts';
import { RedisDatasets } from './redis-datasets.ts';
import { RedisExports } from './redis-exports.ts';
import { redisKeys } from './redis-keys.ts';
import { redisState } from './redis-state.ts';
import { RedisTurns } from './redis-turns.ts';

/** Everything that replicas share. */
export interface ReplicaState extends ReturnType<typeof redisKeys> {
  /** The time for all of them. */
  now(): number;
  /** Whether it can be reached. */
  isUp(): boolean;
  state(options: MemoryStateOptions): State;
  datasets(): Datasets;
  exports(now: () => number): ExportStore;
  turns(): Turns;
  close(): void;
}

/** The only way to Redis: whoever does not import this file loads nothing of its client. */
export async function openReplicaState(options: RedisOptions): Promise<ReplicaState> {
  const redis = await openRedis(options);
  const { connection } = redis;
  const { warn } = options.log;
  return {
    ...redisKeys(redis),
    now: redis.now,
    isUp: () => connection.isUp(),
    state: (limits) => redisState({ ...limits, redis }),
    datasets: () => new RedisDatasets({ redis, warn }),
    exports: (now) => new RedisExports({ redis, now }),
    turns: () => new RedisTurns(redis),
    close: () => connection.close(),
  };
}
