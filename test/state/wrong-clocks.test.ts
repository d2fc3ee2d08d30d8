import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { elapsed } from '../../src/app.ts';
import { type AdService, adOf, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const root = temporaryFolder();
let folders = 0;

/** Each opens servers and asks them with SQL. */
const runs = { numRuns: 4, endOnFailure: true };

const HOUR = 3_600_000;
const start = Date.parse('2026-11-20T10:00:00Z');
/** How wrong a clock is, in hours. */
const wrong = fc.integer({ min: -1000, max: 1000 });

test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const [ad] = [adOf(0)];
const rowsOf = async (server: TestServer, sql: string) =>
  (await server.call('query_ads', { sql })).data.rows as unknown[][];

/** What a server knows of the ad. */
async function known(server: TestServer) {
  const seen = (await server.call('get_ad', { adId: ad.id, seen: true })).data;
  const [[newest] = []] = await rowsOf(server, 'select headline from ads');
  const earlier = await rowsOf(server, "select json ->> 'headline' from ad_versions");
  return {
    seen: seen.ad.headline,
    newest,
    charged: seen.receipt.charged,
    earlier: earlier.map(([headline]) => headline),
  };
}

/** What came, in the order it came. */
class Came {
  readonly headlines: string[] = [];

  add(headline: string): void {
    if (this.headlines.at(-1) !== headline) this.headlines.push(headline);
  }

  get expected() {
    const newest = this.headlines.at(-1);
    return { seen: newest, newest, charged: 0, earlier: this.headlines.slice(-11, -1) };
  }
}

const change = (service: AdService, headline: string) => {
  service.ads = [adOf(0, { headline })];
};

const ways = fc.constantFrom('search_ads', 'get_ad', 'gather_ads');

const ask = async (server: TestServer, way: string) => {
  const { isError } = await server.call(
    way,
    way === 'get_ad' ? { adId: ad.id, fresh: true } : { fresh: true, ...(way === 'gather_ads' && { maxCredits: 50 }) },
  );
  expect(isError).toBe(false);
};

describe('what came last is the newest, whatever the clocks say', () => {
  test('in one process', async ({ upstream, start: startServer }) => {
    const asked = fc.record({ hours: wrong, headline: fc.constantFrom('a', 'b', 'c'), way: ways });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 3, maxLength: 8 }), async (steps) => {
        const service = serveAds(upstream, 1);
        const came = new Came();
        let time = start;
        const server = await startServer({}, { now: () => time++, elapsed });
        for (const { hours, headline, way } of steps) {
          time = start + hours * HOUR;
          change(service, headline);
          await ask(server, way);
          came.add(headline);
        }
        expect(await known(server)).toMatchObject(came.expected);
        await server.close();
      }),
      runs,
    );
  }, 120_000);

  test('in a folder, over restarts and several processes', async ({ upstream, start: startServer }) => {
    const asked = fc.record({
      process: fc.nat({ max: 1 }),
      hours: fc.option(wrong, { nil: undefined }),
      headline: fc.constantFrom('a', 'b', 'c'),
      way: ways,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 3, maxLength: 8 }), async (steps) => {
        const service = serveAds(upstream, 1);
        const came = new Came();
        const files = join(root, `${++folders}`);
        let tick = 0;
        const open = (hours = 0) => startServer({ files }, { now: () => start + hours * HOUR + tick++, elapsed });
        const servers = [await open(), await open()];
        for (const { process, hours, headline, way } of steps) {
          if (hours !== undefined) {
            await servers[process]?.close();
            servers[process] = await open(hours);
          }
          change(service, headline);
          await ask(servers[process] as TestServer, way);
          came.add(headline);
        }
        for (const server of servers) {
          expect(await known(server)).toMatchObject(came.expected);
          await server.close();
        }
      }),
      runs,
    );
  }, 120_000);
});
