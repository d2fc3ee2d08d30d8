import { cursorsOver } from '../cursors.ts';
import type { Datasets } from '../dataset.ts';
import { exportsOver } from '../exports.ts';
import { sharedKeys } from '../keys.ts';
import type { StateOptions } from '../ports.ts';
import { turnsOver } from '../turns.ts';
import { sharedAnswers } from './answers.ts';
import { StoreDatasets } from './datasets.ts';
import { Documents } from './documents.ts';
import { GuardedStore, type StateLog, type StoreDriver } from './guarded-store.ts';
import { sharedWindows, storeLedger } from './ledger.ts';
import { beatMs, Presence } from './presence.ts';
import { Retries, type Shared } from './retries.ts';
import { createSeal } from './seal.ts';

const MB = 1024 * 1024;
/** How long a start waits for the store, in milliseconds. */
const startMs = 1000;
/** Bytes of work that waits until the store takes it. */
const maxWaiting = 96 * MB;

interface StoreStateOptions {
  driver: StoreDriver;
  secret: string;
  /** The service: the state of one service says nothing about another. */
  baseUrl: string;
  log: StateLog;
  /** The time of this process, which counts until the store tells its own. */
  now(): number;
}

export type ReplicaState = Awaited<ReturnType<typeof openStoreState>>;

export async function openStoreState({ baseUrl, ...options }: StoreStateOptions) {
  const { seal, store, documents, presence } = reach(options);
  const keyOf: Shared['keyOf'] = (tenantId, kind, ...parts) => {
    const tag = seal.name('tenant', baseUrl, tenantId);
    return ['ad-library:2', `{${tag}}`, kind, ...(parts.length > 0 ? [seal.name(kind, ...parts)] : [])].join(':');
  };
  const retries = new Retries(maxWaiting);
  const shared: Shared = { store, seal, documents, presence, retries, keyOf, warn: options.log.warn };
  const tick = () => {
    if (!store.isUp()) return;
    void presence.beat().catch(() => {});
    void retries.run();
  };
  store.onUp = tick;
  const ticks = setInterval(tick, beatMs).unref();
  await store.open(startMs);
  if (store.isUp()) await presence.beat().catch(() => {});
  return {
    ...sharedKeys(shared),
    now: () => store.now(),
    isUp: () => store.isUp(),
    /** Why the state cannot carry paid calls, if it cannot. */
    problem: () => (store.isUp() ? presence.problem(store.now()) : 'state unavailable'),
    state: (options: StateOptions) => ({
      ledger: storeLedger(shared, { isShared: true }),
      answers: sharedAnswers(shared, options),
      windows: sharedWindows(shared, options.elapsed),
      cursorsOf: cursorsOver(shared),
      datasets: new StoreDatasets(shared) as Datasets,
      exports: exportsOver(shared, options.now),
      turns: turnsOver(shared),
    }),
    close: () => {
      clearInterval(ticks);
      void retries.run().finally(() => store.close());
    },
  };
}

/** Accepts a store that went back in time as it is. Rejects if the store cannot be reached. */
export async function acceptStoreState(options: Omit<StoreStateOptions, 'baseUrl'>) {
  const { store, presence } = reach(options);
  try {
    await store.open(startMs);
    return await presence.accept();
  } finally {
    await store.close();
  }
}

function reach({ driver, secret, log, now }: Omit<StoreStateOptions, 'baseUrl'>) {
  const seal = createSeal({ secret, warn: log.warn });
  const store = new GuardedStore(driver, log, now);
  const documents = new Documents({ store, seal });
  // The store is the same for every service.
  const presence = new Presence(documents, `ad-library:2:{${seal.name('replicas')}}:replicas`, log);
  return { seal, store, documents, presence };
}
