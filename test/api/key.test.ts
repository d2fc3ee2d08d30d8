import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createKeyMasker } from '../../src/logging/key-masking.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { connectHttp } from '../support/clients.ts';
import { waitUntil } from '../support/deadline.ts';
import { singleCallTools } from '../support/every-tool.ts';
import {
  ad,
  createCreditHeaders,
  page,
  respondWithBytes,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { createToolCall, startHttp } from '../support/http.ts';
import { canaryKey, decodeAllForms, encodedKeys, toHex } from '../support/key-encodings.ts';
import { startCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const usualKey = 'svc_live_CANARY0123456789_abcdefKx';
const forms = Object.entries(encodedKeys);
const test = upstreamTest({ config: { apiKey: canaryKey, cacheSeconds: 0 } });
const folder = createTemporaryFolder();

/** Escapes characters that need no escape in JSON. An API may send such JSON. */
const escaped = (json: string, signs: RegExp) => json.replace(signs, (sign) => `\\u${toHex(sign).padStart(4, '0')}`);
const beyondAscii = /[^ -~]/g;

const inHeader = (text: string) => (/^[\x20-\xff]{1,4000}$/.test(text) ? { 'x-service-request-id': text } : {});

const calls = singleCallTools.flatMap(({ tool, args }) =>
  /^(?:search|get_ad|get_page|list_collection_items)/.test(tool)
    ? [
        { tool, args },
        { tool, args: { ...args, detail: 'full' } },
      ]
    : [{ tool, args }],
);

/** Returns response bodies that contain the text in every possible field, with their status codes. */
function bodiesWith(text: string): [[number, object], ...[status: number, body: object][]] {
  const item = {
    ...{ ...ad, ...page, pageName: text, name: text, headline: text, body: text, ctaType: text, offerLink: text },
    ...{ displayUrl: text, appUrl: text, countries: [text], page: { pageName: text }, website: { siteDomain: text } },
    cards: [{ title: text, body: text, link_url: text }],
    media: [{ type: text, url: `https://m.example/${text}` }],
    ...{ [text]: { [text]: [text] }, userId: text, planId: text, authenticated: true, added: true },
  };
  const list = { items: [item], collection: item, itemType: 'ads', itemId: text, cursor: text, hasMore: true };
  return [
    [200, { ...item, ...list }],
    [200, { [text]: text, items: text }],
    [422, { error: { code: text, message: text, requestId: text, details: { [text]: [text] } } }],
  ];
}

describe.each(forms)('The API key %s', (form, text) => {
  test(`the API key ${form} never appears in tool results or logs`, async ({ upstream, server }) => {
    // Verify that the test's own decoder finds the key.
    expect(decodeAllForms(text)).toContain('canary');
    const shownTexts: unknown[] = [];
    const bodies = bodiesWith(text);
    const [[, fullBody]] = bodies;
    for (const [status, body] of bodies) {
      const plain = JSON.stringify(body);
      // Call every tool with the full body, because each tool parses it differently. Three tools suffice for the others.
      for (const [index, { tool, args }] of calls.slice(0, body === fullBody ? undefined : 3).entries()) {
        const sentJson = index % 2 === 0 ? plain : escaped(plain, /[+/=_]/g);
        upstream.respondWith((_, response) => response.writeHead(status, inHeader(text)).end(sentJson));
        shownTexts.push((await server.call(tool, args)).raw);
      }
    }
    for (const status of [200, 401]) {
      const headers = { 'www-authenticate': 'Bearer', ...inHeader(text) };
      upstream.respondWith((_, response: ServerResponse) =>
        response.writeHead(status, headers).end(`<h1>${text}</h1>`),
      );
      shownTexts.push((await server.call('search_ads')).raw);
    }
    expect(decodeAllForms([shownTexts, server.logLines.splice(0)])).not.toContain('canary');
  });
});

test("the HTTP server masks each caller's API key in results and logs", async ({ upstream }) => {
  const http = await startHttp({ baseUrl: upstream.baseUrl });
  const client = await connectHttp('v2 auto', http.url, canaryKey);
  for (const [name, text] of forms) {
    const body = JSON.stringify({ ...ad, headline: text, [text]: text });
    upstream.respondWith((_, response) => response.writeHead(200, inHeader(text)).end(body));
    expect(decodeAllForms((await client.call('get_ad', { adId: ad.id, fresh: true })).raw), name).not.toContain(
      'canary',
    );
  }
  await client.close();
  expect(http.logged.length).toBeGreaterThanOrEqual(forms.length);
  expect(decodeAllForms(http.logged)).not.toContain('canary');
  await http.close();
});

test('masking an API key does not change the surrounding text', async ({ upstream, start }) => {
  const headline = `Bad key ${canaryKey}, they say — größer als "je" zuvor`;
  const body = `see https://x.example/?k=${encodeURIComponent(canaryKey)} now`;
  upstream.respondWith(respondWithJson({ ...ad, headline, body, note: 'svc_live_other & 100 %' }));
  const { text, data } = await (await start()).call('get_ad', { adId: ad.id, detail: 'full' });
  expect(text).toContain('Bad key ***, they say — größer als');
  expect(data.ad).toMatchObject({
    headline: headline.replace(canaryKey, '***'),
    body: 'see https://x.example/?k=*** now',
    note: 'svc_live_other & 100 %',
  });
});

test.for([
  ['a plain key', canaryKey],
  ['a key with a Unicode escape', escaped(canaryKey, /[Y+]/g)],
])('an API key inside a deeply nested response is masked (%s)', async ([_, sentKey], { upstream, start }) => {
  const depth = 20_000;
  const deep = `${'['.repeat(depth)}"${sentKey}"${']'.repeat(depth)}`;
  upstream.respondWith(
    respondWithBytes(
      `{"items":[{"id":"1","body":"it is ${sentKey}","x":${deep}}],"hasMore":false}`,
      createCreditHeaders(3),
    ),
  );
  const { raw, data, isError } = await (await start()).call('search_ads', { detail: 'full' });
  expect(isError).toBe(false);
  expect(data.receipt).toMatchObject({ charged: 3 });
  expect(JSON.stringify(raw)).toContain('it is ***');
  expect(JSON.stringify(raw)).not.toContain(canaryKey);
});

test('the server rejects a call whose arguments contain the API key before it sends any request', async ({
  upstream,
  start,
}) => {
  const server = await start();
  const before = upstream.requests.length;
  for (const [name, text] of forms)
    for (const [tool, args] of [
      ['search_ads', { filters: { query: text } }],
      ['gather_ads', { filters: { [text]: 'x' }, maxCredits: 5 }],
      ['watch_ads', { name: text, filters: { query: 'tea' }, maxCredits: 5 }],
      ['query_ads', { sql: `SELECT '${text}' AS k` }],
    ] as const) {
      const { error, raw } = await server.call(tool, args);
      expect(error, name).toMatchObject({ kind: 'invalid_request' });
      expect(decodeAllForms([raw])).not.toContain('canary');
    }
  expect(upstream.requests.length).toBe(before);
});

test('a short API key that is an ordinary word is not masked in ad text', async ({ upstream, start }) => {
  const server = await start({ apiKey: 'shoes' });
  upstream.respondWith(respondWithJson({ ...ad, headline: 'New shoes' }));
  expect((await server.call('get_ad', { adId: ad.id })).text).toContain('New shoes');
});

test('the API key never appears in the output of the process, not even at log level debug', async ({ upstream }) => {
  const settings = { AD_LIBRARY_API_KEY: usualKey, AD_LIBRARY_BASE_URL: upstream.baseUrl };
  const echo = { message: `Bad key ${usualKey}`, code: usualKey, requestId: usualKey, details: { [usualKey]: 1 } };
  upstream.respondWith(respondWithError(422, echo));
  const running = startCommand(['--log-level', 'debug'], settings);
  const clientInfo = { name: 't', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const messages = [
    { jsonrpc: '2.0', id: 0, method: 'initialize', params },
    createToolCall(`search_${usualKey}`, {}, 1),
    createToolCall('whoami', { [usualKey]: usualKey }, 2),
    ...singleCallTools.map(({ tool, args }, index) => createToolCall(tool, args, index + 3)),
  ];
  running.child.stdin?.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  await waitUntil(() => running.stdout().split('\n').length > messages.length);
  running.child.stdin?.end();
  const { stdout, stderr } = await running.ended;
  expect(stderr).toMatch(/info: call .*tool="whoami"[^\n]*422/);
  expect(stdout + stderr).not.toContain('CANARY');
});

test('an API key in an API response is never written to stored files, exports or SQL results', async ({
  upstream,
  start,
}) => {
  const check = async (apiKey: string, plain: string[], escapedOnes: string[]) => {
    const texts = [...plain, ...escapedOnes];
    const files = join(folder, `${readdirSync(folder).length}`);
    const server = await start({ files, apiKey, cacheSeconds: 900, resultTokens: 1_000_000 });
    const service = serveAds(upstream, 0);
    service.ads = texts.map((text, index) =>
      createAd(index, {
        headline: `Key ${text} ends`,
        [text]: { deep: [text] },
        offerLink: `https://shop.example/?k=${text}`,
      }),
    );
    const items = service.ads.map((ad, index) =>
      index < plain.length ? JSON.stringify(ad) : escaped(JSON.stringify(ad), beyondAscii),
    );
    const answer = `{"items":[${items}],"cursor":null,"hasMore":false,"totalHits":${texts.length}}`;
    service.overrideResponse = () => (_, response) => void response.writeHead(200, createCreditHeaders(1)).end(answer);
    await server.call('gather_ads', { maxCredits: 10 });
    const { data } = await server.call('export_ads', { sql: 'SELECT * FROM ads', format: 'jsonl' });
    const { contents } = await server.client.readResource({ uri: data.uri as string });
    const hex = await server.call('query_ads', { sql: 'SELECT hex(headline), hex(json) FROM ads', cell: 20_000 });
    const queriedTexts = (hex.data.rows as string[][]).flat().map((cell) => Buffer.from(cell, 'hex').toString());
    await server.stopApp();
    expect(queriedTexts).toHaveLength(2 * texts.length);
    expect(decodeAllForms([contents, queriedTexts])).not.toContain('canary');
    for (const file of readdirSync(files, { recursive: true, withFileTypes: true }))
      if (file.isFile())
        expect(decodeAllForms(readFileSync(join(file.parentPath, file.name), 'utf8'))).not.toContain('canary');
  };
  const texts = forms.map(([_, text]) => text);
  await check(
    canaryKey,
    texts,
    texts.filter((text) => text.search(beyondAscii) >= 0),
  );
  await check(usualKey, [], [usualKey, `${usualKey}\u00e9`]);
});

test('the key masker finds the API key in every encoding and does not change other text', () => {
  const otherTexts = [
    'größer',
    'https://x.example/?a=%2F&b=%C3%A9&c=1',
    '\u2019',
    '&#8217; &amp; 100 %',
    'svc_live_ …',
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(encodedKeys)),
      fc.boolean(),
      fc.string(),
      (form, isEscaped, around) => {
        const value = { text: `${around} ${form} ${around}`, otherTexts };
        const body = JSON.stringify(value);
        const masked = createKeyMasker(canaryKey)(value, isEscaped ? escaped(body, /[^\d]/g) : body);
        expect(decodeAllForms(masked.text)).not.toContain('canary');
        expect(masked.otherTexts).toEqual(otherTexts);
        expect(createKeyMasker(canaryKey)(otherTexts, JSON.stringify(otherTexts))).toBe(otherTexts);
      },
    ),
    { numRuns: 300 },
  );
});
