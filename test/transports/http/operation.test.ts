import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { describe, expect, onTestFinished } from 'vitest';
import { readConfig } from '../../../src/config/read-config.ts';
import { createMetrics } from '../../../src/transports/http/metrics.ts';
import { AdService } from '../../support/ad-service.ts';
import { waitUntil } from '../../support/deadline.ts';
import {
  delays,
  respondAsDocumented,
  respondWhenOpen,
  respondWithBody,
  respondWithError,
  respondWithJson,
} from '../../support/faulty-upstream.ts';
import { httpTest as test } from '../../support/fixtures.ts';
import { createGate } from '../../support/gate.ts';
import {
  createToolCall,
  createValidHeaders,
  formatHttpRequest,
  openConnection,
  openRawSocket,
  startHttp,
} from '../../support/http.ts';
import { findFreePort } from '../../support/loopback.ts';
import { request } from '../stdio/session.ts';

describe('The limit of concurrent calls over HTTP', () => {
  test('a call is rejected as busy, with a time for the retry, if the queue of waiting calls is full', async ({
    serve,
    upstream,
  }) => {
    const gate = createGate();
    const limits = { callsAtOnce: 3, callsPerKey: 2, callsWaiting: 2 };
    const { post } = await serve(respondWhenOpen(gate), limits);
    const calls = Array.from({ length: 6 }, () => post('svc_live_eager'));
    await upstream.waitForRequests(2);
    const busy = { kind: 'busy', retryable: true, details: { retryAfterSeconds: expect.any(Number) } };
    expect((await Promise.race(calls)).json).toMatchObject({
      result: { isError: true, _meta: { 'ad-library/error': busy } },
    });
    // A call of another API key does not wait behind the calls of this key.
    const otherCall = post('svc_live_other');
    await waitUntil(() => upstream.requests.some(({ key }) => key === 'svc_live_other'));
    gate.open();
    expect((await otherCall).json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect((await Promise.all(calls)).filter(({ json }) => json.result.isError)).toHaveLength(2);
  });

  test('a rejected call of a tool that does not exist appears in the log as "unknown"', async ({ serve, upstream }) => {
    const limits = { callsAtOnce: 1, callsPerKey: 1, callsWaiting: 0 };
    const { server, post } = await serve(delays.hangs, limits);
    const hanging = post('svc_live_a').catch(() => {});
    await upstream.waitForRequests(1);
    const { text } = await post('svc_live_b', createToolCall('made_up_by_a_caller'));
    expect(text).toContain('"busy"');
    expect(server.logged.join('')).toContain('"unknown"');
    expect(server.logged.join('')).not.toContain('made_up');
    await server.close(0);
    await hanging;
  });

  test('a call that is cancelled while it waits for a slot appears in the log once', async ({ serve, upstream }) => {
    const { server, post, get } = await serve(delays.hangs, { callsAtOnce: 1, callsPerKey: 1, metrics: true });
    const hanging = post('svc_live_a').catch(() => {});
    await upstream.waitForRequests(1);
    const { socket } = openRawSocket(server.port);
    socket.write(formatHttpRequest(createToolCall('get_credits')));
    await waitUntil(async () => (await get('/metrics')).text.includes('ad_library_calls_waiting 1'));
    socket.destroy();
    await waitUntil(async () => (await get('/metrics')).text.includes('ad_library_calls_waiting 0'));
    const callLines = server.logged.filter((line) => line.includes('get_credits'));
    expect(callLines).toEqual([expect.stringContaining('"kind":"cancelled"')]);
    await server.close(0);
    await hanging;
  });

  test('a short SQL statement runs although other API keys run 64 SQL statements that never end', async ({ serve }) => {
    const { post, get } = await serve(respondAsDocumented, { metrics: true });
    const runSql = (key: string, sql: string) => post(key, createToolCall('query_ads', { sql }));
    const endless = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n';
    const otherCalls = ['svc_live_one', 'svc_live_two', 'svc_live_three', 'svc_live_four'].flatMap((key) =>
      Array.from({ length: 16 }, () => runSql(key, endless).catch(() => {})),
    );
    await waitUntil(async () => /calls_running 6[0-4]/.test((await get('/metrics')).text));
    const { result } = (await runSql('svc_live_little', 'SELECT 1')).json;
    expect(result.structuredContent?.rows, JSON.stringify(result)).toEqual([[1]]);
    expect(otherCalls.length).toBe(64);
  });

  test('resource reads count toward the limit of concurrent calls', async ({ serve, upstream }) => {
    const gate = createGate();
    const { post } = await serve(respondWhenOpen(gate), { callsAtOnce: 1, callsPerKey: 1, callsWaiting: 0 });
    const called = post('svc_live_a');
    await upstream.waitForRequests(1);
    const readBoard = () => post('svc_live_b', request(1, 'resources/read', { uri: 'ui://ad-library/board' }));
    expect((await readBoard()).json.error).toEqual({
      code: -32_000,
      message: expect.stringMatching(/free in about \d+ s/),
    });
    gate.open();
    await called;
    await waitUntil(async () => (await readBoard()).json.result?.contents.length === 1);
  });
});

describe('Metrics and logs of the HTTP server', () => {
  test('GET /metrics works under an IP address but not under a public host name', async ({ serve }) => {
    const { get, post } = await serve(respondAsDocumented, { metrics: true });
    for (const body of [createToolCall('whoami'), createToolCall('search_ads'), createToolCall('made_up_by_a_caller')])
      await post('svc_live_a', body);
    await post('wrong');
    const { text, headers } = await get('/metrics');
    expect(headers['content-type']).toContain('text/plain');
    for (const line of [
      'ad_library_call_seconds_count{tool="whoami",outcome="ok"} 1',
      'ad_library_call_seconds_count{tool="unknown",outcome="invalid_request"} 1',
      'ad_library_credits_charged_total{tool="search_ads"} 1',
      'ad_library_http_answers_total{status="401"} 1',
      'ad_library_calls_running 0',
    ])
      expect(text).toContain(line);
    expect(text).not.toContain('made_up');
    expect((await get('/metrics', { host: 'evil.example' })).status).toBe(403);
    expect((await get('/metrics', { host: '10.1.2.3:3000' })).status).toBe(200);
    const publicServer = await serve(respondAsDocumented, { metrics: true, publicUrl: 'https://ads.example.com' });
    expect((await publicServer.get('/metrics', { host: 'ads.example.com' })).status).toBe(404);
    expect((await (await serve(respondAsDocumented)).get('/metrics')).status).toBe(404);
  });

  test('the metrics and the log include the known charges of a successful call whose last request states no charge', async ({
    serve,
  }) => {
    const service = new AdService(150);
    const { get, post, server } = await serve(service.respond, { metrics: true, logLevel: 'info' });
    service.modifyResponse = (responseBody) => {
      service.hasChargeHeaders = responseBody.hasMore;
      return responseBody;
    };
    const { json } = await post('svc_live_a', createToolCall('gather_ads', { maxAds: 150, maxCredits: 100 }));
    expect(json.result).toMatchObject({ structuredContent: { complete: true, receipt: { charged: null } } });
    const [, knownCharges] = /at least (\d+) charged/.exec(JSON.stringify(json.result)) ?? [];
    expect(Number(knownCharges)).toBeGreaterThan(0);
    expect((await get('/metrics')).text).toContain(
      `ad_library_credits_charged_total{tool="gather_ads"} ${knownCharges}\n`,
    );
    expect(server.logged.map((line) => JSON.parse(line))).toMatchObject([
      { tool: 'gather_ads', charged: Number(knownCharges) },
    ]);
  });

  test('the error counters of the ad board tools and of sign-in also start at 0', async ({ serve }) => {
    const { get } = await serve(respondAsDocumented, { metrics: true });
    const { text } = await get('/metrics');
    for (const tool of ['search_ads', 'board_ads', 'board_pictures', 'sign_in'])
      expect(text).toContain(`ad_library_call_seconds_count{tool="${tool}",outcome="internal"} 0`);
  });

  test('the page docs/operations.md lists exactly the metrics that the server exports', async () => {
    const metrics = createMetrics([]);
    metrics.addCallGauges(() => ({ running: 0, waiting: 0 }));
    metrics.addReplicaStateGauge(() => true);
    const page = await (await new Hono().get('/', metrics.serveMetrics).request('/')).text();
    const served = [...page.matchAll(/^# TYPE (ad_library_\w+)/gm)].map(([, name]) => name);
    const text = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
    const listed = [...text.slice(text.search(/\| metric \|/i)).matchAll(/ad_library_\w+/g)].map(([name]) => name);
    expect(served.length).toBeGreaterThan(4);
    expect([...new Set(listed)].toSorted()).toEqual(served.toSorted());
  });

  test('each tool call appears in the log as one line of JSON without its arguments and API key', async ({ serve }) => {
    const { server, post } = await serve(
      respondWithBody(() => ({ authenticated: true, authSource: 'api_key' })),
      { logLevel: 'info' },
    );
    await post('svc_live_one', createToolCall('whoami'));
    await post('svc_live_one', createToolCall('search_ads', { filters: { query: 'secret plans' } }));
    const events = server.logged.map((line) => JSON.parse(line));
    const tenant = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(events).toMatchObject([
      { level: 'info', msg: 'call', tool: 'whoami', ms: expect.any(Number), requestId: 'caller one', tenant },
      { level: 'info', msg: 'call', tool: 'search_ads', kind: 'unexpected_response', tenant },
      { level: 'warn', kind: 'unexpected_response', tool: 'search_ads', failures: 1 },
    ]);
    expect(server.logged.join('')).not.toMatch(/svc_live|secret/);
    await post('svc_live_one', createToolCall('whoami'));
    await post('svc_live_two', createToolCall('whoami'));
    const [, , , again, other] = server.logged.map((line) => JSON.parse(line).tenant);
    expect(again).toBe(events[0].tenant);
    expect(other).not.toBe(again);
  });
});

test('GET /readyz shows whether the API responded to the latest call', async ({ serve }) => {
  let isUp = true;
  const { get, post } = await serve((...exchange) => (isUp ? respondAsDocumented : respondWithError(503))(...exchange));
  const readState = async () => (await get('/readyz')).json;
  expect(await readState()).toEqual({ status: 'ready' });
  await post('svc_live_a', createToolCall('whoami'));
  expect(await readState()).toEqual({ status: 'ready', service: 'up' });
  isUp = false;
  await post('svc_live_a', createToolCall('get_credits'));
  expect(await readState()).toEqual({ status: 'ready', service: 'away' });
  // This call reads only stored data, so it says nothing about the API.
  expect((await post('svc_live_a', createToolCall('list_watches'))).json.result.isError).toBeUndefined();
  expect(await readState()).toEqual({ status: 'ready', service: 'away' });
  isUp = true;
  await post('svc_live_a', createToolCall('get_credits'));
  expect(await readState()).toEqual({ status: 'ready', service: 'up' });
});

test('an SQL statement that reaches the deadline of its call does not count as a failure of the service', async ({
  serve,
}) => {
  const { get, post, server } = await serve(respondAsDocumented, { timeoutMs: 1000 });
  await post('svc_live_a', createToolCall('whoami'));
  // The statement is a single step of the SQL engine, which cannot be interrupted.
  const sql = "SELECT instr(zeroblob(900000), cast(zeroblob(450000) || x'01' AS blob))";
  const { result } = (await post('svc_live_a', createToolCall('query_ads', { sql }))).json;
  expect(result._meta['ad-library/error']).toMatchObject({ kind: 'timeout' });
  expect((await get('/readyz')).json).toEqual({ status: 'ready', service: 'up' });
  expect(server.logged.join('')).not.toContain('the service fails');
});

test.for([401, 403, 404, 429])(
  'an API response with HTTP status %i and an undocumented body counts as a failure of the service',
  async (status, { serve }) => {
    const { get, post, server } = await serve(respondWithJson('<h1>Blocked</h1>', { status }));
    await post('svc_live_a', createToolCall('get_credits'));
    expect((await get('/readyz')).json).toEqual({ status: 'ready', service: 'away' });
    expect(server.logged.join('')).toContain('the service fails; check AD_LIBRARY_BASE_URL');
  },
);

test('the server warns at startup if it has a public URL and an attempt limit, but no setting for its proxy', async ({
  serve,
}) => {
  const readWarnings = async (settings: object) =>
    (await serve(respondAsDocumented, { logLevel: 'info', publicUrl: 'https://ads.example.com', ...settings })).server
      .logged;
  expect((await readWarnings({})).join('')).toContain('AD_LIBRARY_TRUSTED_PROXY is not set');
  expect(await readWarnings({ trustedProxy: 'none' })).toEqual([]);
  expect(await readWarnings({ refusalsPerMinute: 0 })).toEqual([]);
  expect(await readWarnings({ publicUrl: 'http://127.0.0.1:3000' })).toEqual([]);
});

describe('Shutdown of the HTTP server', () => {
  test('a server that shuts down finishes its running calls and rejects new requests with status 503', async ({
    serve,
    upstream,
  }) => {
    const gate = createGate();
    const { server, post } = await serve(respondWhenOpen(gate));
    const otherConnection = openConnection(server.origin);
    const ready = () => otherConnection.send({ method: 'GET', path: '/readyz' });
    expect((await ready()).json).toEqual({ status: 'ready' });
    const inFlight = post('svc_live_a');
    await upstream.waitForRequests(1);
    const closed = server.close(5000);
    expect(await ready()).toMatchObject({ status: 503, json: { status: 'draining' } });
    const late = await otherConnection.call('whoami');
    expect(late).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
    expect(late.text).toContain('This server is shutting down.');
    gate.open();
    expect((await inFlight).json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect((await inFlight).headers.connection).toBe('close');
    await closed;
    otherConnection.close();
  });

  test('a server that shuts down waits for the API only until its shutdown deadline', async ({ serve, upstream }) => {
    const { server, post } = await serve(delays.hangs);
    const hanging = post('svc_live_a').catch((error) => error);
    await upstream.waitForRequests(1);
    await server.close(300);
    expect(await hanging).toBeInstanceOf(Error);
    expect(await upstream.requests[0]?.waitForAbort()).toBe(true);
  });

  test('the shutdown deadline of a replica includes the time during which only its readiness probe fails', async ({
    serve,
    upstream,
  }) => {
    const { stateUrl } = readConfig({ AD_LIBRARY_STATE_URL: 'redis://127.0.0.1:1' });
    const { server, post } = await serve(delays.hangs, {
      stateUrl,
      stateSecret: 'a secret of the shared state, 32 characters',
    });
    const hanging = post('svc_live_a').catch(() => {});
    await upstream.waitForRequests(1);
    const startedAt = performance.now();
    await server.close(3000);
    expect(performance.now() - startedAt).toBeLessThan(3700);
    await hanging;
  });
});

describe('The address of the HTTP server', () => {
  test.each([
    ['127.0.0.1', undefined, '127.0.0.1'],
    ['::1', undefined, '[::1]'],
    ['0.0.0.0', ['[2001:db8::1]'], '[2001:db8::1]'],
  ])(
    'the picture URLs of a demo server contain a host that clients can reach (host: %s, allowed hosts: %j, in the URL: %s)',
    async (host, allowedHosts, name) => {
      const port = await findFreePort();
      const server = await startHttp({ demo: true, host, port, allowedHosts });
      onTestFinished(() => server.close(0));
      const headers = { ...createValidHeaders(), host: `${name}:${port}` };
      const send = async (tool: string, args: object) =>
        (await openConnection(server.origin).send({ headers, body: JSON.stringify(createToolCall(tool, args)) })).text;
      const [adId] = /(?<="id":")[\da-f-]{36}/.exec(await send('search_ads', { limit: 1 })) ?? [];
      expect(await send('get_ad', { adId })).toContain(`http://${name}:${port}/media/demo/`);
    },
  );

  // macOS has only the loopback address 127.0.0.1.
  test.skipIf(process.platform === 'darwin')(
    'the HTTP server can listen on a loopback address other than 127.0.0.1',
    async ({ serve }) => {
      expect((await (await serve(respondAsDocumented, { host: '127.0.0.2' })).post('svc_live_a')).status).toBe(200);
    },
  );
});

test('a request without a Content-Length header is treated as a request without a body', async ({ serve }) => {
  const { server } = await serve(respondAsDocumented);
  const { socket, closed } = openRawSocket(server.port);
  const fields = { host: 'localhost', connection: 'close', ...createValidHeaders() };
  const head = Object.entries(fields).map((pair) => pair.join(': '));
  socket.write(`POST /mcp HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
  const answer = await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('The body is not JSON.');
});
