import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keyMasker } from '../../src/log/log.ts';
import { connectHttp } from '../support/clients.ts';
import { everyTool } from '../support/every-tool.ts';
import { ad, bytes, page, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { startHttp } from '../support/http.ts';
import { hexOf, key, revealed, rewritten, written } from '../support/key-encodings.ts';
import { startServer, type TestServer } from '../support/server.ts';

const forms = Object.entries({ ...written, ...rewritten });

let upstream: Upstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream();
  server = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: key, cacheSeconds: 0 } });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
});

test.each(forms)('the key %s is revealed by the oracle of these tests', (_, text) => {
  expect(revealed(text)).toContain('canary');
});

/** A raw body, so that the service's own JSON may escape what need not be. */
const escapedJson = (value: unknown) => JSON.stringify(value).replace(/[+/=_]/g, (sign) => `\\u00${hexOf(sign)}`);

const calls = everyTool.flatMap(({ tool, args }) =>
  /^(?:search|get_ad|get_page|list_collection_items)/.test(tool)
    ? [
        { tool, args },
        { tool, args: { ...args, detail: 'full' } },
      ]
    : [{ tool, args }],
);

const inHeader = (text: string) => (/^[\x20-\xff]{1,4000}$/.test(text) ? { 'x-service-request-id': text } : {});

describe.each(forms)('a service that sends the key back %s', (_, text) => {
  async function expectHidden(body: unknown, status = 200): Promise<void> {
    for (const json of [JSON.stringify(body), escapedJson(body)]) {
      upstream.does((_, response) => response.writeHead(status, inHeader(text)).end(json));
      for (const { tool, args } of calls) {
        const { raw } = await server.call(tool, args);
        expect(revealed(raw)).not.toContain('canary');
      }
    }
    expect(revealed(server.logged.splice(0))).not.toContain('canary');
  }

  const item = {
    ...{ ...ad, ...page, pageName: text, name: text, headline: text, body: text, ctaType: text, offerLink: text },
    ...{ displayUrl: text, appUrl: text, countries: [text], page: { pageName: text }, website: { siteDomain: text } },
    ...{
      cards: [{ title: text, body: text, link_url: text }],
      media: [{ type: text, url: `https://m.example/${text}` }],
    },
    ...{ [text]: { [text]: [text] }, userId: text, planId: text, authenticated: true, added: true },
  };
  const answer = {
    ...item,
    items: [item],
    collection: item,
    itemType: 'ads',
    itemId: text,
    cursor: text,
    hasMore: true,
  };

  test('in an answer', () => expectHidden(answer));

  test('in a refusal', () =>
    expectHidden({ error: { code: text, message: text, requestId: text, details: { [text]: [text] } } }, 422));

  test('in an answer of another shape', () => expectHidden({ [text]: text, items: text }));

  test('in what is no JSON', async () => {
    upstream.does(bytes(`<h1>${text}</h1>`, inHeader(text)));
    expect(revealed((await server.call('search_ads')).raw)).not.toContain('canary');
    expect(revealed(server.logged.splice(0))).not.toContain('canary');
  });
});

test('text around the key stays, and a result without the key is unchanged', async () => {
  const headline = `Bad key ${key}, they say — größer als "je" zuvor`;
  upstream.does(
    bytes(JSON.stringify({ ...ad, headline, body: `see https://x.example/?k=${encodeURIComponent(key)} now` })),
  );
  const { text, data } = await server.call('get_ad', { adId: ad.id });
  expect(text).toContain('Bad key ***, they say — größer als "je" zuvor');
  expect(data.ad).toMatchObject({ headline: headline.replace(key, '***'), body: 'see *** now' });
  const without = { text: '100 % of svc_live_other & more', list: [1, null, 'svc_live… is how keys begin'] };
  expect(keyMasker(key)(without)).toBe(without);
});

test('the secret without the prefix that all keys share is masked too, and so is its last half', () => {
  const secret = key.slice('svc_live_'.length);
  expect(keyMasker(key)([`key ${secret} they say`, `ends with ${key.slice(key.length / 2)}`])).toEqual([
    'key *** they say',
    'ends with ***',
  ]);
});

test('over HTTP the key of each call is masked, in results and in the server log', async () => {
  const http = await startHttp({ baseUrl: upstream.baseUrl });
  for (const [name, text] of forms) {
    const json = JSON.stringify({ ...ad, headline: text, [text]: text });
    upstream.does((_, response) => response.writeHead(200, inHeader(text)).end(json));
    const client = await connectHttp('v2 auto', http.url, key);
    expect(revealed((await client.call('get_ad', { adId: ad.id, fresh: true })).raw), name).not.toContain('canary');
    await client.close();
  }
  expect(http.logged.length).toBeGreaterThanOrEqual(forms.length);
  expect(revealed(http.logged)).not.toContain('canary');
  await http.close();
});
