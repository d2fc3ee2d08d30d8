import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStoreState } from '../../../src/state/store/store-state.ts';
import { StoreNetwork } from '../../support/store-network.ts';
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
  const openReplica = async (service: string = randomUUID()) => {
    const network = new StoreNetwork();
    const replica = await openStoreState({
      ...{ driver: network.between(driver()), secret: 'a secret of at least 32 characters', now: Date.now },
      baseUrl: `http://${service}.invalid`,
      log: { error: ignore, warn: ignore, info: ignore },
    });
    onTestFinished(() => replica.close());
    const state = replica.state({ ...options, now: Date.now });
    const own = async () => (await replica.datasets().of({ tenantId: 'a', apiKey: 'a' })).own;
    return { ...replica, ...state, network, own };
  };

  describe('answers', () =>
    answersSuite(async () => {
      const { network, state } = await openReplica();
      const now = () => 1_000_000;
      const pass = async (ms: number) => {
        network.ahead += ms;
      };
      return { answers: state({ ...options, now }).answers, now, pass };
    }));
  describe('accounts', () =>
    ledgerSuite(async () => {
      const replica = await openReplica();
      await expect.poll(replica.problem, { timeout: 10_000 }).toBeUndefined();
      return replica.ledger;
    }));
  cursorsSuite('in it', async () => (await openReplica()).cursorsOf);
  datasetSuite('in it', async () => (await openReplica()).datasets());
  ownRecordsSuite('in it', async () => {
    const service = randomUUID();
    return [(await openReplica(service)).datasets(), (await openReplica(service)).datasets()];
  });
  test("a person's own records can be taken away, but not grow, while the store is nearly full", async () => {
    const replica = await openReplica();
    const own = await replica.own();
    const put = () => own.update('label', () => ({ put: [['x', 1]], result: undefined }));
    await put();
    replica.network.isTight = true;
    await expect(put()).rejects.toMatchObject({ failure: { kind: 'busy' } });
    expect((await own.read('label')).size).toBe(1);
    await own.update('label', () => ({ removed: ['x'], result: undefined }));
    expect((await own.read('label')).size).toBe(0);
  });
  test("a person's own records end 400 days after they were last used", async () => {
    const replica = await openReplica();
    const own = await replica.own();
    await own.update('label', () => ({ put: [['x', 1]], result: undefined }));
    const kept = () => replica.network.ttlMs.filter((ms) => ms === 400 * 86_400_000).length;
    expect(kept()).toBe(1);
    await own.read('label');
    replica.network.ahead = 2 * 86_400_000;
    expect([...(await own.read('label'))]).toEqual([['x', 1]]);
    await expect.poll(kept).toBe(2);
  });
  exportsSuite('in it', async () => (await openReplica()).exports(Date.now));
});
