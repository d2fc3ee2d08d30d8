import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { adOf, serveAds } from '../support/ad-service.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();
upstreamTest.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const shares = { sql: 'SELECT displayFormat, count(*) FROM ads GROUP BY 1' };

describe('coverage names the ads that are in no newest gathering', () => {
  test('since only a search brought them', async ({ server }) => {
    const { data: gathered } = await server.call('gather_ads', {
      filters: { countries: ['DE'], displayFormat: ['VIDEO'] },
      maxCredits: 50,
    });
    const covered = await server.call('query_ads', shares);
    expect(covered.data.coverage).toEqual({ ads: 59, gatherings: 1 });
    expect(covered.text).toContain('Coverage: 59 ads; every gathering is complete.');
    await server.call('search_ads', { filters: { displayFormat: ['IMAGE'] }, limit: 20 });
    const { data, text } = await server.call('query_ads', shares);
    expect(data.coverage).toMatchObject({ ads: 79, gatherings: 1, outsideAds: 20 });
    expect(text).toMatch(/No complete gathering covers \d+ advertisers of the dataset/);
    expect(text).toContain('79 ads, 20 of them only from searches or earlier gatherings');
    const inside = await server.call('query_ads', {
      sql: `SELECT count(*) FROM ads JOIN gathered ON adId = id WHERE gatheringId = '${gathered.gathering}'`,
    });
    expect(inside.data.rows).toEqual([[59]]);
    const exported = await server.call('export_ads', {});
    expect(exported.text).toContain('20 of them only from searches');
    const note = await server.client.readResource({ uri: exported.data.methods as string });
    expect(note.contents[0]).toHaveProperty('text', expect.stringContaining('20 of the ads came only from searches'));
  });

  upstreamTest('since they are not found any more', async ({ upstream, start }) => {
    let clock = Date.parse('2026-11-20T10:00:00Z');
    const server = await start({}, { now: () => clock++ });
    const service = serveAds(upstream, 30);
    const split = { split: [{ query: 'a' }, { query: 'b' }], maxCredits: 100 };
    await server.call('gather_ads', split);
    service.ads = service.ads.slice(4);
    await server.call('gather_ads', { ...split, fresh: true });
    const { data, text } = await server.call('query_ads', shares);
    expect(data.coverage).toMatchObject({ ads: 30, outsideAds: 4 });
    expect(text).toContain('30 ads, 4 of them only from searches or earlier gatherings');
  });
});

const names = ['Acme', 'Beta: learn\u200b more', `Gamma ${'of many words '.repeat(20)}`, ...'DEFGHIJKLMNOPQ'];
const nameOf = (name = '') => name.replace('\u200b', '').slice(0, 20);
const sets = fc.record({
  /** The advertiser of each ad; some have none. */
  owners: fc.array(fc.option(fc.nat(names.length - 1)), { minLength: 60, maxLength: 60 }),
  gathered: fc.integer({ min: 0, max: 40 }),
  partly: fc.integer({ min: 40, max: 60 }),
  asked: fc.constantFrom('pageName', 'pageId', 'id', 'id AS adId'),
  from: fc.nat(16),
  cell: fc.constantFrom(160, 40),
});

upstreamTest(
  'coverage names the advertisers of the rows that no complete gathering covers, or counts those of all ads',
  async ({ upstream, start }) => {
    await fc.assert(
      fc.asyncProperty(sets, async ({ owners, gathered, partly, asked, from, cell }) => {
        const server = await start({ resultTokens: 50_000 });
        const service = serveAds(upstream, 0);
        const all = owners.map((owner, index) =>
          adOf(index, owner === null ? {} : { pageId: `p${owner}`, page: { pageName: names[owner] } }),
        );
        service.ads = all.slice(0, gathered);
        await server.call('gather_ads', { filters: { some: 'whole' }, maxCredits: 50 });
        service.ads = all.slice(gathered, partly);
        if (partly - gathered > 1)
          await server.call('gather_ads', { filters: { some: 'part' }, maxAds: 1, maxCredits: 50 });
        service.ads = all;
        await server.call('search_ads', { limit: 100 });
        const namesOf = (some: readonly (number | null)[]) =>
          some.flatMap((owner) => (owner === null ? [] : nameOf(names[owner])));
        const outside = new Map<string, number>();
        for (const name of namesOf(owners.slice(gathered))) outside.set(name, (outside.get(name) ?? 0) + 1);

        const check = async (sql: string, covered: readonly string[], named = 10) => {
          const { data, text } = await server.call('query_ads', { sql, cell });
          const { uncovered = [], moreUncovered = 0 } = data.coverage as {
            uncovered?: { pageName: string; outside: number }[];
            moreUncovered?: number;
          };
          const expected = [...outside.keys()].filter((name) => covered.includes(name));
          expect([uncovered.length + moreUncovered, uncovered.length], sql).toEqual([
            expected.length,
            Math.min(named, expected.length),
          ]);
          for (const { pageName, outside: number } of uncovered) {
            expect(expected).toContain(nameOf(pageName));
            expect(outside.get(nameOf(pageName))).toBe(number);
          }
          expect(text.includes('No complete gathering covers')).toBe(expected.length > 0);
        };
        const some = [0, 1, 2].map((step) => owners[(from + 7 * step) % 60] ?? null);
        const list = some.flatMap((owner) => (owner === null ? [] : `'p${owner}'`)).join(', ');
        const everybody = namesOf(owners);
        const ofSome = `SELECT count(*), ${asked} FROM ads WHERE pageId IN (${list}) GROUP BY 2`;
        await check(ofSome, namesOf(some));
        // Numbers and other columns do not tell whose ads they count: how many there are in all, without names.
        await check('SELECT displayFormat, count(*) FROM ads GROUP BY 1', everybody, 0);
        await check(
          `SELECT count(*), pageName AS advertiser FROM ads WHERE pageId IN (${list}) GROUP BY 2`,
          everybody,
          0,
        );
        await server.stop();
      }),
      { numRuns: 5, endOnFailure: true },
    );
  },
  120_000,
);
