import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Dataset } from '../../../src/storage/dataset.ts';
import { openMemoryStore } from '../../../src/storage/in-memory.ts';
import type { ItemChange, ReadResult, RemoteStore, StoreDriver } from '../../../src/storage/storage.ts';
import { SharedDatasetStore } from '../../../src/storage/store/datasets.ts';
import { openStoreState } from '../../../src/storage/store/open-store.ts';
import { waitUntil } from '../../support/deadline.ts';
import { describeEveryStore } from '../../support/stores.ts';
import { addAds, createLastStep } from '../add-items.ts';
import { cacheAnswer, claimCall, createCall, testAnswers, ttlMs } from '../answers-suite.ts';
import { getLease } from '../charges.ts';
import { testCursors } from '../cursors-suite.ts';
import { testDatasets } from '../dataset-suite.ts';
import { exportFile, testExports } from '../exports-suite.ts';
import { testUserRecords } from '../user-records-suite.ts';

const answer = {
  validatedBody: { id: '1' },
  rawBody: { id: '1' },
  receipt: { charged: 1, remaining: 9, cached: false, requestId: 'r' },
};
const group = 'a group';
const adAnswerName = 'an ad';
const tooDeep = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
const unavailable = { failure: { kind: 'unavailable' } };
const randomText = (bytes: number) => randomBytes(bytes / 2).toString('hex');
const readIds = async (dataset: Dataset) => (await dataset.readContents()).ads.map(({ id }) => id).toSorted();
const createSignalWithoutAbort = () => new AbortController().signal;

/** The deadline of a replica's calls, in milliseconds. */
const callTimeoutMs = 60_000;

/** Larger items, in bytes, count as large in the simulated faults. */
const largeBytes = 10_000;

/** Simulates the network between a replica and its store, with several kinds of faults. */
class StoreNetwork {
  state:
    | 'fine'
    | 'away'
    | 'answers are lost'
    | 'refused'
    | 'documents are refused'
    | 'large items are refused'
    | 'large items hang' = 'fine';
  isNearlyFull = false;
  /** How far the store's clock appears to be ahead, in milliseconds. */
  clockOffsetMs = 0;
  /** Modifies or drops items on their way to the store. */
  transformChanges: (changes: readonly ItemChange[]) => readonly ItemChange[] = (changes) => changes;
  /** The lifetime of each document that the replica has written. */
  readonly ttlMs: number[] = [];

  wrapDriver({ hostAndPort: hosts, open }: StoreDriver): StoreDriver {
    const pass = async <Reply>(sendRequest: () => Promise<Reply>): Promise<Reply> => {
      if (this.state === 'away' || this.state === 'refused') throw new Error(this.state);
      const reply = await sendRequest();
      if (this.state === 'answers are lost') throw new Error(this.state);
      return reply;
    };
    const timed = async <Reply extends ReadResult>(sendRequest: () => Promise<Reply>): Promise<Reply> => {
      const reply = await pass(sendRequest);
      return { ...reply, now: reply.now + this.clockOffsetMs };
    };
    return {
      hostAndPort: hosts,
      open: (onError): RemoteStore => {
        const store = open(onError);
        return {
          connect: () => pass(async () => store.connect()),
          readDocument: (...args) => timed(() => store.readDocument(...args)),
          swapDocument: async (...args) => {
            if (this.state === 'documents are refused') throw new Error(this.state);
            const swapped = await timed(() => store.swapDocument(...args));
            if (swapped.isDone) this.ttlMs.push(args[2].ttlMs);
            return swapped;
          },
          readItems: (...args) => pass(() => store.readItems(...args)),
          putItems: (name, changes, limits) =>
            pass(async () => {
              const isLarge = changes.some(({ body }) => body.length > largeBytes);
              if (isLarge && this.state === 'large items hang') return new Promise(() => {});
              if (isLarge && this.state === 'large items are refused') throw new Error(this.state);
              const taken = this.transformChanges(changes);
              return taken.length > 0 ? store.putItems(name, taken, limits) : new Set();
            }),
          readItemsSince: (...args) => pass(() => store.readItemsSince(...args)),
          isNearlyFull: () => this.isNearlyFull,
          isRefusal: () => this.state.endsWith('refused'),
          close: async () => store.close(),
        };
      },
    };
  }
}

