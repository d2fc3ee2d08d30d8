import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { StoreDriver } from '../../../src/state/store/guarded-store.ts';
import type { Seen, Store } from '../../../src/state/store/store.ts';
import { openStoreState } from '../../../src/state/store/store-state.ts';
import { describeEveryStore } from '../../support/stores.ts';
import { answersSuite } from '../answers-suite.ts';
import { cursorsSuite } from '../cursors-suite.ts';
import { datasetSuite } from '../dataset-suite.ts';
import { exportsSuite } from '../exports-suite.ts';
import { ledgerSuite } from '../ledger-suite.ts';
import { ownRecordsSuite } from '../own-records-suite.ts';

const options = { ttl: 60_000 };
const ignore = () => {};

describeEveryStore('the state of replicas', (_, { driver }) => {
  /** One more replica of those that serve the same service. */
  const openReplica = async (service: string = randomUUID(), opened = driver()) => {
    const state = await openStoreState({
      driver: opened,
      secret: 'a secret of at least 32 characters',
      baseUrl: `http://${service}.invalid`,
      log: { error: ignore, warn: ignore, info: ignore },
      now: Date.now,
    });
    onTestFinished(() => state.close());
    return state;
  };
  const openState = async (service?: string) => (await openReplica(service)).state({ ...options, now: Date.now });

  describe('answers', () =>
    answersSuite(async () => {
      const clock = { ahead: 0 };
      const replica = await openReplica(undefined, withClock(driver(), clock));
      const now = () => 1_000_000;
      const pass = async (ms: number) => {
        clock.ahead += ms;
      };
      return { answers: replica.state({ ...options, now }).answers, now, pass };
    }));
  describe('accounts', () =>
    ledgerSuite(async () => {
      const replica = await openReplica();
      await expect.poll(replica.problem, { timeout: 10_000 }).toBeUndefined();
      return replica.state({ ...options, now: Date.now }).ledger;
    }));
  cursorsSuite('in it', async () => (await openState()).cursorsOf);
  datasetSuite('in it', async () => (await openReplica()).datasets());
  ownRecordsSuite('in it', async () => {
    const service = randomUUID();
    return [(await openReplica(service)).datasets(), (await openReplica(service)).datasets()];
  });
  test("a person's own records can be taken away, but not grow, while the store is nearly full", async () => {
    const clock = { ahead: 0, isTight: false };
    const datasets = (await openReplica(undefined, withClock(driver(), clock))).datasets();
    const { own } = await datasets.of({ tenantId: 'a', apiKey: 'a' });
    const put = () => own.update('label', () => ({ put: [['x', 1]], result: undefined }));
    await put();
    clock.isTight = true;
    await expect(put()).rejects.toMatchObject({ failure: { kind: 'busy' } });
    expect((await own.read('label')).size).toBe(1);
    await own.update('label', () => ({ removed: ['x'], result: undefined }));
    expect((await own.read('label')).size).toBe(0);
  });
  test("a person's own records end 400 days after they were last used", async () => {
    const clock = { ahead: 0, ttlMs: [] as number[] };
    const datasets = (await openReplica(undefined, withClock(driver(), clock))).datasets();
    const { own } = await datasets.of({ tenantId: 'a', apiKey: 'a' });
    await own.update('label', () => ({ put: [['x', 1]], result: undefined }));
    const kept = () => clock.ttlMs.filter((ms) => ms === 400 * 86_400_000).length;
    expect(kept()).toBe(1);
    await own.read('label');
    clock.ahead = 2 * 86_400_000;
    expect([...(await own.read('label'))]).toEqual([['x', 1]]);
    await expect.poll(kept).toBe(2);
  });
  exportsSuite('in it', async () => (await openReplica()).exports(Date.now));
});

interface Clock {
  ahead: number;
  /** How long each document is kept. */
  ttlMs?: number[];
  isTight?: boolean;
}

/** The same store with a clock that is ahead of its own, or little room. */
function withClock({ hosts, open }: StoreDriver, clock: Clock): StoreDriver {
  const ahead = <Reply extends Seen>(reply: Reply): Reply => ({ ...reply, now: reply.now + clock.ahead });
  return {
    hosts,
    open: (onError) => {
      const store = open(onError);
      const timed: Partial<Store> = {
        read: (...args) => store.read(...args).then(ahead),
        isTight: () => clock.isTight ?? store.isTight(),
        swap: (...args) => {
          clock.ttlMs?.push(args[2].ttlMs);
          return store.swap(...args).then(ahead);
        },
      };
      return new Proxy(store, {
        get: (target, name) => {
          const found = timed[name as keyof Store] ?? target[name as keyof Store];
          return typeof found === 'function' ? found.bind(target) : found;
        },
      });
    },
  };
}
