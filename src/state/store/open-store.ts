import { setTimeout as wait } from 'node:timers/promises';
import { cursorsOver } from '../cursors.ts';
import type { Datasets } from '../dataset.ts';
import type { MemoryStateOptions } from '../drivers/memory.ts';
import { type ExportStore, exportsOver } from '../exports.ts';
import { sharedKeys } from '../keys.ts';
import type { State } from '../ports.ts';
import { type Turns, turnsOver } from '../turns.ts';
import { sharedAnswers } from './answers.ts';
import { type CopyLimits, StoreDatasets } from './datasets.ts';
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

export interface StoreStateOptions {
  driver: StoreDriver;
  secret: string;
  /** The service: the state of one service says nothing about another. */
  baseUrl: string;
  log: StateLog;
  /** The time of this process, which counts until the store tells its own. */
  now(): number;
}

export interface ReplicaState extends ReturnType<typeof sharedKeys> {
  /** The time for all of them. */
  now(): number;
  isUp(): boolean;
  /** Why the state cannot carry paid calls, if it cannot. */
  problem(): string | undefined;
  state(options: MemoryStateOptions): State;
  datasets(limits?: CopyLimits): Datasets & { bytes?: number };
  exports(now: () => number): ExportStore;
  turns(): Turns;
  close(): void;
}

/** Everything that replicas share, over a store. */
export async function openStoreState({ driver, secret, baseUrl, log, now }: StoreStateOptions): Promise<ReplicaState> {
  const { seal, store, documents, presence } = reach({ driver, secret, log, now });
  const keyOf: Shared['keyOf'] = (tenantId, kind, ...parts) => {
    const tag = seal.name('tenant', baseUrl, tenantId);
    return ['ad-library:2', `{${tag}}`, kind, ...(parts.length > 0 ? [seal.name(kind, ...parts)] : [])].join(':');
  };
  const retries = new Retries(maxWaiting);
  const shared: Shared = { store, seal, documents, presence, retries, keyOf, warn: log.warn };
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
    problem: () => (store.isUp() ? presence.problem(store.now()) : 'state unavailable'),
    state: (options) => sharedState(shared, options),
    datasets: (limits) => new StoreDatasets(shared, limits),
    exports: (clock) => exportsOver(shared, clock),
    turns: () => turnsOver({ ...shared, keyOf: (name) => keyOf(name, 'turn') }),
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
  const documents = new Documents({
    ...{ store, seal },
    elapsed: () => Math.round(performance.now()),
    wait: (ms) => wait(ms, undefined, { ref: false }),
  });
  // The store is the same for every service.
  const presence = new Presence(documents, `ad-library:2:{${seal.name('replicas')}}:replicas`, log);
  return { seal, store, documents, presence };
}

function sharedState(shared: Shared, options: MemoryStateOptions): State {
  return {
    ledger: storeLedger({ ...shared, keyOf: (tenantId) => shared.keyOf(tenantId, 'account'), numbersAnswers: true }),
    answers: sharedAnswers(shared, options),
    windows: sharedWindows(shared, options.elapsed),
    cursorsOf: cursorsOver(shared),
  };
}
