import fc from 'fast-check';
import { expect } from 'vitest';
import { type AdService, serveAds } from '../support/ad-service.ts';
import { type Behaviour, respondWithBytes, respondWithError, respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const newFolder = createFolderSequence();

/** The response of a gateway in front of the API that requires its own login. */
const gateway: Behaviour = (_, response) => {
  response.writeHead(401, { 'content-type': 'text/html', 'x-service-request-id': 'g' });
  response.end('<h1>Sign in</h1>');
};

test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const gather = { maxCredits: 100, filters: { query: 'tea' } };

/** Calls that the server can serve from stored data, without a request to the API. */
const reads = (service: AdService) => {
  const adId = service.ads[0]?.id;
  return {
    query: ['query_ads', { sql: 'select headline from ads' }],
    seen: ['get_ad', { adId, seen: true }],
    kept: ['search_ads', { limit: 5 }],
    counted: ['count_ads', { filters: gather.filters, split: [{}] }],
    gathered: ['gather_ads', gather],
    priced: ['gather_ads', { ...gather, maxCredits: 0 }],
    exported: ['export_ads', {}],
    viewed: ['view_ads', { adIds: [adId] }],
    onBoard: ['board_ads', { ids: [adId] }],
    picturedOnBoard: ['board_pictures', { ids: [adId] }],
  } as const;
};

async function resources({ client }: TestServer): Promise<string[]> {
  const { resources: all } = await client.listResources();
  return all.map(({ uri }) => uri).filter((uri) => uri.startsWith('ad-library://'));
}

test('after the API rejects an API key, the data stored for this key cannot be read until the API accepts the key again', async ({
  upstream,
  start,
}) => {
  const places = fc.record({
    ads: fc.integer({ min: 1, max: 150 }),
    noticedBy: fc.constantFrom('whoami', 'get_account', 'search_ads'),
    inFiles: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(places, async ({ ads, noticedBy, inFiles }) => {
      const service = serveAds(upstream, ads);
      const server = await start(inFiles ? { files: newFolder() } : {});
      await server.call('gather_ads', gather);
      await server.call('search_ads', { limit: 5 });
      await server.call('export_ads');
      const [exported = ''] = await resources(server);
      const { chargedCredits } = service;

      service.interceptRequest = () => gateway;
      expect((await server.call('whoami')).error).toMatchObject({ kind: 'unauthorized' });
      expect((await server.call('search_ads', { limit: 5 })).data.receipt).toMatchObject({ cached: true });

      service.interceptRequest = () => respondWithError(401);
      const arguments_ = noticedBy === 'search_ads' ? { filters: { query: 'other' } } : {};
      expect((await server.call(noticedBy, arguments_)).error).toMatchObject({ kind: 'unauthorized' });
      for (const [name, args] of Object.values(reads(service))) {
        const { text, error } = await server.call(name, args);
        expect([name, error?.kind]).toEqual([name, 'unauthorized']);
        expect(text).not.toContain('Offer');
      }
      expect(await resources(server)).toEqual([]);
      await expect(server.client.readResource({ uri: exported })).rejects.toThrow('no resource');

      // This response lacks the API's headers, so the server still treats the key as rejected.
      service.interceptRequest = () => respondWithBytes('{"authenticated":true}');
      expect((await server.call('query_ads', { sql: 'select 1' })).error).toMatchObject({ kind: 'unauthorized' });
      expect(await resources(server)).toEqual([]);

      service.interceptRequest = () => undefined;
      for (const [name, args] of Object.values(reads(service)))
        expect([name, (await server.call(name, args)).isError]).toEqual([name, false]);
      const { data } = await server.call('query_ads', { sql: 'select count(*) from ads' });
      expect(data.rows).toEqual([[ads]]);
      expect(await resources(server)).toContain(exported);
      expect(service.chargedCredits).toBe(chargedCredits);
      await server.close();
    }),
    { numRuns: 4, endOnFailure: true },
  );
}, 120_000);

test('the server does not check an API key again after the API accepted a paid call with it', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 3);
  service.interceptRequest = () => gateway;
  expect((await server.call('search_ads')).isError).toBe(true);
  service.interceptRequest = (path) => (path.endsWith('/v1/whoami') ? respondWithJson({}, { status: 500 }) : undefined);
  expect((await server.call('search_ads')).isError).toBe(false);
  expect((await server.call('query_ads', { sql: 'select 1' })).isError).toBe(false);
});
