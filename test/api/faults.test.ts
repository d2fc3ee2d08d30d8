import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect } from 'vitest';
import { singleCallTools } from '../support/every-tool.ts';
import {
  type Behaviour,
  delays,
  documentedResponse,
  errorResponse,
  faults,
  json,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { createGate } from '../support/gate.ts';
import type { Result, TestServer } from '../support/server.ts';
import { deriveUuid } from '../support/uuid-of.ts';

/** Looked for in everything that comes out. */
const canary = 'svc_live_CANARY0123456789abcdef';

/** Nothing is cached: every call goes out. */
const test = upstreamTest({ config: { apiKey: canary, cacheSeconds: 0 } });
test.beforeEach(async ({ upstream, server }) => {
  upstream.respondWith(documentedResponse);
  upstream.credits = undefined;
  // A key that was refused in another test is accepted again.
  await server.call('whoami');
  upstream.respondWith(documentedResponse);
});

/** A result of the right kind that a person could act on, and nothing of ours in it that should not be. */
function expectError({ logged }: TestServer, { raw, text, isError, error }: Result, kind: string): void {
  expect(raw.structuredContent).toBeUndefined();
  expect([isError, error?.kind]).toEqual([true, kind]);
  expect(error?.retryable).toBeTypeOf('boolean');
  expect(text).toMatch(/Retrying (may|the same call will not) help/);
  expect(text.length).toBeLessThan(3000);
  const everything = JSON.stringify(raw) + logged.join('');
  expect(everything).not.toContain('CANARY');
  expect(JSON.stringify(raw)).not.toMatch(/\bat .+\.(ts|js):\d+/);
  expect(everything).not.toContain('a tool failed');
}

/** Requests for which a failing call is good: three where repeating is free, one where it may have been charged. */
const repeated = (tool: string) => (tool === 'add_collection_item' ? 2 : 3);

/** Results that end with what they cost, in the text and in the data, and are not marked as demo data. */
async function expectAllWell({ call }: TestServer): Promise<void> {
  for (const { tool, args, isGatedTool } of singleCallTools) {
    const { isError, data, text } = await call(tool, args);
    const receipt = { charged: isGatedTool ? 1 : 0, remaining: 100, cached: false, requestId: 'req-1' };
    expect([tool, isError, data.receipt]).toEqual([tool, false, receipt]);
    expect(text).toContain(`\nCredits: ${receipt.charged} charged, 100 left. Request req-1`);
    expect([text.includes('DEMO'), 'notice' in data]).toEqual([false, false]);
  }
}

const requestsOf = ({ requests }: Upstream, isCredits: boolean) =>
  requests.filter(({ path }) => isCredits || !path.endsWith('/credits')).length;

describe('every tool, asked of a service that', () => {
  test('is as documented, gives its result; the request carries one key, in one header, and says who asks', async ({
    upstream,
    server,
  }) => {
    await expectAllWell(server);
    expect(upstream.requests).toHaveLength(singleCallTools.length);
    for (const { headers, path, body, method } of upstream.requests) {
      expect(headers.authorization).toBe(`Bearer ${canary}`);
      expect(headers['user-agent']).toMatch(/^ad-library-mcp\/\d+\.\d+\.\d+/);
      expect(headers.accept).toBe('application/json');
      expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined);
      const { authorization: _, ...others } = headers;
      expect(JSON.stringify([path, body, others])).not.toContain('svc_live');
    }
  });

  test.for(Object.keys(faults) as (keyof typeof faults)[])('%s', async (fault, { upstream, server }) => {
    const isCut = ['resets', 'closes without a word', 'breaks off in the body'].includes(fault);
    for (const { tool, args, isGatedTool } of singleCallTools) {
      upstream.respondWith(faults[fault]);
      const result = await server.call(tool, args);
      expectError(server, result, isCut ? 'network' : 'unexpected_response');
      expect(upstream.requests).toHaveLength(isCut && !isGatedTool ? repeated(tool) : 1);
      if (isGatedTool) expect(result.text).toMatch(/unknown whether the service charged.*may be charged again/s);
      if (fault === 'sends 40 MB')
        expect(result.text).toMatch(/The answer is larger than 8 MB\..*Ask for fewer items in one call/s);
    }
    upstream.respondWith(documentedResponse);
    await expectAllWell(server);
  });

  test.for(Object.keys(delays) as (keyof typeof delays)[])('%s', async (delay, { upstream, start }) => {
    const server = await start({ timeoutMs: 1000 });
    upstream.respondWith(delays[delay]);
    const results = await Promise.all(singleCallTools.map(({ tool, args }) => server.call(tool, args)));
    for (const result of results) expectError(server, result, 'timeout');
    expect(upstream.requests).toHaveLength(singleCallTools.length);
    await Promise.all(upstream.requests.map((request) => request.waitForAbort()));
    upstream.respondWith(documentedResponse);
    await expectAllWell(server);
  });

  const kinds = new Map([
    ...([
      [401, 'unauthorized'],
      [402, 'payment_required'],
      [403, 'forbidden'],
      [404, 'not_found'],
      [422, 'invalid_request'],
      [429, 'usage_limit'],
    ] as const),
    ...[500, 501, 502, 503, 504, 505, 599].map((status) => [status, 'unavailable'] as const),
  ]);
  const odd = [201, 202, 204, 301, 302, 303, 304, 307, 308, 400, 405, 408, 409, 410, 413, 418, 425, 451];

  test.for([...kinds.keys(), ...odd])(
    'answers HTTP %i: a result of its kind, repeated only where that is safe',
    async (status, { upstream, server }) => {
      const hasBody = status !== 204 && status !== 304;
      for (const { tool, args, isGatedTool } of singleCallTools) {
        // A key that was refused is accepted again.
        upstream.respondWith(documentedResponse);
        await server.call('whoami');
        upstream.respondWith((request, response) => {
          // Where a redirect is followed, the key goes there, too.
          response.setHeader('location', '/elsewhere');
          if (hasBody) errorResponse(status)(request, response);
          else response.writeHead(status).end();
        });
        upstream.credits = tool === 'get_credits' ? undefined : errorResponse(500);
        const result = await server.call(tool, args);
        const { error, text } = result;
        expectError(server, result, kinds.get(status) ?? 'unexpected_response');
        expect(error).toMatchObject({ status, ...(hasBody && { code: 'some_code', requestId: 'req-e' }) });
        for (const part of [
          `HTTP ${status}`,
          ...(hasBody ? ['The service says: "The service says no."', 'some_code'] : []),
        ])
          expect(text).toContain(part);
        if (hasBody) expect(text).toContain('Request id: req-e');
        const isRepeated = (isGatedTool ? [503] : [502, 503, 504]).includes(status);
        expect(requestsOf(upstream, tool === 'get_credits')).toBe(isRepeated ? repeated(tool) : 1);
      }
    },
  );
});

