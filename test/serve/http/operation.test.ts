import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import { answering, type Behaviour, delays, startUpstream } from '../../support/faulty-upstream.ts';
import { gateOf } from '../../support/gate.ts';
import { callOf, goodHeaders, keepAlive, startHttp, until } from '../../support/http.ts';
import { serveHttp } from '../../support/process.ts';

const identity = { authenticated: true, authSource: 'api_key' };
const identifies = answering(() => identity);

async function between(behaviour: Behaviour, config: Partial<Config> = {}) {
  const upstream = await startUpstream(behaviour);
  onTestFinished(upstream.close);
  const server = await startHttp({ baseUrl: upstream.baseUrl, ...config });
  onTestFinished(() => server.close(0));
  return { upstream, server };
}

const post = (origin: string, key: string, body: object = callOf('whoami')) =>
  keepAlive(origin).send({ headers: goodHeaders(key), body: JSON.stringify(body) });

describe('calls at once', () => {
  test('wait for their turn, and past the limit get an error with the time to retry', async () => {
    const gate = gateOf();
    const limits = { callsAtOnce: 3, callsPerKey: 2, callsWaiting: 16 };
    const { upstream, server } = await between(
      answering(() => gate.opened.then(() => identity)),
      limits,
    );
    const calls = Array.from({ length: 6 }, () => post(server.origin, 'svc_live_eager'));
    await until(() => upstream.requests.length === 2);
    const settled = Promise.race(calls);
    const { json } = await settled;
    expect(json).toMatchObject({
      result: {
        isError: true,
        _meta: {
          'ad-library/error': { kind: 'busy', retryable: true, details: { retryAfterSeconds: expect.any(Number) } },
        },
      },
    });
    // Another key is not held up by this one.
    const other = post(server.origin, 'svc_live_other');
    await until(() => upstream.requests.some(({ key }) => key === 'svc_live_other'));
    gate.open();
    expect((await other).json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect((await Promise.all(calls)).filter(({ json }) => json.result.isError)).toHaveLength(2);
  });
});

test('a refused call is logged without the tool name its caller made up', async () => {
  const { upstream, server } = await between(delays.hangs, { callsAtOnce: 1, callsPerKey: 1, callsWaiting: 0 });
  const hanging = post(server.origin, 'svc_live_a').catch(() => {});
  await until(() => upstream.requests.length === 1);
  const { text } = await post(server.origin, 'svc_live_b', callOf('made_up_by_a_caller'));
  expect(text).toContain('"busy"');
  expect(server.logged.join('')).toContain('"unknown"');
  expect(server.logged.join('')).not.toContain('made_up');
  await server.close(0);
  await hanging;
});

describe('operation', () => {
  test('answers health and readiness, and metrics only where they are on', async () => {
    const { server } = await between(identifies);
    const connection = keepAlive(server.origin);
    const get = (path: string) => connection.send({ method: 'GET', path });
    expect((await get('/healthz')).json).toMatchObject({ status: 'ok' });
    expect((await get('/readyz')).json).toMatchObject({ status: 'ready' });
    expect((await get('/metrics')).status).toBe(404);
  });

  test('metrics count tools, outcomes, times, credits and answers', async () => {
    const { server } = await between(identifies, { metrics: true });
    await post(server.origin, 'svc_live_a');
    await post(server.origin, 'svc_live_a', callOf('made_up_by_a_caller'));
    await post(server.origin, 'wrong');
    const { text, headers } = await keepAlive(server.origin).send({ method: 'GET', path: '/metrics' });
    expect(headers['content-type']).toContain('text/plain');
    expect(text).toContain('ad_library_call_seconds_count{tool="whoami",outcome="ok"} 1');
    expect(text).toContain('ad_library_call_seconds_count{tool="unknown",outcome="invalid_request"} 1');
    expect(text).toContain('ad_library_http_answers_total{status="401"} 1');
    expect(text).toContain('ad_library_calls_running 0');
    expect(text).not.toContain('made_up');
    const foreign = { ...goodHeaders(), host: 'evil.example' };
    expect((await keepAlive(server.origin).send({ method: 'GET', path: '/metrics', headers: foreign })).status).toBe(
      403,
    );
  });

  test('every call is a line of JSON, without its arguments or its key', async () => {
    const { server } = await between(identifies, { logLevel: 'info' });
    await post(server.origin, 'svc_live_one', callOf('whoami'));
    await post(server.origin, 'svc_live_one', callOf('search_ads', { filters: { query: 'secret plans' } }));
    const lines = server.logged.map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { level: 'info', msg: 'call', tool: 'whoami', ms: expect.any(Number), requestId: 'caller one' },
      { level: 'info', msg: 'call', tool: 'search_ads', kind: 'unexpected_response' },
    ]);
    expect(server.logged.join('')).not.toMatch(/svc_live|secret/);
  });
});

describe('SIGTERM', () => {
  test('finishes calls in flight, refuses new ones, and exits with 0', async () => {
    const gate = gateOf();
    const upstream = await startUpstream(answering(() => gate.opened.then(() => identity)));
    onTestFinished(upstream.close);
    const served = await serveHttp(['--base-url', upstream.baseUrl]);
    const ready = () => keepAlive(served.origin).send({ method: 'GET', path: '/readyz' });
    expect((await ready()).status).toBe(200);
    const underWay = post(served.origin, 'svc_live_a');
    await until(() => upstream.requests.length === 1);

    const ended = served.close();
    while ((await ready()).status === 200) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await ready()).json).toMatchObject({ status: 'draining' });
    const late = await post(served.origin, 'svc_live_b');
    expect(late.status).toBe(503);
    expect(late.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
    gate.open();
    const delivered = await underWay;
    expect(delivered.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect(delivered.headers.connection).toBe('close');
    const { code, stderr } = await ended;
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^ad-library-mcp: listening on \S+\n$/),
    });
  });

  test('waits for a service that hangs until the deadline, and no longer', async () => {
    const { server, upstream } = await between(delays.hangs);
    const hanging = post(server.origin, 'svc_live_a').catch((error) => error);
    await until(() => upstream.requests.length === 1);
    const asked = performance.now();
    await server.close(300);
    expect(performance.now() - asked).toBeLessThan(1500);
    expect(await hanging).toBeInstanceOf(Error);
    await until(() => upstream.requests[0]?.aborted === true);
  });
});
