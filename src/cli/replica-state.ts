import type { Config } from '../config/settings.ts';
import type { Logger } from '../logging/log.ts';
import type { StoreDriver } from '../storage/storage.ts';

/**
 * Opens the state that all replicas of a server share, in Redis or PostgreSQL. Returns undefined if
 * `AD_LIBRARY_STATE_URL` is not set, i.e. if there is only one process.
 */
export async function openReplicaState(config: Config, log: Logger, now: () => number) {
  const { stateUrl, stateSecret = '', baseUrl = '', timeoutMs } = config;
  if (stateUrl === undefined) return undefined;
  const driver = await openDriver(stateUrl, log);
  const { openStoreState } = await import('../storage/store/open-store.ts');
  return openStoreState({ driver, secret: stateSecret, baseUrl, callTimeoutMs: timeoutMs, log, now });
}

/**
 * Opens the driver of the shared store. The client of Redis or PostgreSQL is loaded only when it is needed, because
 * most servers have no shared state.
 */
async function openDriver(stateUrl: NonNullable<Config['stateUrl']>, log: Logger): Promise<StoreDriver> {
  if (stateUrl.engine === 'postgres')
    return (await import('../storage/drivers/postgres.ts')).createPostgresDriver(stateUrl);
  return (await import('../storage/drivers/redis.ts')).createRedisDriver(stateUrl, log);
}