describeEveryStore('State in the shared store', (_, { driver, isReal }) => {
  /** Starts a replica. Replicas of the same service share their state. */
  async function startReplica({
    service = randomUUID() as string,
    secret = 'a secret of at least 32 characters',
    now = Date.now,
  } = {}) {
    const network = new StoreNetwork();
    const warned: string[] = [];
    const replica = await openStoreState({
      ...{
        driver: network.wrapDriver(driver()),
        secret,
        baseUrl: `http://${service}.invalid`,
        callTimeoutMs,
        now,
      },
      log: { error: () => {}, warn: (message) => void warned.push(message), info: () => {} },
    });
    onTestFinished(() => replica.close());
    const state = replica.state({ ttlMs, now: Date.now, monotonicNow: Date.now });
    const dataset = (tenantId = 't') => state.datasets.open({ tenantId, apiKey: 'k' });
    const claim = (signal = createSignalWithoutAbort(), onProcessDied = async () => {}) =>
      state.responseCache.claim(createCall('t', signal), adAnswerName, { onProcessDied });
    const readCachedAnswer = async () => (await state.responseCache.get('t', adAnswerName))?.response.rawBody;
    /** Caches a new response, even if one is already cached. */
    const cacheAnswerOf = async (rawBody: unknown) =>
      (await claimCall(state.responseCache, adAnswerName)).cacheResponse({
        response: { ...answer, rawBody },
        arrivedAt: Date.now(),
      });
    const isListCached = async () => {
      const list = await state.responseCache.resolveName('t', { fingerprint: '["getAd",{"id":"a list"}]', group });
      return list !== undefined && (await state.responseCache.get('t', list)) !== undefined;
    };
    const userRecords = async () => (await dataset()).userRecords;
    /** Runs `work` while the network has a fault. */
    const during = async <Result>(fault: StoreNetwork['state'], work: () => Promise<Result>): Promise<Result> => {
      network.state = fault;
      const done = await work();
      network.state = 'fine';
      await waitUntil(() => replica.isUp());
      return done;
    };
    const files = state.exports.forTenant('t');
    return {
      ...replica,
      ...state,
      network,
      warned,
      claim,
      find: readCachedAnswer,
      isListKept: isListCached,
      dataset,
      store: cacheAnswerOf,
      own: userRecords,
      during,
      files,
    };
  }
  const startReplicas = async (count: number) => {
    const service = randomUUID();
    return Promise.all(Array.from({ length: count }, () => startReplica({ service })));
  };
  type ReplicaUnderTest = Awaited<ReturnType<typeof startReplica>>;
  const startTwoReplicas = async () => (await startReplicas(2)) as [ReplicaUnderTest, ReplicaUnderTest];
  describe('Cached responses in the shared store', () =>
    testAnswers(async () => {
      const { network, state } = await startReplica();
      const now = () => 1_000_000;
      const pass = async (ms: number) => {
        network.clockOffsetMs += ms;
      };
      return { responseCache: state({ ttlMs, now, monotonicNow: now }).responseCache, now, advanceTime: pass };
    }));
  testCursors('in a shared store', async () => (await startReplica()).openCursors);
  testDatasets('in a shared store', async () => (await startReplica()).datasets);
  testUserRecords('in a shared store', async () => {
    const [replica, otherReplica] = await startTwoReplicas();
    return [replica.datasets, otherReplica.datasets];
  });
  testExports('in a shared store', async () => (await startReplica()).exports);

  test.each(['away', 'refused', 'answers are lost'] as const)(
    'reads from a shared store with the fault "%s" fail instead of returning empty data',
    async (fault) => {
      const [replica, otherReplica] = await startTwoReplicas();
      const cursorState = { searchParams: { query: 'tea' } };
      await cacheAnswer(replica.responseCache, {
        id: 'a list',
        group,
        cached: { response: answer, arrivedAt: Date.now() },
      });
      expect(await otherReplica.isListKept()).toBe(true);
      await addAds(await replica.dataset(), 1, { id: 'before' });
      const { uri } = await exportFile(replica.files, 'x.csv', randomText(600_000));
      const claim = await claimCall(replica.responseCache, adAnswerName);
      const waiting = otherReplica.claim();
      await replica.keys.add('t');
      expect(await otherReplica.keys.has('t')).toBe(true);

      await replica.during(fault, () => claim.endClaim());
      await replica.during(fault, async () => {
        const dataset = await replica.dataset();
        await expect(addAds(dataset, 2, { id: 'during' })).rejects.toMatchObject(unavailable);
        await expect(dataset.saveGathering(createLastStep(['during']))).rejects.toMatchObject(unavailable);
        for (const pendingRead of [dataset.readContents(), dataset.findItem('ads', 'before'), dataset.estimateMaxAds()])
          await expect(pendingRead).rejects.toMatchObject(unavailable);
      });
      await replica.during(fault, async () => {
        await replica.openCursors('t').save('@1', cursorState);
        await expect(replica.openCursors('t').load('@1')).rejects.toMatchObject(unavailable);
        await expect(replica.locks.acquire('a', createSignalWithoutAbort())).rejects.toMatchObject(unavailable);
        await expect(replica.files.list()).rejects.toMatchObject(unavailable);
        await expect(exportFile(replica.files, 'y.csv', 'y')).rejects.toMatchObject(unavailable);
      });
      await replica.during(fault, async () => {
        expect(await replica.isListKept()).toBe(false);
        await replica.responseCache.forgetGroup('t', group);
      });
      await replica.during(fault, async () => {
        await replica.keys.remove('t');
        expect(await replica.keys.has('t')).toBe(false);
      });

      expect(await waiting).toMatchObject({ kind: 'granted' });
      await expect.poll(() => otherReplica.keys.has('t')).toBe(false);
      for (const { isListKept } of [replica, otherReplica]) await expect.poll(isListKept).toBe(false);
      await expect.poll(() => otherReplica.openCursors('t').load('@1')).toEqual(cursorState);
      for (const { dataset } of [replica, otherReplica]) {
        await expect.poll(async () => (await (await dataset()).readContents()).gatherings).toHaveLength(1);
        // The ads and the list of their ids are separate pending writes, so either can arrive first.
        await expect.poll(async () => readIds(await dataset())).toEqual(['before', 'during']);
      }
      (await replica.locks.acquire('a', createSignalWithoutAbort()))();
      expect((await (await otherReplica.files.find(uri))?.readContent())?.length).toBe(600_000);
    },
  );

  test('if several replicas make the same call, only one replica sends it to the API, and the others reuse the response', async () => {
    const [replica, otherReplica] = await startTwoReplicas();
    const claim = await claimCall(replica.responseCache, adAnswerName);
    const fresh = { arrivedAfter: Date.now() - 1, onProcessDied: async () => {} };
    const waiting = [otherReplica.claim(), otherReplica.responseCache.claim(createCall(), adAnswerName, fresh)];
    await delay(10);
    await claim.cacheResponse({ response: answer, arrivedAt: Date.now() });
    for (const each of await Promise.all(waiting))
      expect(each).toMatchObject({ kind: 'cached', cachedResponse: { response: { rawBody: answer.rawBody } } });
    await otherReplica.store({ id: '1', is: 'fresh' });
    expect(await replica.find()).toEqual({ id: '1', is: 'fresh' });
  });

  test('a replica reserves an API call for itself only until the call ends or the client cancels it', async () => {
    const [replica, otherReplica] = await startTwoReplicas();
    const lostReplyClaim = await replica.during('answers are lost', () => replica.claim());
    const waiting = otherReplica.claim();
    if (lostReplyClaim.kind === 'granted') await lostReplyClaim.endClaim();
    const next = await waiting;
    if (next.kind !== 'granted') throw new Error(next.kind);
    await next.endClaim();
    const caller = new AbortController();
    await replica.during('answers are lost', async () => {
      const claim = replica.claim(caller.signal);
      caller.abort();
      await expect(claim).rejects.toThrow();
    });
    expect(await otherReplica.claim()).toMatchObject({ kind: 'granted' });
  });

  test.each([
    ['the store is nearly full', { isNearlyFull: true }, answer.rawBody],
    ['the store is unreachable', { state: 'away' as const }, answer.rawBody],
    ['the answer is nested too deep', {}, tooDeep],
  ])('if %s, a response is cached only by the replica that received the response', async (_, problem, raw) => {
    const [replica, otherReplica] = await startTwoReplicas();
    await replica.store({ id: '1', is: 'before' });
    Object.assign(replica.network, problem);
    // Wait, because timestamps of responses have a resolution of one millisecond.
    await delay(20);
    await replica.store(raw);
    expect(await replica.find()).toBe(raw);
    replica.network.state = 'fine';
    await waitUntil(() => replica.isUp());
    expect(await replica.find()).toBe(raw);
    expect(await otherReplica.find()).toEqual({ id: '1', is: 'before' });
    replica.network.isNearlyFull = false;
    await delay(20);
    await otherReplica.store({ id: '1', is: 'after' });
    for (const { find } of [replica, otherReplica]) expect(await find()).toEqual({ id: '1', is: 'after' });
    await otherReplica.ledger.settle('t', { chargedCredits: 1, uncertainCredits: 0, isPaidResponse: true });
    expect(await replica.ledger.read('t')).toMatchObject({ spentCredits: 1 });
  });

  test('a call that the client cancels while it waits for a named lock fails as busy', async () => {
    const [replica, otherReplica] = (await startTwoReplicas()).map(({ locks }) => locks);
    const end = await replica?.acquire('a question', createSignalWithoutAbort());
    const cancellation = new AbortController();
    const pendingLock = otherReplica?.acquire('a question', cancellation.signal);
    const waiting = otherReplica?.acquire('a question', createSignalWithoutAbort());
    cancellation.abort();
    await expect(pendingLock).rejects.toMatchObject({ failure: { kind: 'busy' } });
    (await otherReplica?.acquire('another question', createSignalWithoutAbort()))?.();
    end?.();
    (await waiting)?.();
  });

  test('the credits that a killed replica had reserved for a call stay reserved until the deadline of the call', async () => {
    const [killedReplica, livingReplica] = await startTwoReplicas();
    const request = { budget: 10, credits: 10, atLeast: 10, isPaid: true, maxPrice: 10, creditsIfLost: 4 };
    await claimCall(killedReplica.responseCache, adAnswerName);
    expect(await killedReplica.ledger.reserve('t', () => request)).toMatchObject({ kind: 'granted' });

    livingReplica.network.clockOffsetMs = callTimeoutMs;
    await expect(livingReplica.claim(AbortSignal.timeout(50))).rejects.toThrow();
    expect(await livingReplica.ledger.read('t')).toMatchObject({ reservedCredits: 10, uncertainCredits: 0 });

    livingReplica.network.clockOffsetMs = callTimeoutMs + 11_000;
    expect(await livingReplica.claim()).toMatchObject({ kind: 'lost' });
    expect(await livingReplica.ledger.read('t')).toMatchObject({ reservedCredits: 0, uncertainCredits: 4 });
    expect(await livingReplica.claim()).toMatchObject({ kind: 'granted' });
  });

  test('a lock of a killed replica is released only when no request of the replica can still be running', async () => {
    const [killedReplica, livingReplica] = await startTwoReplicas();
    await killedReplica.locks.acquire('a question', createSignalWithoutAbort());
    livingReplica.network.clockOffsetMs = 2 * callTimeoutMs;
    const pendingLock = livingReplica.locks.acquire('a question', AbortSignal.timeout(50));
    await expect(pendingLock).rejects.toMatchObject({ failure: { kind: 'busy' } });
    livingReplica.network.clockOffsetMs = 2 * callTimeoutMs + 11_000;
    (await livingReplica.locks.acquire('a question', createSignalWithoutAbort()))();
  });

  test.each(['before', 'after'])(
    'if a call is cancelled %s it detects that another replica was killed, the next call reports the killed replica',
    async (moment) => {
      const [killedReplica, livingReplica] = await startTwoReplicas();
      await claimCall(killedReplica.responseCache, adAnswerName);
      livingReplica.network.clockOffsetMs = callTimeoutMs + 11_000;
      const caller = new AbortController();
      const cancelled = livingReplica.claim(caller.signal, async () => caller.abort());
      if (moment === 'before') caller.abort();
      await expect(cancelled).rejects.toThrow();
      expect(await livingReplica.claim()).toMatchObject({ kind: 'lost' });
      expect(await livingReplica.claim()).toMatchObject({ kind: 'granted' });
    },
  );

  test('only one call reports a killed replica, even while the shared store refuses changes', async () => {
    const [killedReplica, livingReplica] = await startTwoReplicas();
    await claimCall(killedReplica.responseCache, adAnswerName);
    livingReplica.network.clockOffsetMs = callTimeoutMs + 11_000;
    await livingReplica.during('documents are refused', async () => {
      expect(await livingReplica.claim()).toMatchObject({ kind: 'lost' });
      expect(await livingReplica.claim()).toMatchObject({ kind: 'granted' });
    });
  });

  test('for a call that ends after its deadline, the charge that the API reports is counted', async () => {
    const [slow, otherReplica] = await startTwoReplicas();
    const lease = getLease(
      await slow.ledger.reserve('t', () => ({
        budget: 10,
        credits: 5,
        atLeast: 5,
        isPaid: true,
        maxPrice: 5,
        creditsIfLost: 5,
      })),
    );
    otherReplica.network.clockOffsetMs = callTimeoutMs + 11_000;
    expect(await otherReplica.ledger.read('t')).toMatchObject({ uncertainCredits: 5 });
    await slow.ledger.settle('t', { chargedCredits: 3, uncertainCredits: 0, isPaidResponse: true }, lease);
    expect(await otherReplica.ledger.read('t')).toMatchObject({
      spentCredits: 3,
      uncertainCredits: 0,
      reservedCredits: 0,
    });
  });

  test('all replicas accept an API key for 15 minutes after the API has accepted the key', async () => {
    const [replica, otherReplica] = await startTwoReplicas();
    await replica.keys.add('t');
    for (const { keys } of [replica, otherReplica]) expect(await keys.has('t')).toBe(true);
    expect(await otherReplica.keys.has('u')).toBe(false);
    await otherReplica.keys.remove('t');
    expect(await replica.keys.has('t')).toBe(false);
    expect(await replica.isKnownKey('t')).toBe(false);
    await replica.keys.add('t');
    expect(replica.network.ttlMs.filter((ms) => ms === 900_000)).toHaveLength(2);
  });

  describe('A shared store that is nearly full', () => {
    test('labels can be removed from a shared store that is nearly full, but no labels can be added', async () => {
      const { own: open, network } = await startReplica();
      const userRecords = await open();
      const put = () => userRecords.update('label', () => ({ put: [['x', 1]], result: undefined }));
      await put();
      network.isNearlyFull = true;
      await expect(put()).rejects.toMatchObject({ failure: { kind: 'busy' } });
      expect((await userRecords.read('label')).size).toBe(1);
      await userRecords.update('label', () => ({ remove: ['x'], result: undefined }));
      expect((await userRecords.read('label')).size).toBe(0);
    });

    test('the shared store keeps the newest search cursors and stays within their memory limit', async () => {
      const [replica, otherReplica] = (await startTwoReplicas()).map(({ openCursors }) => openCursors('t'));
      for (let at = 0; at < 25; at++) await replica?.save(`@${at}`, { searchParams: { noise: randomText(200_000) } });
      expect(await otherReplica?.load('@24')).toBeDefined();
      expect(await otherReplica?.load('@0')).toBeUndefined();
      await replica?.save('@huge', { searchParams: { noise: randomText(2_000_000) } });
      expect(await otherReplica?.load('@huge')).toBeUndefined();
      expect(await otherReplica?.load('@24')).toBeDefined();
    });
  });

  // Run these tests only once, because they do not depend on the kind of store.
  if (!isReal) {
    test('a shared store that is nearly full keeps fewer ads for each dataset and prefers the newest ads', async () => {
      const replica = await startReplica();
      const manyAds = Array.from({ length: 100 }, (_, at) => ({ id: `${at}`, body: randomText(200_000) }));
      for (let at = 0; at < 100; at += 20) await addAds(await replica.dataset(), at, ...manyAds.slice(at, at + 20));
      expect(await readIds(await replica.dataset())).toHaveLength(100);
      replica.network.isNearlyFull = true;
      await addAds(await replica.dataset(), 100, { id: 'last' });
      const { ads, evictedCounts } = await (await replica.dataset()).readContents();
      expect(ads.length).toBeLessThan(90);
      expect(ads.at(-1)?.id).toBe('last');
      expect(ads.length + evictedCounts.ads).toBe(101);
      expect(replica.warned).toContain('the shared state is nearly full: less data is stored for each key');
    });

    test('a nearly full shared store refuses a file that does not fit and keeps the other files', async () => {
      const { files, network } = await startReplica();
      network.isNearlyFull = true;
      const smallFile = await exportFile(files, 'small.csv', 'id\n');
      await expect(exportFile(files, 'large.csv', randomBytes(9 * 1024 * 1024))).rejects.toMatchObject({
        failure: { kind: 'busy', storage: 'full' },
      });
      expect((await files.list()).map(({ name }) => name)).toEqual(['small.csv']);
      expect(String(await smallFile.readContent())).toBe('id\n');
    });

    test('a nearly full shared store returns no unreadable file if two exports together exceed its space', async () => {
      const { files, network } = await startReplica();
      network.isNearlyFull = true;
      const exportAndRead = async (name: string) => {
        const content = randomBytes(5 * 1024 * 1024);
        const file = await exportFile(files, name, content).catch((error: unknown) => {
          expect(error).toMatchObject({ failure: { kind: 'busy' } });
        });
        if (file) expect(content.equals(await file.readContent())).toBe(true);
      };
      await Promise.all(['first.csv', 'second.csv'].map(exportAndRead));
    });

    test("a replica's copies of datasets stay within their memory limit and are reloaded when needed", async () => {
      const limits = { maxBytes: 400_000, maxBytesEach: 150_000 };
      const shared = openMemoryStore(Date.now);
      const copies = new SharedDatasetStore(shared, limits);
      const openForKey = (key: number) => copies.open({ tenantId: `t${key}` });
      const ads = (count: number) =>
        Array.from({ length: count }, (_, at) => ({ id: `${at}`, body: randomText(10_000) }));
      for (let key = 0; key < 6; key++) await addAds(await openForKey(key), 1, ...ads(10));
      await addAds(await openForKey(6), 1, ...ads(40));
      for (const key of [0, 1, 2, 3, 4, 5, 6, 0, 6]) {
        const { length } = await readIds(await openForKey(key));
        if (key < 6) expect(length).toBe(10);
        else expect(length).toBeGreaterThan(9);
        expect(copies.bytes).toBeLessThanOrEqual(limits.maxBytes);
      }
      expect(copies.bytes).toBeGreaterThan(limits.maxBytes / 2);
      expect(await readIds(await new SharedDatasetStore(shared).open({ tenantId: 't6' }))).toHaveLength(40);
    });

    test('ads that wait for an unreachable shared store are dropped above a size limit, and the log contains one warning', async () => {
      const replica = await startReplica();
      await replica.during('away', async () => {
        for (let at = 0; at < 50 && replica.warned.join().indexOf('lost') < 0; at++)
          await addAds(await replica.dataset(), at, { id: `${at}`, body: 'x'.repeat(4_000_000) }).catch(() => {});
        const listLossWarnings = () =>
          replica.warned.filter((warning) => warning === 'answers were lost and could not be added to the dataset');
        expect(listLossWarnings()).toHaveLength(1);
        for (const id of ['x', 'y'])
          await addAds(await replica.dataset(), 60, { id, body: 'x'.repeat(4_000_000) }).catch(() => {});
        expect(listLossWarnings()).toHaveLength(1);
        // The full queue still accepts the settlement, because it reserves memory for small writes.
        await replica.ledger.settle('t', { chargedCredits: 1, uncertainCredits: 0, isPaidResponse: true });
      });
      await expect.poll(() => replica.ledger.read('t')).toMatchObject({ spentCredits: 1 });
    });
  }

  test.each(['large items hang', 'large items are refused'] as const)(
    'the server can still write data of other API keys to the shared store while %s',
    async (fault) => {
      const [replica, otherReplica] = await startTwoReplicas();
      replica.network.state = 'away';
      await expect(addAds(await replica.dataset(), 1, { id: 'x', body: randomText(100_000) })).rejects.toMatchObject(
        unavailable,
      );
      await expect(addAds(await replica.dataset('u'), 1, { id: 'y', body: randomText(4000) })).rejects.toMatchObject(
        unavailable,
      );
      await replica.ledger.settle('t', { chargedCredits: 1, uncertainCredits: 0, isPaidResponse: true });
      replica.network.state = fault;
      await expect.poll(() => otherReplica.ledger.read('t')).toMatchObject({ spentCredits: 1 });
      await expect.poll(async () => readIds(await otherReplica.dataset('u'))).toEqual(['y']);
      expect(await readIds(await otherReplica.dataset())).toEqual([]);
      replica.network.state = 'fine';
      await expect.poll(async () => readIds(await otherReplica.dataset())).toEqual(['x']);
    },
  );

  test('a replica whose own clock is wrong uses the clock of the shared store from its start', async () => {
    const replica = await startReplica({ now: () => Date.now() + 3_600_000 });
    expect(Math.abs(replica.now() - Date.now())).toBeLessThan(60_000);
  });

  test("a cached response expires if the clock of the shared store jumps past the response's lifetime", async () => {
    const { find, network, store } = await startReplica();
    await store(answer.rawBody);
    for (const [ahead, isFound] of [
      [1000 - ttlMs, true],
      [-ttlMs - 1000, false],
      [ttlMs - 5000, true],
      [ttlMs + 1000, false],
    ] as const) {
      network.clockOffsetMs = ahead;
      expect([ahead, (await find()) !== undefined]).toEqual([ahead, isFound]);
    }
  });

  test('reading an exported file fails with an error if the shared store has lost a piece of the file', async () => {
    const [replica, otherReplica] = await startTwoReplicas();
    let chunkCount = 0;
    replica.network.transformChanges = (changes) => (++chunkCount === 2 ? [] : changes);
    const { uri } = await exportFile(replica.files, 'cut.csv', randomText(600_000));
    expect(chunkCount).toBe(3);
    await expect((await otherReplica.files.find(uri))?.readContent()).rejects.toMatchObject({
      failure: { kind: 'not_found', problem: 'This file is no longer stored. Export it again.' },
    });
  });

  describe('Datasets in the shared store', () => {
    test('the server leaves an item out of the dataset if the item is damaged in the shared store', async () => {
      const [replica, otherReplica] = await startTwoReplicas();
      const damaged = (changes: readonly ItemChange[]) =>
        changes.map((change) => ({ ...change, body: change.body.subarray(0, -1) }));
      await addAds(await replica.dataset(), 1, { id: 'before' });
      replica.network.transformChanges = damaged;
      await addAds(await replica.dataset(), 2, { id: 'damaged' });
      replica.network.transformChanges = (changes) => changes;
      await addAds(await replica.dataset(), 3, { id: 'after' });
      for (const { dataset } of [replica, otherReplica])
        expect(await readIds(await dataset())).toEqual(['after', 'before']);
      await addAds(await otherReplica.dataset(), 4, { id: 'damaged' });
      expect(await readIds(await replica.dataset())).toEqual(['after', 'before', 'damaged']);
    });

    test('a replica with another base URL or secret does not see the dataset of the other replicas', async () => {
      const service = randomUUID();
      await addAds(await (await startReplica({ service })).dataset(), 1, { id: 'x' });
      const secret = 'another secret, which is long enough';
      for (const stranger of [await startReplica(), await startReplica({ service, secret })])
        expect(await readIds(await stranger.dataset())).toEqual([]);
    });
  });

  test('labels in the shared store expire 400 days after their last use', async () => {
    const { own: open, network } = await startReplica();
    const userRecords = await open();
    await userRecords.update('label', () => ({ put: [['x', 1]], result: undefined }));
    const countLongLifetimes = () => network.ttlMs.filter((ms) => ms === 400 * 86_400_000).length;
    expect(countLongLifetimes()).toBe(1);
    await userRecords.read('label');
    network.clockOffsetMs = 2 * 86_400_000;
    expect([...(await userRecords.read('label'))]).toEqual([['x', 1]]);
    await expect.poll(countLongLifetimes).toBe(2);
  });
});
