import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, searchAll, uuid } from './support/served-library.ts';

const get = async ({ served, key }: { served: ServedLibrary; key: string }, path: string) =>
  (await served.ask('GET', path, { key })).body;

describe('records in the API’s shapes', () => {
  test('are read back as they were, extra keys and all, by id and by search', async ({ served, key }) => {
    const extras = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 8 }).filter((name) => !['__proto__', 'appUrl', 'data'].includes(name)),
      fc.jsonValue({ maxDepth: 3 }),
      { maxKeys: 5 },
    );
    const texts = fc.record({ headline: fc.string({ unit: 'binary' }), body: fc.string({ unit: 'binary' }) });
    await fc.assert(
      fc.asyncProperty(extras, texts, fc.uuid(), async (extra, text, id) => {
        const ad = JSON.parse(JSON.stringify({ ...extra, ...text, id, pageId: id }));
        const report = await served.load(ad);
        fc.pre(report.skipped === 0);
        expect(await get({ served, key }, `/v1/ads/${id.toUpperCase()}`)).toEqual(ad);
        const { items } = await searchAll(served, '/v1/ads/search', key, { pageId: id });
        expect(items).toEqual([{ ...ad, appUrl: `${served.base}/ads/${id}` }]);
      }),
    );
  });

  test('a record replaces one with the same id, also in searches', async ({ served, key }) => {
    await served.load({ id: uuid(1), headline: 'Old words', countries: ['US'] });
    await served.load({ id: uuid(1), headline: 'New words', countries: ['DE'] });
    expect(await get({ served, key }, `/v1/ads/${uuid(1)}`)).toEqual({
      id: uuid(1),
      headline: 'New words',
      countries: ['DE'],
    });
    const hits = async (body: object) => (await served.ask('POST', '/v1/ads/search', { key, body })).body.totalHits;
    expect([
      await hits({ query: 'old' }),
      await hits({ query: 'new' }),
      await hits({ countries: 'US' }),
      await hits({}),
    ]).toEqual([0, 1, 0, 1]);
  });

  test('a page made from an ad is replaced by the page itself, and never replaces it', async ({ served, key }) => {
    const ad = { id: uuid(1), pageId: 'p', page: { pageName: 'From the ad', adsAmount: 3 }, countries: ['FR'] };
    await served.load(ad);
    expect(await get({ served, key }, '/v1/pages/p')).toEqual({
      pageId: 'p',
      pageName: 'From the ad',
      adsAmount: 3,
      countries: ['FR'],
      detailsEstimated: true,
    });
    await served.load({ pageId: 'p', pageName: 'Itself' });
    await served.load(ad, { ...ad, id: uuid(2) });
    expect(await get({ served, key }, '/v1/pages/p')).toEqual({ pageId: 'p', pageName: 'Itself' });
  });

  test('bad lines are reported by number and skipped', async ({ served }) => {
    const report = await served.load(
      { id: uuid(1) },
      '',
      '{"id":',
      { id: 'seven' },
      { id: uuid(2), duplicates: 'many' },
      { id: uuid(3), startedAt: 'yesterday' },
      { name: 'neither' },
      { pageId: 'no-name' },
      '42',
      [{ id: uuid(4) }, { id: 'eight' }],
      { data: [{ id: uuid(5) }] },
    );
    expect(report).toMatchObject({ ads: 3, pages: 0, skipped: 8 });
    expect(report.problems.map(({ line, problem }) => `${line} ${problem.split(/[:;]/)[0]}`)).toEqual([
      '3 not JSON',
      '4 id',
      '5 duplicates',
      '6 startedAt',
      '7 neither an ad (id) nor a page (pageId, pageName) nor an ad of the public ad library (ad_archive_id)',
      '8 pageName',
      '9 not JSON',
      '10 id',
    ]);
  });

  test('an endless line is skipped and not kept in memory', async ({ served }) => {
    async function* endless() {
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      yield Buffer.from(`{"id":"${uuid(2)}"}\n`);
      for (let megabyte = 0; megabyte < 64; megabyte++) yield chunk;
      yield Buffer.from(`\n{"id":"${uuid(1)}"}\n`);
    }
    const report = await served.library.import(endless());
    expect(report).toMatchObject({ ads: 2, skipped: 1, problems: [{ line: 2 }] });
  });
});
