import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createItemRecords, MemoryDataset } from '../../src/storage/dataset.ts';
import { parseItem } from '../../src/storage/item-versions.ts';
import { MemoryDatasetStore } from '../../src/storage/memory-datasets.ts';
import { addAds, createLastStep, createSource } from './add-items.ts';
import { testDatasets } from './dataset-suite.ts';
import { testUserRecords } from './user-records-suite.ts';

testDatasets('in memory', async () => new MemoryDatasetStore());
testUserRecords('in memory', async () => {
  const datasets = new MemoryDatasetStore();
  return [datasets, datasets];
});

test('new labels and watches (saved searches) are rejected while the memory for them is full', async () => {
  const datasets = new MemoryDatasetStore();
  const fill = async (tenantId: string) => {
    const { userRecords: userRecordsOfTenant } = await datasets.open({ tenantId });
    const put = Array.from({ length: 50 }, (_, at) => [`${at}`, 'x'.repeat(65_000)] as const);
    await userRecordsOfTenant.update('watch', () => ({ put, result: undefined }));
    return userRecordsOfTenant;
  };
  const first = await fill('first');
  const all = [];
  for (let tenant = 0; tenant < 22; tenant++) all.push(...(await Promise.allSettled([fill(`${tenant}`)])));
  const refused = all.filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]).toMatchObject({ reason: { failure: { kind: 'busy' } } });
  await expect(fill('one more')).rejects.toThrow('cannot store any more');
  expect((await first.read('watch')).size).toBe(50);
  await first.update('watch', (found) => ({ remove: found.keys(), result: undefined }));
  expect(await fill('one more')).toBeDefined();
});

test('a response that arrives late is stored as an earlier version of the ad', () => {
  const completeAd = fc.record({ id: fc.constantFrom('a', 'b'), headline: fc.constantFrom('x', 'y', 'z') });
  const fieldOf = (sequenceNumber: number) => `only ${sequenceNumber}`;
  fc.assert(
    fc.property(
      fc.array(completeAd, { maxLength: 10 }),
      fc.array(fc.nat({ max: 5 }), { minLength: 10, maxLength: 10 }),
      fc.infiniteStream(fc.nat()),
      (answers, clocks, numbers) => {
        const dataset = new MemoryDataset();
        const came = answers.map((ad, sequenceNumber) => ({
          sequenceNumber,
          ad: { ...ad, [fieldOf(sequenceNumber)]: true },
        }));
        const shuffled = [...came, ...came]
          .map((answer) => ({ answer, place: numbers.next().value }))
          .sort((left, right) => left.place - right.place);
        for (const { answer } of shuffled) {
          const { sequenceNumber, ad } = answer;
          const batch = {
            ...createSource(clocks[sequenceNumber] ?? 0),
            sequenceNumber,
            type: 'ads',
            parseItems: () => [ad],
          } as const;
          for (const record of createItemRecords(batch)) dataset.applyRecord(record);
        }
        const { ads, version } = dataset.getContents();
        for (const item of ads) {
          const responsesWithAd = came.filter(({ ad }) => ad.id === item.id);
          expect(item).toMatchObject({
            sequenceNumber: responsesWithAd.at(-1)?.sequenceNumber,
            firstSequenceNumber: responsesWithAd[0]?.sequenceNumber,
          });
          expect(parseItem(item)).toEqual(Object.assign({}, ...responsesWithAd.map(({ ad }) => ad)));
          expect(item.versions).toHaveLength(responsesWithAd.length - 1);
          expect(
            item.versions.every((one, at) => one.sequenceNumber < (item.versions[at + 1] ?? item).sequenceNumber),
          ).toBe(true);
        }
        for (const record of [...dataset.listRecords()]) dataset.applyRecord(record);
        expect(dataset.getContents().version).toBe(version);
      },
    ),
  );
});

test('a dataset has the same contents whether it is read after every change or only after the last change', async () => {
  const ad = fc.record({ id: fc.constantFrom('a', 'b'), headline: fc.constantFrom('x', 'y') });
  const ads = fc.uniqueArray(ad, { minLength: 1, maxLength: 2, selector: ({ id }) => id });
  const text = ads.map((all) => JSON.stringify(all));
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 3 }), fc.array(fc.nat(2)), async (texts, turns) => {
      const [atTheEnd, oneByOne] = [new MemoryDatasetStore(), new MemoryDatasetStore()];
      for (const [at, turn] of turns.entries()) {
        const text = texts[turn % texts.length] ?? '';
        const batch = { ...createSource(at + 1), type: 'ads', parseItems: () => JSON.parse(text), text } as const;
        for (const datasets of [atTheEnd, oneByOne]) await (await datasets.open({ tenantId: 't' })).addItems(batch);
        await (await oneByOne.open({ tenantId: 't' })).readContents();
      }
      const [one, other] = [atTheEnd, oneByOne].map(async (datasets) => {
        const { ads, pages } = await (await datasets.open({ tenantId: 't' })).readContents();
        return { ads, pages };
      });
      expect(await one).toEqual(await other);
    }),
  );
});

