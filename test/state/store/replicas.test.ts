import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Call, operations } from '../../../src/api/call.ts';
import type { Dataset } from '../../../src/state/dataset.ts';
import type { CallClaims, Claim } from '../../../src/state/state.ts';
import { openStoreState } from '../../../src/state/store/store-state.ts';
import type { Turns } from '../../../src/state/turns.ts';
import { until } from '../../support/http.ts';
import { StoreNetwork } from '../../support/store-network.ts';
import { describeEveryStore } from '../../support/stores.ts';
import { add, lastStep } from '../add-items.ts';

const callOf = (signal = new AbortController().signal): Call => ({
  ...{ operation: operations.getAd, path: { adId: '1' }, query: {}, apiKey: 'k', tenantId: 't', signal },
  fingerprint: '["getAd",{"adId":"1"},{},null]',
});
const answer = {
  value: { id: '1' },
  raw: { id: '1' },
  receipt: { charged: 1, remaining: 9, cached: false, requestId: 'r' },
};
const name = { fingerprint: callOf().fingerprint, group: 'a group' };
const tooDeep = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
const unavailable = { failure: { kind: 'unavailable' } };
const noise = (bytes: number) => randomBytes(bytes / 2).toString('hex');
const idsIn = async (dataset: Dataset) => (await dataset.contents()).ads.map(({ id }) => id).toSorted();
const never = () => new AbortController().signal;

function granted(claim: Claim) {
  if (claim.kind !== 'granted') throw new Error(`the claim is ${claim.kind}`);
  return claim;
}

