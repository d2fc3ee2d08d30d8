import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { adOf, serveAds } from '../support/ad-service.ts';
import { documented } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});
const folder = temporaryFolder();

const boots = 'Meet the boots that outlast every trail. Hand-made in small batches, shipped free within two days.';
const tents = 'A tent for two, light as a feather, put up in a minute, dry in any storm of any summer.';
const copies = [
  boots,
  `${boots} Try them now.`,
  boots.replace('every', 'any'),
  tents,
  `${tents} 19.99`,
  `${boots} ${tents}`,
];
const step = fc.oneof(
  fc.record({ change: fc.nat(11), to: fc.constantFrom(...copies) }),
  fc.record({ gather: fc.subarray([...Array(12).keys()], { minLength: 1 }) }),
  fc.record({ search: fc.nat(3) }),
);

test('a process that runs for long and one that starts now find the same variants', async ({ start, upstream }) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 8 }), async (steps) => {
      const files = mkdtempSync(join(folder, 'kept-'));
      let clock = Date.parse('2026-11-20T10:00:00Z');
      const options = { now: () => (clock += 10) };
      const server = await start({ files, cacheSeconds: 0 }, options);
      const service = serveAds(upstream, 0);
      upstream.does((request, response, body) =>
        (request.url?.endsWith('/whoami') ? documented : service.behaviour)(request, response, body),
      );
      const all = copies.flatMap((body, at) =>
        [0, 1].map((page) => adOf(2 * at + page, { body, headline: null, pageId: `p${page}` })),
      );
      const groupsOf = async ({ call }: Pick<typeof server, 'call'>) => {
        const { data } = await call('query_ads', { sql: 'SELECT id, variant FROM ads ORDER BY id' });
        return data.rows;
      };
      const gather = async (some: number[]) => {
        service.ads = some.flatMap((at) => all[at] ?? []);
        return (await server.call('gather_ads', { filters: { some }, maxCredits: 50, fresh: true })).data;
      };
      for (const one of steps) {
        if ('change' in one) Object.assign(all[one.change] ?? {}, { body: one.to });
        else if ('gather' in one) await gather(one.gather);
        else {
          service.ads = all.slice(3 * one.search, 3 * one.search + 3);
          await server.call('search_ads', { filters: { part: one.search }, fresh: true });
        }
      }
      const { gathering, summary } = await gather([0, 1, 2, 6, 7]);
      const sql = `SELECT count(DISTINCT variant) FROM ads JOIN gathered ON adId = id WHERE gatheringId = '${gathering}'`;
      const { rows = [] } = (await server.call('query_ads', { sql })).data as { rows?: number[][] };
      expect(summary).toContain(`Variants (copy of a page nearly the same): ${rows[0]?.[0]};`);
      const groups = await groupsOf(server);
      await server.stop();
      const fresh = await start({ files }, options);
      expect(await groupsOf(fresh)).toEqual(groups);
      await fresh.stop();
    }),
    { numRuns: 4, endOnFailure: true },
  );
});