test('the server parses stored responses only when the dataset is read or when many responses are waiting', async () => {
  const dataset = await new MemoryDatasetStore().open({ tenantId: 't' });
  let taken = 0;
  const parseItems = () => [{ id: `ad-${taken++}` }];
  const answer = (at: number) =>
    dataset.addItems({ ...createSource(at), type: 'ads', parseItems, text: `${at}`.padEnd(100_000) });
  for (let at = 0; at < 10; at++) await answer(at);
  await yieldToEventLoop();
  expect(taken).toBe(0);
  expect((await dataset.readContents()).ads).toHaveLength(10);
  for (let at = 10; at < 500; at++) await answer(at);
  await expect.poll(() => taken).toBeGreaterThan(300);
  expect(taken).toBeLessThan(400);
  expect((await dataset.readContents()).ads).toHaveLength(500);
});

describe('The memory limit of datasets', () => {
  const text = 'x'.repeat(4000);
  const limits = { maxBytes: 2_000_000, maxBytesEach: 1_000_000 };

  test('datasets in memory never exceed their memory limit, and each dataset counts its evicted ads', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ key: fc.nat(3), id: fc.nat(200), size: fc.nat(60_000) }), { maxLength: 120 }),
        async (answers) => {
          const datasets = new MemoryDatasetStore(limits);
          const ids = new Map<number, Set<number>>();
          for (const [at, { key, id, size }] of answers.entries()) {
            await addAds(await datasets.open({ tenantId: `${key}` }), at, { id: `${id}`, body: 'y'.repeat(size) });
            expect(datasets.bytes).toBeLessThanOrEqual(limits.maxBytes);
            ids.set(key, (ids.get(key) ?? new Set()).add(id));
          }
          for (const [key, added] of ids) {
            const { ads, evictedCounts } = await (await datasets.open({ tenantId: `${key}` })).readContents();
            expect(ads.length + evictedCounts.ads).toBeGreaterThanOrEqual(added.size);
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  test('the stored ads of an API key stay within the memory limit, and the newest ads are kept', async () => {
    const datasets = new MemoryDatasetStore(limits);
    const dataset = await datasets.open({ tenantId: 'greedy' });
    for (let at = 0; at < 1000; at++) await addAds(dataset, at, { id: `ad-${at}`, body: text });
    expect(datasets.bytes).toBeLessThanOrEqual(limits.maxBytesEach);
    expect(await dataset.findItem('ads', 'ad-999')).toBeDefined();
    expect(await dataset.findItem('ads', 'ad-0')).toBeUndefined();
  });

  test('if memory is full, the server first evicts ads of the API key with the most stored ads', async () => {
    const datasets = new MemoryDatasetStore({ ...limits, maxBytesEach: limits.maxBytes });
    const open = (tenantId: string) => datasets.open({ tenantId });
    for (let tenant = 0; tenant < 20; tenant++)
      for (let at = 0; at < 10; at++) await addAds(await open(`small ${tenant}`), at, { id: `ad-${at}`, body: text });
    for (let at = 0; at < 1000; at++) await addAds(await open('greedy'), at, { id: `ad-${at}`, body: text });
    for (let tenant = 0; tenant < 20; tenant++)
      expect((await (await open(`small ${tenant}`)).readContents()).ads).toHaveLength(10);
    const { ads, evictedCounts } = await (await open('greedy')).readContents();
    expect(ads.length + evictedCounts.ads).toBe(1000);
    expect(ads.length).toBeGreaterThan(100);
  });

  test('gather_ads can store as many ads as the server estimates without evicting any ad from memory', async () => {
    const datasets = new MemoryDatasetStore(limits);
    const dataset = await datasets.open({ tenantId: 't' });
    for (let at = 0; at < 60; at++) await addAds(dataset, at, { id: `ad-${at}`, body: text });
    const promised = await dataset.estimateMaxAds();
    expect(promised).toBeGreaterThan(100);
    for (let at = 60; at < 60 + promised; at++) {
      await addAds(dataset, at, { id: `new-${at}`, body: text });
      await dataset.saveGathering(createLastStep([`new-${at}`], { gatheredAt: at }));
    }
    expect((await dataset.readContents()).gatherings).toMatchObject([{ evictedCount: 0, isComplete: true }]);
  });

  test('the server keeps ten earlier versions of an ad and 500 gather_ads results for each dataset', async () => {
    const dataset = await new MemoryDatasetStore().open({ tenantId: 't' });
    for (let at = 0; at < 600; at++) {
      await addAds(dataset, at, { id: 'a', headline: `${at}` });
      await dataset.saveGathering(createLastStep([], { id: `g${at}`, sequenceNumber: at, gatheredAt: at }));
    }
    const { ads, gatherings, evictedCounts } = await dataset.readContents();
    expect(ads[0]?.versions.map((version) => parseItem(version).headline)).toEqual(
      Array.from({ length: 10 }, (_, index) => `${589 + index}`),
    );
    expect(gatherings).toHaveLength(500);
    expect(evictedCounts.gatherings).toBe(100);
  });
});
