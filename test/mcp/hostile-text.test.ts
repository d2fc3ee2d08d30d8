import { expect, onTestFinished } from 'vitest';
import { connectHttp, connectStdio } from '../support/clients.ts';
import { ad, documented, json } from '../support/faulty-upstream.ts';
import { test as base } from '../support/fixtures.ts';
import { start } from '../support/process.ts';

/**
 * Texts on which a pattern once took exponential time. The server is a process of its own: one that hangs fails these
 * tests instead of hanging them.
 */
const hanging = [
  `${'®'.repeat(28)}\u202e`,
  `${'↗'.repeat(40)}ก`,
  `${'©'.repeat(32)}\u200b`,
  `${'‼↔'.repeat(20)}\u0301`,
];

const test = base.extend('client', { scope: 'file' }, async ({ upstream: { baseUrl } }, { onCleanup }) => {
  const settings = { AD_LIBRARY_API_KEY: 'svc_live_hostile', AD_LIBRARY_BASE_URL: baseUrl };
  const client = await connectStdio('v1', [], settings);
  onCleanup(client.close);
  return client;
});

test.for(hanging)('an ad with the copy %j is shown', async (text, { upstream, client }) => {
  const hostile = { ...ad, headline: text, body: text, page: { pageName: text }, [text]: text };
  upstream.does(json(hostile));
  for (const detail of ['brief', 'full'])
    expect((await client.call('get_ad', { adId: ad.id, detail, fresh: true })).text).toContain(text.slice(0, 20));
  upstream.does(json({ items: [hostile], cursor: null, hasMore: false }));
  expect((await client.call('search_ads', { filters: { text } })).text).toContain(text.slice(0, 20));
});

test.for(hanging)('an argument by the name of %j is refused', async (text, { client }) => {
  const { error, text: explanation } = await client.call('get_account', { [text]: 1 });
  expect(error).toMatchObject({ kind: 'invalid_request' });
  expect(explanation).toContain(text.slice(0, 20));
});

test('a made-up key does not hang the HTTP server', async ({ upstream }) => {
  upstream.does(documented);
  const running = start(['http', '--port', '0'], { AD_LIBRARY_BASE_URL: upstream.baseUrl });
  onTestFinished(() => void running.child.kill('SIGKILL'));
  const [, address = ''] = await running.says(/listening on (\S+)/);
  const stranger = await connectHttp('v1', address, 'svc_live_made_up');
  for (const text of hanging) expect((await stranger.call('get_account', { [text]: 1 })).isError).toBe(true);
  await stranger.close();
  running.child.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});
