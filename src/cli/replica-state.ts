import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import type { Log } from '../logging/log.ts';
import type { StoreDriver } from '../storage/store/guarded-store.ts';
import type { History } from '../storage/store/presence.ts';

/** What all replicas share, if an address says where. */
export async function openShared({ stateUrl, stateSecret = '', baseUrl = '' }: Config, log: Log, now: () => number) {
  if (stateUrl === undefined) return undefined;
  const driver = await driverOf(stateUrl, log);
  const { openStoreState } = await import('../storage/store/open-store.ts');
  return openStoreState({ driver, secret: stateSecret, baseUrl, log, now });
}

/** A server that shares nothing loads no client of a store. */
async function driverOf(stateUrl: NonNullable<Config['stateUrl']>, log: Log): Promise<StoreDriver> {
  if (stateUrl.engine === 'postgres') return (await import('../storage/drivers/postgres.ts')).postgresDriver(stateUrl);
  return (await import('../storage/drivers/redis.ts')).redisDriver(stateUrl, log);
}

/** Opens budgets again after the shared state went back in time, and prints what is known about the loss. */
export async function acceptState(
  { stateUrl, stateSecret }: Config,
  { log, now, print }: { log: Log; now: () => number; print: (text: string) => void },
): Promise<number> {
  const missing = [stateUrl ? [] : settings.stateUrl, stateSecret ? [] : settings.stateSecret].flat();
  if (stateUrl === undefined || stateSecret === undefined)
    throw new SettingsError(missing.map(({ variable }) => `${variable} must be set, as it is for the replicas`));
  const driver = await driverOf(stateUrl, log);
  const { acceptStoreState } = await import('../storage/store/open-store.ts');
  const status = await acceptStoreState({ driver, secret: stateSecret, log, now });
  for (const line of linesAbout(driver.hosts, status)) print(`${line}\n`);
  return 0;
}

function* linesAbout(hosts: string, history: History | undefined): Generator<string> {
  if (history === undefined)
    return yield `${hosts} holds no state that was made with this secret: there is nothing to accept.`;
  const { since, processes, doubt } = history;
  const last = Math.max(...Object.values(processes).map(({ at }) => at));
  yield `The state at ${hosts} began on ${dateOf(since)}. A replica wrote to it last on ${dateOf(last)}.`;
  if (doubt === undefined) return yield 'It did not go back in time: budgets are open.';
  yield doubt.found === 'empty'
    ? `It was found empty on ${dateOf(doubt.at)}: what was spent before counts towards no budget.`
    : `It was found to be an earlier copy on ${dateOf(doubt.at)}: what was spent since that copy counts towards no budget.`;
  yield 'Budgets are open again.';
}

const dateOf = (time: number) => `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
