import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Dataset } from '../../../src/storage/dataset.ts';
import { openMemoryStore } from '../../../src/storage/in-memory.ts';
import type { ItemChange, ReadResult, RemoteStore, StoreDriver } from '../../../src/storage/storage.ts';
import { StoreDatasets } from '../../../src/storage/store/datasets.ts';
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
  } = {}) {
    const network = new StoreNetwork();
    const warned: string[] = [];
    const replica = await openStoreState({
      ...{
        driver: network.wrapDriver(driver()),
        secret,
        baseUrl: `http://${service}.invalid`,
        callTimeoutMs,
        now: Date.now,
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
    const [one, other] = await startTwoReplicas();
    return [one.datasets, other.datasets];
  });
  testExports('in a shared store', async () => (await startReplica()).exports);

  test.each(['away', 'refused', 'answers are lost'] as const)(
    'reads from a shared store with the fault "%s" fail instead of returning empty data',
    async (fault) => {
      const [one, other] = await startTwoReplicas();
      const cursorState = { searchParams: { query: 'tea' } };
      await cacheAnswer(one.responseCache, {
        id: 'a list',
        group,
        cached: { response: answer, arrivedAt: Date.now() },
      });
      expect(await other.isListKept()).toBe(true);
      await addAds(await one.dataset(), 1, { id: 'before' });
      const { uri } = await exportFile(one.files, 'x.csv', randomText(600_000));
      const claim = await claimCall(one.responseCache, adAnswerName);
      const waiting = other.claim();
      await one.keys.add('t');
      expect(await other.keys.has('t')).toBe(true);

      await one.during(fault, () => claim.endClaim());
      await one.during(fault, async () => {
        const dataset = await one.dataset();
        await expect(addAds(dataset, 2, { id: 'during' })).rejects.toMatchObject(unavailable);
        await expect(dataset.saveGathering(createLastStep(['during']))).rejects.toMatchObject(unavailable);
        for (const pendingRead of [dataset.readContents(), dataset.findItem('ads', 'before'), dataset.estimateMaxAds()])
          await expect(pendingRead).rejects.toMatchObject(unavailable);
      });
      await one.during(fault, async () => {
        await one.openCursors('t').save('@1', cursorState);
        await expect(one.openCursors('t').load('@1')).rejects.toMatchObject(unavailable);
        await expect(one.locks.acquire('a', createSignalWithoutAbort())).rejects.toMatchObject(unavailable);
        await expect(one.files.list()).rejects.toMatchObject(unavailable);
        await expect(exportFile(one.files, 'y.csv', 'y')).rejects.toMatchObject(unavailable);
      });
      await one.during(fault, async () => {
        expect(await one.isListKept()).toBe(false);
        await one.responseCache.forgetGroup('t', group);
      });
      await one.during(fault, async () => {
        await one.keys.remove('t');
        expect(await one.keys.has('t')).toBe(false);
      });

      expect(await waiting).toMatchObject({ kind: 'granted' });
      await expect.poll(() => other.keys.has('t')).toBe(false);
      for (const { isListKept } of [one, other]) await expect.poll(isListKept).toBe(false);
      await expect.poll(() => other.openCursors('t').load('@1')).toEqual(cursorState);
      for (const { dataset } of [one, other]) {
        await expect.poll(async () => (await (await dataset()).readContents()).gatherings).toHaveLength(1);
        // The ads and the list of their ids are separate pending writes, so either can arrive first.
        await expect.poll(async () => readIds(await dataset())).toEqual(['before', 'during']);
      }
      (await one.locks.acquire('a', createSignalWithoutAbort()))();
      expect((await (await other.files.find(uri))?.readContent())?.length).toBe(600_000);
    },
  );

  test('if several replicas make the same call, one sends it to the API and the others get its response', async () => {
    const [one, other] = await startTwoReplicas();
    const claim = await claimCall(one.responseCache, adAnswerName);
    const fresh = { arrivedAfter: Date.now() - 1, onProcessDied: async () => {} };
    const waiting = [other.claim(), other.responseCache.claim(createCall(), adAnswerName, fresh)];
    await delay(10);
    await claim.cacheResponse({ response: answer, arrivedAt: Date.now() });
    for (const each of await Promise.all(waiting))
      expect(each).toMatchObject({ kind: 'cached', cachedResponse: { response: { rawBody: answer.rawBody } } });
    await other.store({ id: '1', is: 'fresh' });
    expect(await one.find()).toEqual({ id: '1', is: 'fresh' });
  });

  test('a replica reserves an API call for itself only until the call ends or the client cancels it', async () => {
    const [one, other] = await startTwoReplicas();
    const unheard = await one.during('answers are lost', () => one.claim());
    const waiting = other.claim();
    if (unheard.kind === 'granted') await unheard.endClaim();
    const next = await waiting;
    if (next.kind !== 'granted') throw new Error(next.kind);
    await next.endClaim();
    const caller = new AbortController();
    await one.during('answers are lost', async () => {
      const claim = one.claim(caller.signal);
      caller.abort();
      await expect(claim).rejects.toThrow();
    });
    expect(await other.claim()).toMatchObject({ kind: 'granted' });
  });

  test.each([
    ['the store is nearly full', { isNearlyFull: true }, answer.rawBody],
    ['the store is unreachable', { state: 'away' as const }, answer.rawBody],
    ['the answer is nested too deep', {}, tooDeep],
  ])('a response is cached only by the replica that received it if %s', async (_, problem, raw) => {
    const [one, other] = await startTwoReplicas();
    await one.store({ id: '1', is: 'before' });
    Object.assign(one.network, problem);
    // Wait, because timestamps of responses have a resolution of one millisecond.
    await delay(20);
    await one.store(raw);
    expect(await one.find()).toBe(raw);
    one.network.state = 'fine';
    await waitUntil(() => one.isUp());
    expect(await one.find()).toBe(raw);
    expect(await other.find()).toEqual({ id: '1', is: 'before' });
    one.network.isNearlyFull = false;
    await delay(20);
    await other.store({ id: '1', is: 'after' });
    for (const { find } of [one, other]) expect(await find()).toEqual({ id: '1', is: 'after' });
    await other.ledger.settle('t', { charged: 1, uncertain: 0, isPaidResponse: true });
    expect(await one.ledger.read('t')).toMatchObject({ spentCredits: 1 });
  });

  test('a call that the client cancels while it waits for a named lock fails as busy', async () => {
    const [one, other] = (await startTwoReplicas()).map((replica) => replica.locks);
    const end = await one?.acquire('a question', createSignalWithoutAbort());
    const leaving = new AbortController();
    const pendingLock = other?.acquire('a question', leaving.signal);
    const waiting = other?.acquire('a question', createSignalWithoutAbort());
    leaving.abort();
    await expect(pendingLock).rejects.toMatchObject({ failure: { kind: 'busy' } });
    (await other?.acquire('another question', createSignalWithoutAbort()))?.();
    end?.();
    (await waiting)?.();
  });

  test('the credit reservations of a replica that was killed stay until the deadline of its call', async () => {
    const [dead, living] = await startTwoReplicas();
    const request = { budget: 10, credits: 10, atLeast: 10, isPaid: true, maxPrice: 10, creditsIfLost: 4 };
    await claimCall(dead.responseCache, adAnswerName);
    expect(await dead.ledger.reserve('t', () => request)).toMatchObject({ kind: 'granted' });

    living.network.clockOffsetMs = callTimeoutMs;
    await expect(living.claim(AbortSignal.timeout(50))).rejects.toThrow();
    expect(await living.ledger.read('t')).toMatchObject({ reservedCredits: 10, uncertainCredits: 0 });

    living.network.clockOffsetMs = callTimeoutMs + 11_000;
    expect(await living.claim()).toMatchObject({ kind: 'lost' });
    expect(await living.ledger.read('t')).toMatchObject({ reservedCredits: 0, uncertainCredits: 4 });
    expect(await living.claim()).toMatchObject({ kind: 'granted' });
  });

  test('a named lock of a killed replica stays taken until the time limit of its last possible request has passed', async () => {
    const [dead, living] = await startTwoReplicas();
    await dead.locks.acquire('a question', createSignalWithoutAbort());
    living.network.clockOffsetMs = 2 * callTimeoutMs;
    const pendingLock = living.locks.acquire('a question', AbortSignal.timeout(50));
    await expect(pendingLock).rejects.toMatchObject({ failure: { kind: 'busy' } });
    living.network.clockOffsetMs = 2 * callTimeoutMs + 11_000;
    (await living.locks.acquire('a question', createSignalWithoutAbort()))();
  });

  test.each(['before', 'after'])(
    'a killed replica is reported to the next call if a call is cancelled %s it detects the killed replica',
    async (moment) => {
      const [dead, living] = await startTwoReplicas();
      await claimCall(dead.responseCache, adAnswerName);
      living.network.clockOffsetMs = callTimeoutMs + 11_000;
      const caller = new AbortController();
      const cancelled = living.claim(caller.signal, async () => caller.abort());
      if (moment === 'before') caller.abort();
      await expect(cancelled).rejects.toThrow();
      expect(await living.claim()).toMatchObject({ kind: 'lost' });
      expect(await living.claim()).toMatchObject({ kind: 'granted' });
    },
  );

  test('a killed replica is reported to only one call while the store refuses changes to documents', async () => {
    const [dead, living] = await startTwoReplicas();
    await claimCall(dead.responseCache, adAnswerName);
    living.network.clockOffsetMs = callTimeoutMs + 11_000;
    await living.during('documents are refused', async () => {
      expect(await living.claim()).toMatchObject({ kind: 'lost' });
      expect(await living.claim()).toMatchObject({ kind: 'granted' });
    });
  });

  test('a call that ends after its deadline counts with the charge that the API reported', async () => {
    const [slow, other] = await startTwoReplicas();
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
    other.network.clockOffsetMs = callTimeoutMs + 11_000;
    expect(await other.ledger.read('t')).toMatchObject({ uncertainCredits: 5 });
    await slow.ledger.settle('t', { charged: 3, uncertain: 0, isPaidResponse: true }, lease);
    expect(await other.ledger.read('t')).toMatchObject({ spentCredits: 3, uncertainCredits: 0, reservedCredits: 0 });
  });

  test('all replicas accept an API key for 15 minutes after the API has accepted the key', async () => {
    const [one, other] = await startTwoReplicas();
    await one.keys.add('t');
    for (const { keys } of [one, other]) expect(await keys.has('t')).toBe(true);
    expect(await other.keys.has('u')).toBe(false);
    await other.keys.remove('t');
    expect(await one.keys.has('t')).toBe(false);
    expect(await one.isKnownKey('t')).toBe(false);
    await one.keys.add('t');
    expect(one.network.ttlMs.filter((ms) => ms === 900_000)).toHaveLength(2);
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
      const [one, other] = (await startTwoReplicas()).map(({ openCursors }) => openCursors('t'));
      for (let at = 0; at < 25; at++) await one?.save(`@${at}`, { searchParams: { noise: randomText(200_000) } });
      expect(await other?.load('@24')).toBeDefined();
      expect(await other?.load('@0')).toBeUndefined();
      await one?.save('@huge', { searchParams: { noise: randomText(2_000_000) } });
      expect(await other?.load('@huge')).toBeUndefined();
      expect(await other?.load('@24')).toBeDefined();
    });
  });

  // Run these tests only once, because they do not depend on the kind of store.
  if (!isReal) {
    test('a shared store that is nearly full keeps fewer ads for each dataset and prefers the newest ads', async () => {
      const one = await startReplica();
      const manyAds = Array.from({ length: 100 }, (_, at) => ({ id: `${at}`, body: randomText(200_000) }));
      for (let at = 0; at < 100; at += 20) await addAds(await one.dataset(), at, ...manyAds.slice(at, at + 20));
      expect(await readIds(await one.dataset())).toHaveLength(100);
      one.network.isNearlyFull = true;
      await addAds(await one.dataset(), 100, { id: 'last' });
      const { ads, evictedCounts } = await (await one.dataset()).readContents();
      expect(ads.length).toBeLessThan(90);
      expect(ads.at(-1)?.id).toBe('last');
      expect(ads.length + evictedCounts.ads).toBe(101);
      expect(one.warned).toContain('the shared state is nearly full: less data is stored for each key');
    });

    test("a replica's copies of datasets stay within their memory limit and are reloaded when needed", async () => {
      const limits = { maxBytes: 400_000, maxBytesEach: 150_000 };
      const shared = openMemoryStore(Date.now);
      const copies = new StoreDatasets(shared, limits);
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
      expect(await readIds(await new StoreDatasets(shared).open({ tenantId: 't6' }))).toHaveLength(40);
    });

    test('ads that wait for an unreachable shared store are dropped above a size limit, with one warning in the log', async () => {
      const one = await startReplica();
      await one.during('away', async () => {
        for (let at = 0; at < 50 && one.warned.join().indexOf('lost') < 0; at++)
          await addAds(await one.dataset(), at, { id: `${at}`, body: 'x'.repeat(4_000_000) }).catch(() => {});
        const listLossWarnings = () =>
          one.warned.filter((warning) => warning === 'answers were lost and could not be added to the dataset');
        expect(listLossWarnings()).toHaveLength(1);
        for (const id of ['x', 'y'])
          await addAds(await one.dataset(), 60, { id, body: 'x'.repeat(4_000_000) }).catch(() => {});
        expect(listLossWarnings()).toHaveLength(1);
        // The full queue still accepts the settlement, because it reserves memory for small writes.
        await one.ledger.settle('t', { charged: 1, uncertain: 0, isPaidResponse: true });
      });
      await expect.poll(() => one.ledger.read('t')).toMatchObject({ spentCredits: 1 });
    });
  }

  test.each(['large items hang', 'large items are refused'] as const)(
    'the server can still write data of other API keys to the shared store while %s',
    async (fault) => {
      const [one, other] = await startTwoReplicas();
      one.network.state = 'away';
      await expect(addAds(await one.dataset(), 1, { id: 'x', body: randomText(100_000) })).rejects.toMatchObject(
        unavailable,
      );
      await expect(addAds(await one.dataset('u'), 1, { id: 'y', body: randomText(4000) })).rejects.toMatchObject(
        unavailable,
      );
      await one.ledger.settle('t', { charged: 1, uncertain: 0, isPaidResponse: true });
      one.network.state = fault;
      await expect.poll(() => other.ledger.read('t')).toMatchObject({ spentCredits: 1 });
      await expect.poll(async () => readIds(await other.dataset('u'))).toEqual(['y']);
      expect(await readIds(await other.dataset())).toEqual([]);
      one.network.state = 'fine';
      await expect.poll(async () => readIds(await other.dataset())).toEqual(['x']);
    },
  );

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

  test('reading an exported file fails with an error if the shared store has lost a part of it', async () => {
    const [one, other] = await startTwoReplicas();
    let chunkCount = 0;
    one.network.transformChanges = (changes) => (++chunkCount === 2 ? [] : changes);
    const { uri } = await exportFile(one.files, 'cut.csv', randomText(600_000));
    expect(chunkCount).toBe(3);
    await expect((await other.files.find(uri))?.readContent()).rejects.toMatchObject({
      failure: { kind: 'not_found', problem: 'This file is no longer stored. Export it again.' },
    });
  });

  describe('Datasets in the shared store', () => {
    test('an item that is damaged in the shared store is left out of the dataset', async () => {
      const [one, other] = await startTwoReplicas();
      const damaged = (changes: readonly ItemChange[]) =>
        changes.map((change) => ({ ...change, body: change.body.subarray(0, -1) }));
      await addAds(await one.dataset(), 1, { id: 'before' });
      one.network.transformChanges = damaged;
      await addAds(await one.dataset(), 2, { id: 'damaged' });
      one.network.transformChanges = (changes) => changes;
      await addAds(await one.dataset(), 3, { id: 'after' });
      for (const { dataset } of [one, other]) expect(await readIds(await dataset())).toEqual(['after', 'before']);
      await addAds(await other.dataset(), 4, { id: 'damaged' });
      expect(await readIds(await one.dataset())).toEqual(['after', 'before', 'damaged']);
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
