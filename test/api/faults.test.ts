import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { singleCallTools } from '../support/every-tool.ts';
import {
  type Behaviour,
  createCreditHeaders,
  delays,
  faults,
  respondAsDocumented,
  respondWithBytes,
  respondWithError,
  respondWithJson,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { createGate } from '../support/gate.ts';
import type { Result, TestServer } from '../support/server.ts';

/** An API key that must not appear in any result or log line. */
const canary = 'svc_live_CANARY0123456789abcdef';

/** A test whose server has no cache, so that every call reaches the API. */
const test = upstreamTest({ config: { apiKey: canary, cacheSeconds: 0 } });
test.beforeEach(async ({ upstream, server }) => {
  upstream.respondWith(respondAsDocumented);
  upstream.credits = undefined;
  // An earlier test may have made the API reject the key. After this call, the server accepts the key again.
  await server.call('whoami');
  upstream.respondWith(respondAsDocumented);
});

/** Verifies that a result is an error of this kind, says whether a retry helps, and leaks no API key or stack trace. */
function expectError({ logLines }: TestServer, { raw, text, isError, error }: Result, kind: string): void {
  expect(raw.structuredContent).toBeUndefined();
  expect([isError, error?.kind]).toEqual([true, kind]);
  expect(error?.retryable).toBeTypeOf('boolean');
  expect(text).toMatch(/Retrying (may|the same call will not) help/);
  expect(text.length).toBeLessThan(3000);
  const everything = JSON.stringify(raw) + logLines.join('');
  expect(everything).not.toContain('CANARY');
  expect(JSON.stringify(raw)).not.toMatch(/\bat .+\.(ts|js):\d+/);
  expect(everything).not.toContain('a tool failed');
}

/** Returns how many requests a failing free call makes, including its retries. */
const countAttempts = (tool: string) => (tool === 'add_collection_item' ? 2 : 3);

/** Verifies that every tool succeeds, states its cost in the text and data, and is not marked as demo data. */
async function expectAllToolsSucceed({ call }: TestServer): Promise<void> {
  for (const { tool, args, isGatedTool } of singleCallTools) {
    const { isError, data, text } = await call(tool, args);
    const receipt = { charged: isGatedTool ? 1 : 0, remaining: 100, cached: false, requestId: 'req-1' };
    expect([tool, isError, data.receipt]).toEqual([tool, false, receipt]);
    expect(text).toContain(`\nCredits: ${receipt.charged} charged, 100 left. Request req-1`);
    expect([text.includes('DEMO'), 'notice' in data]).toEqual([false, false]);
  }
}

const countRequests = ({ requests }: Upstream, isCredits: boolean) =>
  requests.filter(({ path }) => isCredits || !path.endsWith('/credits')).length;

describe('Every tool with a faulty API', () => {
  test('every tool sends the API key only in the Authorization header', async ({ upstream, server }) => {
    await expectAllToolsSucceed(server);
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

  test.for(Object.keys(faults) as (keyof typeof faults)[])(
    'every tool returns a clear error and recovers once the API works again (fault: the API %s)',
    async (fault, { upstream, server }) => {
      const isCut = ['resets', 'closes without an answer', 'ends in the middle of the body'].includes(fault);
      for (const { tool, args, isGatedTool } of singleCallTools) {
        upstream.respondWith(faults[fault]);
        const result = await server.call(tool, args);
        expectError(server, result, isCut ? 'network' : 'unexpected_response');
        expect(upstream.requests).toHaveLength(isCut && !isGatedTool ? countAttempts(tool) : 1);
        if (isGatedTool) expect(result.text).toMatch(/unknown whether the service charged.*may be charged again/s);
        if (fault === 'sends 40 MB')
          expect(result.text).toMatch(/The answer is larger than 8 MB\..*Ask for fewer items in one call/s);
      }
      upstream.respondWith(respondAsDocumented);
      await expectAllToolsSucceed(server);
    },
  );

  test.for(Object.keys(delays) as (keyof typeof delays)[])(
    'every tool returns a timeout error and recovers once the API works again (fault: the API %s)',
    async (delay, { upstream, start }) => {
      const server = await start({ timeoutMs: 1000 });
      upstream.respondWith(delays[delay]);
      const results = await Promise.all(singleCallTools.map(({ tool, args }) => server.call(tool, args)));
      for (const result of results) expectError(server, result, 'timeout');
      expect(upstream.requests).toHaveLength(singleCallTools.length);
      await Promise.all(upstream.requests.map((request) => request.waitForAbort()));
      upstream.respondWith(respondAsDocumented);
      await expectAllToolsSucceed(server);
    },
  );

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
  const undocumentedStatuses = [
    201, 202, 204, 301, 302, 303, 304, 307, 308, 400, 405, 408, 409, 410, 413, 418, 425, 451,
  ];

  test.for([...kinds.keys(), ...undocumentedStatuses])(
    'every tool maps HTTP status %i to the right error kind and retries the request only if a retry is safe',
    async (status, { upstream, server }) => {
      const hasBody = status !== 204 && status !== 304;
      for (const { tool, args, isGatedTool } of singleCallTools) {
        // The server accepts a rejected key again after a successful call.
        upstream.respondWith(respondAsDocumented);
        await server.call('whoami');
        upstream.respondWith((request, response) => {
          // If the server followed a redirect, it would send the key to the target.
          response.setHeader('location', '/elsewhere');
          if (hasBody) respondWithError(status)(request, response);
          else response.writeHead(status).end();
        });
        upstream.credits = tool === 'get_credits' ? undefined : respondWithError(500);
        const result = await server.call(tool, args);
        const { error, text } = result;
        expectError(server, result, kinds.get(status) ?? 'unexpected_response');
        expect(error).toMatchObject({ status, ...(hasBody && { code: 'some_code', requestId: 'req-e' }) });
        for (const expectedText of [
          `HTTP ${status}`,
          ...(hasBody ? ['The service says: "The service says no."', 'some_code'] : []),
        ])
          expect(text).toContain(expectedText);
        if (hasBody) expect(text).toContain('Request id: req-e');
        const isRepeated = (isGatedTool ? [503] : [502, 503, 504]).includes(status);
        expect(countRequests(upstream, tool === 'get_credits')).toBe(isRepeated ? countAttempts(tool) : 1);
      }
    },
  );
});

test.for<[string, unknown]>([
  ['contains a string as error', { error: 'no' }],
  ['contains null as error', { error: null }],
  ['contains a list as error', { error: [] }],
  ['contains fields of wrong types', { error: { code: 7, message: ['x'], requestId: {}, details: 1 } }],
  ['is null', null],
])(
  'the HTTP status determines the error kind if the body of the error response %s',
  async ([_, body], { upstream, server }) => {
    upstream.respondWith(respondWithJson(body, { status: 422 }));
    expect((await server.call('search_ads')).error).toMatchObject({ kind: 'invalid_request', status: 422 });
  },
);

test('an error in an undocumented format says that the response may not come from the API', async ({
  upstream,
  server,
}) => {
  upstream.respondWith((_, response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>'),
  );
  const { text, error } = await server.call('get_ad', { adId: '11111111-1111-4111-8111-111111111111' });
  expect(error).toMatchObject({ kind: 'not_found', status: 404 });
  expect(text).toContain('it may not come from the API');
  expect(text).not.toContain('Not here');
});

const emptyReceipt = { charged: null, remaining: null };
test.for<[string, object, string]>([
  ['0.5', { charged: 0.5, remaining: 0.5 }, '0.5 charged, 0.5 left'],
  ['0.0004', { charged: 0.0004, remaining: 0.0004 }, 'Credits: 0.0004 charged, 0.0004 left'],
  ['-3', { charged: null, remaining: -3 }, 'Credits: not reported for this call, -3 left'],
  ...['--3', 'three', '9'.repeat(400), '', '0x10', '1, 2'].map((value): [string, object, string] => [
    value,
    emptyReceipt,
    '',
  ]),
])(
  'credit headers with the value "%s" appear in the result as %j',
  async ([value, expectedReceipt, expectedText], { upstream, server }) => {
    const headers = { 'x-service-credits-charged': value, 'x-service-credits-remaining': value };
    upstream.respondWith(respondWithJson({ id: 'x' }, { headers }));
    const { data, text } = await server.call('get_ad', { adId: deriveUuid('x') });
    expect(data.receipt).toEqual({ ...expectedReceipt, cached: false, requestId: 'req-1' });
    expect(text).toContain(expectedText);
  },
);

test('a result says that its charge is unknown if the credit headers are missing', async ({ upstream, server }) => {
  upstream.respondWith((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('{"id":"x","headline":"Read"}');
  });
  const { data, text } = await server.call('get_ad', { adId: deriveUuid('x') });
  expect(data.receipt).toEqual({ ...emptyReceipt, cached: false, requestId: null });
  expect(text).toContain('Credits: not reported for this call');
  expect(text).toContain('Read');
});

const compressors = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

test.for(Object.entries(compressors))(
  'the server reads a compressed response although its request asked for an uncompressed one (encoding: %s)',
  async ([encoding, compress], { upstream, server }) => {
    const body = compress(JSON.stringify({ id: 'x', headline: 'Größer' }));
    upstream.respondWith(respondWithBytes(body, { 'content-encoding': encoding, ...createCreditHeaders(5) }));
    const { data, text } = await server.call('get_ad', { adId: deriveUuid('x') });
    expect(text).toContain('Größer');
    expect(data.receipt.charged).toBe(5);
    expect(upstream.requests[0]?.headers['accept-encoding']).toBe('identity');
  },
);

test.for(Object.entries(compressors))(
  'the error about a compressed response that is too large shows how much the call cost (encoding: %s)',
  async ([encoding, compress], { upstream, server }) => {
    const body = compress(Buffer.alloc(9 * 1024 * 1024, ' '));
    upstream.respondWith(respondWithBytes(body, { 'content-encoding': encoding, ...createCreditHeaders(5) }));
    const { error, text } = await server.call('get_ad', { adId: deriveUuid('x') });
    expect(error).toMatchObject({ kind: 'unexpected_response' });
    expect(text).toContain('The answer is larger than 8 MB.');
    expect(text).toContain('charged 5 credits');
  },
);

test('concurrent calls each get their own result if the API responds out of order', async ({ upstream, server }) => {
  const heldResponses: (() => void)[] = [];
  upstream.respondWith((request, response) => {
    const id = (request.url ?? '').split('/').at(-1);
    heldResponses.push(() => response.writeHead(200, {}).end(JSON.stringify({ id, headline: `Ad ${id}` })));
    if (heldResponses.length === 5) for (const answer of heldResponses.reverse()) answer();
  });
  const ids = ['a', 'b', 'c', 'd', 'e'].map(deriveUuid);
  const results = await Promise.all(ids.map((adId) => server.call('get_ad', { adId })));
  expect(results.map(({ data }) => data.ad.id)).toEqual(ids);
});

test('reading a response that arrives in millions of one-byte chunks uses less than 64 MB of memory', async ({
  upstream,
  server,
}) => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const [firstHalfSent, end] = [createGate(), createGate()];
  const piece = Buffer.from('1\r\n \r\n'.repeat(10_000));
  const threeMillionChunks: Behaviour = (_, { socket }) => {
    socket?.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    let pieces = 0;
    const more = () => {
      while (pieces++ < 300) if (!socket?.write(piece)) return void socket?.once('drain', more);
      firstHalfSent.open();
      void end.opened.then(() => socket?.end('2\r\n{}\r\n0\r\n\r\n'));
    };
    more();
  };
  upstream.respondWith(threeMillionChunks);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const answer = server.call('get_account');
  await firstHalfSent.opened;
  collectGarbage();
  const heldBytes = process.memoryUsage().heapUsed - before;
  end.open();
  await answer;
  // Two million chunks would take more than 200 MB if the server kept each chunk as an object.
  expect(heldBytes).toBeLessThan(64 * 1024 * 1024);
});
