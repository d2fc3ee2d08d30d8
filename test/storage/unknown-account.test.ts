import { expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { respondWithError, type Upstream } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const newFolder = createFolderSequence();

/** Serves ads from an API whose `whoami` fails while `knowsKeys` is false. */
function serveWithSwitchableWhoami(upstream: Upstream) {
  const service = serveAds(upstream, 20);
  const state = { knowsKeys: true };
  service.interceptRequest = (path) =>
    path.endsWith('/whoami') && !state.knowsKeys ? respondWithError(503) : undefined;
  return { service, state };
}

const question = { filters: { query: 'tea' }, maxCredits: 100 };
const countAds = { sql: 'SELECT count(*) FROM ads' };
const reads = [
  ['query_ads', countAds],
  ['export_ads', {}],
  ['gather_ads', question],
  ['get_ad', { adId: createAd(1).id, seen: true }],
] as const;

test('while the API is unreachable, stored data is returned only to an API key that the server already knows', async ({
  upstream,
  start,
}) => {
  const { service, state } = serveWithSwitchableWhoami(upstream);
  const config = { files: newFolder() };
  const before = await start(config);
  expect((await before.call('gather_ads', question)).data).toMatchObject({ complete: true });
  await before.stopApp();
  const { chargedCredits } = service;
  const server = await start(config);
  state.knowsKeys = false;
  for (const [tool, args] of reads) {
    const { isError, text, data } = await server.call(tool, args);
    expect([tool, isError]).toEqual([tool, false]);
    for (const shownText of [text, data.unconfirmed])
      expect(shownText).toContain('The service could not be reached to confirm whose key');
  }
  const otherServer = await start({ ...config, apiKey: 'svc_live_other' });
  for (const [tool, args] of reads)
    expect((await otherServer.call(tool, args)).error, tool).toMatchObject({ kind: 'unavailable', retryable: true });
  expect(service.chargedCredits).toBe(chargedCredits);
  service.ads = [createAd(500)];
  expect((await server.call('search_ads', { filters: { query: 'coffee' } })).isError).toBe(false);
  state.knowsKeys = true;
  const after = await start(config);
  const { data } = await after.call('query_ads', countAds);
  expect(data.rows).toEqual([[21]]);
  expect(data.unconfirmed).toBeUndefined();
  expect((await after.call('gather_ads', question)).data).toMatchObject({ complete: true, receipt: { charged: 0 } });
});

test('a server that shuts down writes all ads that still wait to be stored', async ({ upstream, start }) => {
  const { state } = serveWithSwitchableWhoami(upstream);
  const config = { files: newFolder() };
  const first = await start(config);
  state.knowsKeys = false;
  await first.call('search_ads', { limit: 5 });
  state.knowsKeys = true;
  await first.stopApp();
  expect((await (await start(config)).call('query_ads', countAds)).data.rows).toEqual([[5]]);
});
