import { describe, expect } from 'vitest';
import { everyTool } from '../support/every-tool.ts';
import { bytes, documented, json, refusal, startUpstream } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = upstreamTest({ config: { apiKey: 'svc_live_statuses', cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => upstream.does(documented));

const kinds: Record<number, string> = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
};
const gateway = [502, 503, 504];
const statuses = [
  201, 202, 204, 301, 302, 303, 304, 307, 308, 400, 405, 408, 409, 410, 413, 418, 425, 451, 500, 501, 505, 599,
];

describe.each(everyTool)('$tool', ({ tool, args, gated }) => {
  test.for([...statuses, ...gateway, ...Object.keys(kinds).map(Number)])(
    'turns HTTP %i into a result of its kind, and repeats what may be repeated',
    async (status, { upstream, server }) => {
      upstream.does(
        status === 204 || status === 304 ? (_, response) => response.writeHead(status).end() : refusal(status),
      );
      upstream.credits = tool === 'get_credits' ? undefined : refusal(500);
      const { isError, error, text, raw } = await server.call(tool, args);
      expect(isError).toBe(true);
      expect(raw.structuredContent).toBeUndefined();
      const kind = kinds[status] ?? (status >= 500 ? 'unavailable' : 'unexpected_response');
      expect(error).toMatchObject({ kind, status });
      expect(text).toContain(`HTTP ${status}`);
      const repeatable = gated ? [503] : gateway;
      const repeats = repeatable.includes(status) ? (tool === 'add_collection_item' ? 2 : 3) : 1;
      expect(upstream.requests.filter(({ path }) => tool === 'get_credits' || !path.endsWith('/credits'))).toHaveLength(
        repeats,
      );
      if (status !== 204 && status !== 304) {
        expect(error).toMatchObject({ code: 'some_code', requestId: 'req-e' });
        expect(text).toContain('The service says: "The service says no."');
        expect(text).toContain('some_code');
        expect(text).toContain('Request id: req-e');
      }
    },
  );
});

test('a redirect is not followed, so the key goes nowhere else', async ({ upstream, server }) => {
  const elsewhere = await startUpstream();
  upstream.does((_, response) => response.writeHead(307, { location: `${elsewhere.baseUrl}/v1/whoami` }).end());
  const { error } = await server.call('whoami');
  expect(error).toMatchObject({ kind: 'unexpected_response', status: 307 });
  expect(elsewhere.requests).toEqual([]);
  await elsewhere.close();
});

test('an error without the documented body says that something else may have answered', async ({
  upstream,
  server,
}) => {
  upstream.does((_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>'));
  const { text, error } = await server.call('whoami');
  expect(error).toMatchObject({ kind: 'not_found', status: 404 });
  expect(text).toContain('it may not come from the API');
  expect(text).not.toContain('Not here');
});

test.for([
  ['an error that is a text', { error: 'no' }],
  ['an error that is null', { error: null }],
  ['an error that is a list', { error: [] }],
  ['fields of other types', { error: { code: 7, message: ['x'], requestId: {}, details: 1 } }],
  ['nothing', null],
] as const)('an error body with %s is still an error of its status', async ([_, body], { upstream, server }) => {
  upstream.does(json(body, { status: 422 }));
  const { isError, error } = await server.call('search_ads');
  expect(isError).toBe(true);
  expect(error).toMatchObject({ kind: 'invalid_request', status: 422 });
});

test('the request carries one key, in one header, and says who asks', async ({ upstream, server }) => {
  upstream.does(documented);
  for (const { tool, args } of everyTool) await server.call(tool, args);
  expect(upstream.requests).toHaveLength(everyTool.length);
  for (const { headers, path, body, method } of upstream.requests) {
    expect(headers.authorization).toBe('Bearer svc_live_statuses');
    expect(headers['user-agent']).toMatch(/^ad-library-mcp\/\d+\.\d+\.\d+/);
    expect(headers.accept).toBe('application/json');
    expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined);
    const { authorization: _, ...others } = headers;
    expect(JSON.stringify([path, body, others])).not.toContain('svc_live');
  }
});

test.for([
  ['negative', '-3'],
  ['words', 'three'],
  ['a number too long to be one', '9'.repeat(400)],
  ['nothing', ''],
  ['hexadecimal', '0x10'],
  ['several values', '1, 2'],
] as const)('a credit header with %s counts as none', async ([_, value], { upstream, server }) => {
  upstream.does(
    json({ id: 'x' }, { headers: { 'x-service-credits-charged': value, 'x-service-credits-remaining': value } }),
  );
  const { data } = await server.call('get_ad', { adId: uuidOf('x') });
  expect(data.receipt).toEqual({ charged: null, remaining: null, cached: false, requestId: 'req-1' });
});

test('fractions of credits are shown as fractions', async ({ upstream, server }) => {
  upstream.does(
    json({ id: 'x' }, { headers: { 'x-service-credits-charged': '0.5', 'x-service-credits-remaining': '9.5' } }),
  );
  const { data, text } = await server.call('get_ad', { adId: uuidOf('x') });
  expect(data.receipt).toMatchObject({ charged: 0.5, remaining: 9.5 });
  expect(text).toContain('0.5 charged, 9.5 left');
});

test('an answer without credit headers says that none was stated', async ({ upstream, server }) => {
  upstream.does((_, response) => response.writeHead(200).end('{"id":"x"}'));
  const { data, text } = await server.call('get_ad', { adId: uuidOf('x') });
  expect(data.receipt).toEqual({ charged: null, remaining: null, cached: false, requestId: null });
  expect(text).toContain('Credits: not reported for this call');
});

test('JSON of another content type is read', async ({ upstream, server }) => {
  upstream.does(bytes('{"id":"x","headline":"Read"}', { 'content-type': 'text/plain' }));
  expect((await server.call('get_ad', { adId: uuidOf('x') })).text).toContain('Read');
});
