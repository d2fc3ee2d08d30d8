import { describe, expect, test } from 'vitest';
import { createGathering } from '../../src/dataset/gatherings.ts';
import type { DatasetStore } from '../../src/storage/dataset.ts';
import { parseItem } from '../../src/storage/item-versions.ts';
import { addAds, createSource } from './add-items.ts';

/** Defines the tests of a dataset store. */
export function testDatasets(name: string, open: () => Promise<DatasetStore>): void {
  const datasetFor = async (key = 'a') => (await open()).open({ tenantId: key, apiKey: key });

  describe(`Datasets ${name}`, () => {
    test('an ad keeps a field of its earlier version if the newer version has no such field', async () => {
      const dataset = await datasetFor();
      const page = { pageName: 'Acme', adsAmount: 3 };
      await addAds(dataset, 1, { id: 'A-1', headline: 'Old', body: 'Text', endDate: '2026-01-01', page });
      await addAds(dataset, 2, { id: 'a-1', headline: 'New', endDate: null, page: { pageName: 'Acme Ltd' } });
      const item = await dataset.findItem('ads', 'A-1');
      expect(item && parseItem(item)).toEqual({
        id: 'a-1',
        headline: 'New',
        body: 'Text',
        endDate: null,
        page: { pageName: 'Acme Ltd', adsAmount: 3 },
      });
      expect(item).toMatchObject({ at: 2, firstAt: 1, since: 2, listedBy: 'searchAds', requestId: 'r2' });
      expect(item?.versions.map((version) => [version.at, parseItem(version).headline])).toEqual([[1, 'Old']]);
    });

    test('a new version of an ad is stored only if the content of the ad changed', async () => {
      const dataset = await datasetFor();
      const ad = (signature: string, target: string) => ({
        id: 'a',
        appUrl: `https://app.example/${signature}`,
        lastSeenAt: signature,
        media: [
          {
            type: 'VID',
            url: `https://cdn.example/v.mp4?s=${signature}`,
            urls: { preview: `https://x/?${signature}` },
          },
        ],
        cards: [{ image_url: `https://cdn.example/1.png?s=${signature}`, url: `https://shop.example/?to=${target}` }],
      });
      await addAds(dataset, 1, ad('one', 'x'));
      await addAds(dataset, 2, ad('two', 'x'));
      expect(await dataset.findItem('ads', 'a')).toMatchObject({ since: 1, at: 2, versions: [] });
      await addAds(dataset, 3, ad('two', 'y'));
      const item = await dataset.findItem('ads', 'a');
      expect(item).toMatchObject({ since: 3, at: 3, firstAt: 1 });
      expect(item?.versions).toHaveLength(1);
    });

    test('ads and advertiser pages are stored separately, and items without a valid id are not stored', async () => {
      const dataset = await datasetFor();
      const nested = JSON.parse(`{"id":"deep","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
      const longest = 'p'.repeat(300);
      await addAds(dataset, 1, { id: 'x' }, { id: 7 }, { id: ' ' }, null, 'text', { pageId: 'p' }, nested);
      await dataset.addItems({
        ...createSource(2),
        type: 'pages',
        parseItems: () => [{ pageId: 'x', pageName: 'X' }, { id: 'y' }, { pageId: longest }, { pageId: `${longest}p` }],
      });
      const { ads, pages } = await dataset.readContents();
      expect(ads.map(({ id }) => id)).toEqual(['x']);
      expect(pages.map(({ id }) => id)).toEqual(['x', longest]);
    });

    test('an ad with more than 500 nested levels is not stored', async () => {
      const dataset = await datasetFor();
      const depths = [10, 499, 500, 501, 1000, 4000, 8000];
      for (const depth of depths)
        for (const at of [1, 2]) {
          const lists = depth - 1;
          const nested = `{"id":"deep ${depth}","x":${'['.repeat(lists)}${at}${']'.repeat(lists)}}`;
          await addAds(dataset, at, JSON.parse(nested), { id: `beside ${depth}`, at });
        }
      const { ads } = await dataset.readContents();
      const changed = ads.filter(({ versions }) => versions.length === 1).map(({ id }) => id);
      const stored = [10, 499, 500].map((depth) => `deep ${depth}`);
      expect(changed.sort()).toEqual([...depths.map((depth) => `beside ${depth}`), ...stored].sort());
    });

    test('storing the same result page of a gather_ads run a second time changes nothing', async () => {
      const dataset = await datasetFor();
      const state = createGathering({ filters: { query: 'tea' } }, 1);
      await addAds(dataset, 1, { id: 'a' }, { id: 'b' }, { id: 'c' });
      const first = { ...state, matchingCount: 3, cursor: 'next', adIds: ['A', 'b'] };
      await dataset.saveGathering(first);
      const last = { ...state, matchingCount: 3, hasReadLastPage: true, gatheredAt: 2, adIds: ['b', 'c'] };
      expect((await dataset.readContents()).gatherings).toMatchObject([{ cursor: 'next', isComplete: false }]);
      await dataset.saveGathering(last);
      const { version, gatherings } = await dataset.readContents();
      await dataset.saveGathering(last);
      await dataset.saveGathering(first);
      expect(await dataset.readContents()).toMatchObject({ version, gatherings });
      expect(gatherings).toMatchObject([
        { id: state.id, matchingCount: 3, isComplete: true, cursor: null, evictedCount: 0 },
      ]);
      expect([...(gatherings[0]?.adIds ?? [])]).toEqual(['a', 'b', 'c']);
    });

    test('dataset contents that a caller has read do not change when the dataset changes later', async () => {
      const dataset = await datasetFor();
      const state = createGathering({}, 1);
      await addAds(dataset, 1, { id: 'a', body: 'one' });
      await dataset.saveGathering({ ...state, adIds: ['a'] });
      const before = await dataset.readContents();
      await addAds(dataset, 2, { id: 'a', body: 'two' }, { id: 'b' });
      await dataset.saveGathering({ ...state, gatheredAt: 2, adIds: ['b'] });
      expect(before.ads.map(parseItem)).toEqual([{ id: 'a', body: 'one' }]);
      expect(before.gatherings[0]?.adIds.size).toBe(1);
    });

    test('two API keys never share a dataset', async () => {
      const datasets = await open();
      const [ownDataset, otherDataset] = [
        await datasets.open(createCaller('a')),
        await datasets.open(createCaller('b')),
      ];
      await addAds(ownDataset, 1, { id: 'a' });
      await addAds(otherDataset, 1, { id: 'b' });
      expect((await ownDataset.readContents()).ads.map(({ id }) => id)).toEqual(['a']);
      expect(await otherDataset.findItem('ads', 'a')).toBeUndefined();
    });
  });
}

const createCaller = (key: string) => ({ tenantId: key, apiKey: key });