test.for<[string, unknown]>([
  ['an error that is a text', { error: 'no' }],
  ['an error that is null', { error: null }],
  ['an error that is a list', { error: [] }],
  ['fields of other types', { error: { code: 7, message: ['x'], requestId: {}, details: 1 } }],
  ['nothing', null],
])('an error body with %s is still an error of its status', async ([_, body], { upstream, server }) => {
  upstream.respondWith(json(body, { status: 422 }));
  expect((await server.call('search_ads')).error).toMatchObject({ kind: 'invalid_request', status: 422 });
});

test('an error without the documented body may come from something else, and says so', async ({ upstream, server }) => {
  upstream.respondWith((_, response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>'),
  );
  const { text, error } = await server.call('whoami');
  expect(error).toMatchObject({ kind: 'not_found', status: 404 });
  expect(text).toContain('it may not come from the API');
  expect(text).not.toContain('Not here');
});

const none = { charged: null, remaining: null };
test.for<[string, object, string]>([
  ['0.5', { charged: 0.5, remaining: 0.5 }, '0.5 charged, 0.5 left'],
  ...['-3', 'three', '9'.repeat(400), '', '0x10', '1, 2'].map((value): [string, object, string] => [value, none, '']),
])('credit headers of "%s" are read as %j', async ([value, read, words], { upstream, server }) => {
  const headers = { 'x-service-credits-charged': value, 'x-service-credits-remaining': value };
  upstream.respondWith(json({ id: 'x' }, { headers }));
  const { data, text } = await server.call('get_ad', { adId: deriveUuid('x') });
  expect(data.receipt).toEqual({ ...read, cached: false, requestId: 'req-1' });
  expect(text).toContain(words);
});

test('an answer without credit headers says that none was stated, whatever its content type', async ({
  upstream,
  server,
}) => {
  upstream.respondWith((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('{"id":"x","headline":"Read"}');
  });
  const { data, text } = await server.call('get_ad', { adId: deriveUuid('x') });
  expect(data.receipt).toEqual({ ...none, cached: false, requestId: null });
  expect(text).toContain('Credits: not reported for this call');
  expect(text).toContain('Read');
});

test('answers in another order than the calls reach the right callers', async ({ upstream, server }) => {
  const held: (() => void)[] = [];
  upstream.respondWith((request, response) => {
    const id = (request.url ?? '').split('/').at(-1);
    held.push(() => response.writeHead(200, {}).end(JSON.stringify({ id, headline: `Ad ${id}` })));
    if (held.length === 5) for (const answer of held.reverse()) answer();
  });
  const ids = ['a', 'b', 'c', 'd', 'e'].map(deriveUuid);
  const results = await Promise.all(ids.map((adId) => server.call('get_ad', { adId })));
  expect(results.map(({ data }) => data.ad.id)).toEqual(ids);
});

test('an answer in chunks of one byte takes memory by its bytes and not by its chunks', async ({
  upstream,
  server,
}) => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const [sent, end] = [createGate(), createGate()];
  const piece = Buffer.from('1\r\n \r\n'.repeat(10_000));
  const threeMillionChunks: Behaviour = (_, { socket }) => {
    socket?.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    let pieces = 0;
    const more = () => {
      while (pieces++ < 300) if (!socket?.write(piece)) return void socket?.once('drain', more);
      sent.open();
      void end.opened.then(() => socket?.end('2\r\n{}\r\n0\r\n\r\n'));
    };
    more();
  };
  upstream.respondWith(threeMillionChunks);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const answer = server.call('get_account');
  await sent.opened;
  collectGarbage();
  const held = process.memoryUsage().heapUsed - before;
  end.open();
  await answer;
  // As objects of their own, two million chunks or more take over 200 MB.
  expect(held).toBeLessThan(64 * 1024 * 1024);
});
