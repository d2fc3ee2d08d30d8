import { describe, expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();

const formatShares = { sql: 'SELECT displayFormat, count(*) FROM ads GROUP BY 1' };

describe('The note on missing ads in query_ads', () => {
  test('query_ads says how many of its ads come only from search_ads and not from gather_ads', async ({ server }) => {
    const { data: gathered } = await server.call('gather_ads', {
      filters: { countries: ['DE'], displayFormat: ['VIDEO'] },
      maxCredits: 50,
    });
    const covered = await server.call('query_ads', formatShares);
    expect(covered.data.coverage).toMatchObject({ ads: 59, gatherings: 1, current: { ads: 59 } });
    expect(covered.text).toContain('Coverage: 59 ads; every gathering is complete.');
    await server.call('search_ads', { filters: { displayFormat: ['IMAGE'] }, limit: 20 });
    const { data, text } = await server.call('query_ads', formatShares);
    expect(data.coverage).toMatchObject({ ads: 79, gatherings: 1, outsideAds: 20 });
    expect(text).toMatch(/No complete gathering covers \d+ advertisers of the dataset/);
    expect(text).toContain('79 ads, 20 of them only from searches or earlier gatherings');
    const countGathered = `SELECT count(*) FROM ads JOIN gathered ON adId = id WHERE gatheringId = '${gathered.gathering}'`;
    expect(await server.queryRows(countGathered)).toEqual([[59]]);
    const exported = await server.call('export_ads', {});
    expect(exported.text).toContain('20 of them only from searches');
    expect((await server.readResource(exported.data.methods)).text).toContain('20 of the ads came only from searches');
  });

  upstreamTest(
    'query_ads says how many of its ads were missing from the latest run of gather_ads',
    async ({ upstream, start }) => {
      let clock = Date.parse('2026-11-20T10:00:00Z');
      const server = await start({}, { now: () => clock++ });
      const service = serveAds(upstream, 30);
      const split = { split: [{ query: 'a' }, { query: 'b' }], maxCredits: 100 };
      await server.call('gather_ads', split);
      service.ads = service.ads.slice(4);
      await server.call('gather_ads', { ...split, fresh: true });
      const { data, text } = await server.call('query_ads', formatShares);
      expect(data.coverage).toMatchObject({ ads: 30, outsideAds: 4 });
      expect(text).toContain('30 ads, 4 of them only from searches or earlier gatherings');
    },
  );
});

upstreamTest(
  'query_ads names the advertisers whose ads gather_ads has not read completely',
  async ({ upstream, server }) => {
    const service = serveAds(upstream, 0);
    const long = `Gamma ${'of many words '.repeat(20)}`;
    const names = ['Acme', 'Beta: learn\u200b more', long, ...'DEFGHIJKLMNOPQ'];
    const all = Array.from({ length: 60 }, (_, index) => {
      const owner = (7 * index) % 18;
      return createAd(index, owner === 17 ? {} : { pageId: `p${owner}`, page: { pageName: names[owner] } });
    });
    // Gather all ads of Acme and some ads of the next advertisers.
    const isFullyGathered = ({ pageId }: object & { pageId?: unknown }, index: number) => pageId === 'p0' || index < 20;
    service.ads = all.filter(isFullyGathered);
    await server.call('gather_ads', { filters: { some: 'whole' }, maxCredits: 50 });
    service.ads = all.slice(20, 40);
    await server.call('gather_ads', { filters: { some: 'part' }, maxAds: 1, maxCredits: 50 });
    service.ads = all;
    await server.call('search_ads', { limit: 100 });
    const countOutsideAds = (owner: number) =>
      all.filter((ad, at) => ad.pageId === `p${owner}` && !isFullyGathered(ad, at)).length;

    const readUncovered = async (sql: string, cell = 160) => {
      const { data, text } = await server.call('query_ads', { sql, cell, limit: 100 });
      const { uncovered = [], moreUncovered = 0 } = data.coverage as {
        uncovered?: { pageId: string; outside: number }[];
        moreUncovered?: number;
      };
      expect(text.includes('No complete gathering covers')).toBe(uncovered.length + moreUncovered > 0);
      for (const { pageId, outside } of uncovered) expect(outside).toBe(countOutsideAds(Number(pageId.slice(1))));
      return [uncovered.map(({ pageId }) => pageId).sort(), moreUncovered];
    };
    const fromSomePages = "FROM ads WHERE pageId IN ('p0', 'p1', 'p2')";
    for (const column of ['pageName', 'pageId', 'id', 'id AS adId'])
      for (const cell of [160, 40])
        expect(await readUncovered(`SELECT count(*), ${column} ${fromSomePages} GROUP BY id`, cell)).toEqual([
          ['p1', 'p2'],
          0,
        ]);
    expect((await readUncovered('SELECT id FROM ads'))[1]).toBe(6);
    // If a statement returns neither names nor ids, the note gives only the number of advertisers without complete
    // data.
    expect(await readUncovered('SELECT displayFormat, count(*) FROM ads GROUP BY 1')).toEqual([[], 16]);
    expect(await readUncovered(`SELECT pageName AS advertiser ${fromSomePages}`)).toEqual([[], 16]);
    expect(await readUncovered("SELECT id FROM ads WHERE pageId = 'p0' OR pageId IS NULL")).toEqual([[], 0]);
  },
);

test('query_ads, export_ads and write_report say how many of the advertisers the SQL table pages contains', async ({
  server,
}) => {
  const { data } = await server.call('search_ads', { limit: 30 });
  const pageIds = [...new Set(data.items.map(({ pageId }) => pageId))];
  const sql = 'SELECT pageName, adsAmount FROM pages ORDER BY 2 DESC';
  const noteStart = 'The table pages contains';
  const emptyNote = `${noteStart} 0 of the ${pageIds.length} advertisers with a page id. To list all advertisers of the ads, group the table ads by pageId and pageName.`;
  const empty = await server.call('query_ads', { sql });
  expect(empty.text).toContain(emptyNote);
  expect(empty.data.coverage).toMatchObject({ notes: [emptyNote] });
  await server.call('get_page', { pageId: pageIds[0] });
  const note = `${noteStart} 1 of the ${pageIds.length} advertisers`;
  expect((await server.call('query_ads', { sql: 'SELECT count(*) FROM pages' })).text).toContain(note);
  expect((await server.call('export_ads', { sql })).text).toContain(note);
  const sections = [{ heading: 'Pages', sql }];
  expect((await server.call('write_report', { title: 'Pages', sections })).text).toContain(note);
  for (const sqlWithoutTable of [
    'SELECT pageName FROM ads',
    'WITH pages AS (SELECT pageName, count(*) AS ads FROM ads GROUP BY 1) SELECT * FROM pages',
    'WITH pages AS (SELECT DISTINCT pageId FROM ads) SELECT count(*) FROM pages',
  ])
    expect((await server.call('query_ads', { sql: sqlWithoutTable })).text).not.toContain(noteStart);
  for (const pageId of pageIds.slice(1)) await server.call('get_page', { pageId });
  expect((await server.call('query_ads', { sql })).text).not.toContain(noteStart);
});

upstreamTest(
  'query_ads does not count advertisers without a page id among those that the SQL table pages lacks',
  async ({ upstream, server }) => {
    const service = serveAds(upstream, 0);
    const adsWithoutPageId = ['Acme', 'Bolt', 'Core'].map((pageName, index) => createAd(index, { page: { pageName } }));
    service.ads = adsWithoutPageId;
    await server.call('search_ads', { limit: 10 });
    const sql = 'SELECT pageName FROM pages';
    expect((await server.call('query_ads', { sql })).text).not.toContain('The table pages contains');
    service.ads = [...adsWithoutPageId, createAd(3, { pageId: 'p3', page: { pageName: 'Dune' } })];
    await server.call('search_ads', { limit: 10, fresh: true });
    const note = 'The table pages contains 0 of the 1 advertiser with a page id.';
    expect((await server.call('query_ads', { sql })).text).toContain(note);
  },
);