describeEveryStore('replicas', (_, { driver }) => {
  async function join({ service = randomUUID() as string, secret = 'a secret of at least 32 characters' } = {}) {
    const network = new StoreNetwork();
    const warned: string[] = [];
    const replica = await openStoreState({
      ...{ driver: network.between(driver()), secret, baseUrl: `http://${service}.invalid`, now: Date.now },
      log: { error: () => {}, warn: (message) => void warned.push(message), info: () => {} },
    });
    onTestFinished(() => replica.close());
    const state = replica.state({ ttl: 60_000, now: Date.now });
    const datasets = replica.datasets();
    const claim = (call = callOf()) => (state.claims as CallClaims).claim(call, async () => {});
    const dataset = (tenantId = 't') => datasets.of({ tenantId, apiKey: 'k' });
    /** Does something while the store is like that. */
    const during = async <Result>(what: StoreNetwork['state'], work: () => Promise<Result>): Promise<Result> => {
      network.state = what;
      const done = await work();
      network.state = 'fine';
      await until(() => replica.isUp());
      return done;
    };
    return { ...replica, ...state, network, warned, claim, dataset, during };
  }
  const several = async (count: number) => {
    const service = randomUUID();
    return Promise.all(Array.from({ length: count }, () => join({ service })));
  };
  const two = async () => {
    const [one, other] = await several(2);
    return [one as NonNullable<typeof one>, other as NonNullable<typeof other>] as const;
  };

  describe('claims', () => {
    test('that were granted though nobody heard of it end with their call', async () => {
      const [one, other] = await two();
      const claim = granted(await one.during('answers are lost', () => one.claim()));
      const waiting = other.claim();
      await claim.end({ answer });
      expect((await waiting).kind).not.toBe('lost');
    });

    test('of a caller who left meanwhile are not kept', async () => {
      const [one, other] = await two();
      const caller = new AbortController();
      await one.during('answers are lost', async () => {
        const claim = one.claim(callOf(caller.signal));
        caller.abort();
        await expect(claim).rejects.toThrow();
      });
      expect(await other.claim()).toMatchObject({ kind: 'granted' });
    });

    test.each(['away', 'refused', 'answers are lost'] as const)(
      'whose end was told while the store was like that (%s) are ended later, and those who wait get the outcome',
      async (what) => {
        const [one, other] = await two();
        const claim = granted(await one.claim());
        const waiting = other.claim();
        // Until it waits.
        await new Promise((resolve) => setTimeout(resolve, 300));
        await one.during(what, () => claim.end({ answer }));
        expect(await waiting).toMatchObject({ kind: 'ended', outcome: { answer } });
      },
      20_000,
    );

    test('whose answer is nested too deep to be handed over end, so that those who wait make the call', async () => {
      const [one, other] = await two();
      const claim = granted(await one.claim());
      const waiting = other.claim();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await claim.end({ answer: { ...answer, raw: tooDeep } });
      expect(await waiting).toMatchObject({ kind: 'granted' });
    });
  });

  describe('turns', () => {
    test('that one waits for in vain are busy, and take nobody with them', async () => {
      const [one, other] = (await two()).map((replica) => replica.turns()) as [Turns, Turns];
      const end = await one.take('a question', never());
      const leaving = new AbortController();
      const left = other.take('a question', leaving.signal);
      const waiting = other.take('a question', never());
      leaving.abort();
      await expect(left).rejects.toMatchObject({ failure: { kind: 'busy' } });
      (await other.take('another question', never()))();
      end();
      (await waiting)();
    });

    test('are unavailable while the store is away, and free afterwards', async () => {
      const one = await join();
      const turns = one.turns();
      await one.during('away', () => expect(turns.take('a', never())).rejects.toMatchObject(unavailable));
      (await turns.take('a', never()))();
    });
  });

  describe('keys that were rejected', () => {
    test('are known to all, also those rejected while the store was away, until the service answers one', async () => {
      const [one, other] = await two();
      await add(await one.dataset(), 1, { id: 'x' });
      await one.during('away', async () => {
        await one.rejectedKeys.add('t');
        expect(await one.rejectedKeys.has('t')).toBe(true);
      });
      await expect.poll(() => other.rejectedKeys.has('t'), { timeout: 10_000 }).toBe(true);
      expect(await other.rejectedKeys.has('b')).toBe(false);
      other.rejectedKeys.answered('t', false);
      expect(await one.rejectedKeys.has('t')).toBe(true);
      other.rejectedKeys.answered('t', true);
      await expect.poll(() => one.rejectedKeys.has('t')).toBe(false);
    });

    test('take no room if nothing is kept for them', async () => {
      const { rejectedKeys } = await join();
      await rejectedKeys.add('made up');
      expect(await rejectedKeys.has('made up')).toBe(false);
    });
  });

  describe('answers and full windows', () => {
    const put = async ({ answers }: Awaited<ReturnType<typeof join>>, raw: unknown = answer.raw) =>
      (await answers.begin('t', name)).store({ answer: { ...answer, raw }, at: Date.now() });

    test('are no longer kept once there is little room, so that spending finds some', async () => {
      const [one, other] = await two();
      one.network.isTight = true;
      await put(one);
      expect(await other.answers.get('t', name)).toBeUndefined();
      await other.ledger.settle('t', { charged: 1, uncertain: 0, isPaidAnswer: true });
      expect(await one.ledger.read('t')).toMatchObject({ spent: 1 });
    });

    test('that are nested too deep are not kept, and fail nobody', async () => {
      const one = await join();
      await put(one, tooDeep);
      expect(await one.answers.get('t', name)).toBeUndefined();
    });

    test('are absent while the store is away, and what is dropped meanwhile is dropped when it is back', async () => {
      const [one, other] = await two();
      await put(one);
      expect(await other.answers.get('t', name)).toMatchObject({ answer });
      await one.during('away', async () => {
        expect(await one.answers.get('t', name)).toBeUndefined();
        await one.answers.invalidate('t', name.group);
      });
      expect(await one.answers.get('t', name)).toBeUndefined();
      await expect.poll(() => other.answers.get('t', name), { timeout: 10_000 }).toBeUndefined();
    });
  });

  describe('cursors', () => {
    test('are bounded in bytes, and the newest stay', async () => {
      const [one, other] = (await two()).map(({ cursorsOf }) => cursorsOf('t'));
      for (let at = 0; at < 25; at++) await one?.remember(`@${at}`, { searchParams: { noise: noise(200_000) } });
      expect(await other?.recall('@24')).toBeDefined();
      expect(await other?.recall('@0')).toBeUndefined();
      await one?.remember('@huge', { searchParams: { noise: noise(2_000_000) } });
      expect(await other?.recall('@huge')).toBeUndefined();
      expect(await other?.recall('@24')).toBeDefined();
    });

    test('are known to their own replica while the store is away, and to all once it is back', async () => {
      const [one, other] = await two();
      const state = { searchParams: { query: 'tea' } };
      await one.during('away', async () => {
        await one.cursorsOf('t').remember('@1', state);
        expect(await one.cursorsOf('t').recall('@1')).toEqual(state);
        await expect(one.cursorsOf('t').recall('@2')).rejects.toMatchObject(unavailable);
      });
      await expect.poll(() => other.cursorsOf('t').recall('@1'), { timeout: 10_000 }).toEqual(state);
    });
  });

  describe('datasets', () => {
    test('are the same at every replica, and at a later one, and belong to one key, service and secret', async () => {
      const service = randomUUID();
      const [one, other] = [await join({ service }), await join({ service })];
      expect(await idsIn(await other.dataset())).toEqual([]);
      await add(await one.dataset(), 1, { id: 'x', headline: 'one' });
      expect(await idsIn(await other.dataset())).toEqual(['x']);
      await add(await other.dataset(), 2, { id: 'x', headline: 'two' }, { id: 'y' });
      await (await other.dataset()).saveGathering(lastStep(['x', 'y']));
      const { version: _, ...expected } = await (await one.dataset()).contents();
      expect(expected).toMatchObject({ gatherings: [{ complete: true }], ads: [{ versions: [{}] }, { versions: [] }] });
      for (const replica of [other, await join({ service })])
        expect(await (await replica.dataset()).contents()).toMatchObject(expected);
      const stranger = await join({ service, secret: 'another secret, which is long enough' });
      for (const dataset of [await one.dataset('u'), await (await join()).dataset(), await stranger.dataset()])
        expect(await idsIn(dataset)).toEqual([]);
    });

    test('lose and double nothing while replicas add and read at once', async () => {
      const replicas = await several(3);
      await Promise.all(
        replicas.map(async ({ dataset }, own) => {
          for (let at = 0; at < 20; at++) {
            await add(await dataset(), at, { id: `${own}-${at}`, body: noise(2000) }, { id: 'all', at, own });
            if (at % 7 === own) await (await dataset()).contents();
          }
        }),
      );
      for (const { dataset, warned } of replicas) {
        expect(await idsIn(await dataset())).toHaveLength(61);
        expect(warned).toEqual([]);
      }
    });

    test.each(['away', 'refused', 'answers are lost'] as const)(
      'are unavailable and never empty while the store is like that (%s), and lose nothing that was paid for',
      async (what) => {
        const [one, other] = await two();
        await add(await one.dataset(), 1, { id: 'before' });
        await one.during(what, async () => {
          const during = await one.dataset();
          await expect(add(during, 2, { id: 'during' })).rejects.toMatchObject(unavailable);
          await expect(during.saveGathering(lastStep(['during']))).rejects.toMatchObject(unavailable);
          await expect(during.contents()).rejects.toMatchObject(unavailable);
          await expect(during.item('ads', 'before')).rejects.toMatchObject(unavailable);
          await expect(during.maxAds()).rejects.toMatchObject(unavailable);
        });
        for (const { dataset } of [one, other])
          await expect
            .poll(async () => (await (await dataset()).contents()).gatherings, { timeout: 10_000 })
            .toHaveLength(1);
        for (const { dataset } of [one, other]) expect(await idsIn(await dataset())).toEqual(['before', 'during']);
      },
      20_000,
    );

    test('take less room where there is little for all, and what came last stays', async () => {
      const one = await join();
      const many = Array.from({ length: 120 }, (_, at) => ({ id: `${at}`, body: noise(200_000) }));
      for (let at = 0; at < 120; at += 40) await add(await one.dataset(), at, ...many.slice(at, at + 40));
      // On a busy machine, so much may take the store longer than a read waits.
      await expect.poll(async () => (await idsIn(await one.dataset())).length, { timeout: 10_000 }).toBe(120);
      one.network.isTight = true;
      await add(await one.dataset(), 120, { id: 'last' });
      const { ads, letGo } = await (await one.dataset()).contents();
      expect(ads.length).toBeLessThan(90);
      expect(ads.at(-1)?.id).toBe('last');
      expect(ads.length + letGo.ads).toBe(121);
      expect(one.warned).toContain('the shared state is nearly full: less is kept of each key');
    });

    test('are copied within a bound for all keys and for each, and read anew where a copy was let go', async () => {
      const one = await join();
      const limits = { maxBytes: 400_000, maxBytesEach: 150_000 };
      const copies = one.datasets(limits);
      const of = (key: number) => copies.of({ tenantId: `t${key}`, apiKey: 'k' });
      const ads = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `${at}`, body: noise(10_000) }));
      for (let key = 0; key < 6; key++) await add(await of(key), 1, ...ads(10));
      await add(await of(6), 1, ...ads(40));
      for (const key of [0, 1, 2, 3, 4, 5, 6, 0, 6]) {
        const { length } = await idsIn(await of(key));
        if (key < 6) expect(length).toBe(10);
        else expect(length).toBeGreaterThan(9);
        expect(copies.bytes).toBeLessThanOrEqual(limits.maxBytes);
      }
      expect(copies.bytes).toBeGreaterThan(limits.maxBytes / 2);
      expect(await idsIn(await one.dataset('t6'))).toHaveLength(40);
    });

    test('of a store that stays away are lost beyond what there is memory for, and that is said', async () => {
      const one = await join();
      await one.during('away', async () => {
        for (let at = 0; at < 50 && one.warned.join().indexOf('lost') < 0; at++)
          await add(await one.dataset(), at, { id: `${at}`, body: 'x'.repeat(4_000_000) }).catch(() => {});
        expect(one.warned.join()).toContain('answers are lost to a dataset');
      });
    });
  });

  test('keep exported files unavailable, and not empty, while the store is away', async () => {
    const one = await join();
    const exports = one.exports(Date.now).of('t');
    const create = (fileName: string) =>
      exports.create({ name: fileName, mimeType: 'text/csv', write: (append) => append(randomBytes(600_000)) });
    const { uri } = await create('x.csv');
    await one.during('away', async () => {
      await expect(exports.list()).rejects.toMatchObject(unavailable);
      await expect(create('y.csv')).rejects.toMatchObject(unavailable);
    });
    expect((await (await exports.find(uri))?.content())?.length).toBe(600_000);
  });
});
