import { Readable } from 'node:stream';
import { describe, expect } from 'vitest';
import { respondAsDocumented } from '../../support/faulty-upstream.ts';
import { test as base } from '../../support/fixtures.ts';
import {
  createToolCall,
  createValidHeaders,
  type HttpServer,
  openConnection,
  openRawSocket,
  startHttp,
} from '../../support/http.ts';
import { createLatestRequest, envelope, request } from '../stdio/session.ts';

const test = base.extend('server', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
  upstream.respondWith(respondAsDocumented);
  const server = await startHttp({ baseUrl: upstream.baseUrl, refusalsPerMinute: 0 });
  onCleanup(() => server.close(0));
  return server;
});
const goodKey = 'svc_live_good';

const createNestedList = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const removeHeader = (name: string) =>
  Object.fromEntries(Object.entries(createValidHeaders()).filter(([key]) => key !== name));
const whoami = JSON.stringify(createToolCall('whoami'));
const createLatestCall = (meta: object) =>
  JSON.stringify(request(1, 'tools/call', { name: 'whoami', arguments: {}, _meta: meta }));

interface InvalidRequest {
  status: number;
  /** The setting that the response must name. */
  namedSetting?: string;
  path?: string;
  method?: 'GET' | 'DELETE' | 'PUT' | 'POST';
  headers?: Record<string, string> | string[];
  body?: string;
}

const withHeaders = (more: Record<string, string>) => ({ headers: { ...createValidHeaders(), ...more } });
const withKey = (key: string) => ({ headers: createValidHeaders(key) });
const withTwoKeys = (key: string) => ({
  headers: [...Object.entries(createValidHeaders('svc_live_a')).flat(), 'authorization', `Bearer ${key}`],
});
const versionField = 'io.modelcontextprotocol/protocolVersion';

/** Requests that the server must reject without closing the connection. */
const invalidRequests: Record<string, InvalidRequest> = {
  'without a key': { status: 401, headers: removeHeader('authorization') },
  'with a key of another service': { status: 401, ...withKey('sk-123') },
  'with a key that holds a space': { status: 401, ...withKey('svc_live_a b') },
  'with a key in capital letters': { status: 401, ...withKey('SVC_LIVE_abc') },
  'with nothing after Bearer': { status: 401, ...withKey('') },
  'with Basic authentication': { status: 401, ...withHeaders({ authorization: 'Basic c3Zj' }) },
  'with two keys': { status: 401, ...withTwoKeys('svc_live_b') },
  'with the same key twice': { status: 401, ...withTwoKeys('svc_live_a') },
  'with a key in the URL': { status: 400, path: '/mcp?key=svc_live_abc' },
  'with a key in the second value of a URL parameter': { status: 400, path: '/mcp?a=1&a=svc_live_abc' },
  'with a percent-encoded key in the URL': { status: 400, path: '/mcp?api_key=svc%5flive%5fabc' },
  'to a foreign host': { status: 403, ...withHeaders({ host: 'evil.example' }), namedSetting: '--allowed-hosts' },
  'to an IP address': { status: 403, ...withHeaders({ host: '10.1.2.3' }) },
  'to a foreign host whose name begins with localhost': {
    status: 403,
    ...withHeaders({ host: 'localhost.evil.example' }),
  },
  'from a foreign web page': {
    status: 403,
    ...withHeaders({ origin: 'https://evil.example' }),
    namedSetting: '--allowed-origins',
  },
  'from a web page without an origin': { status: 403, ...withHeaders({ origin: 'null' }) },
  'with a form as body': { status: 415, ...withHeaders({ 'content-type': 'application/x-www-form-urlencoded' }) },
  'with plain text as body': { status: 415, ...withHeaders({ 'content-type': 'text/plain; application/json' }) },
  'without a Content-Type header': { status: 415, headers: removeHeader('content-type') },
  'that accepts only HTML': { status: 406, ...withHeaders({ accept: 'text/html' }) },
  'that accepts only a stream of events': { status: 406, ...withHeaders({ accept: 'text/event-stream' }) },
  'that refuses JSON': { status: 406, ...withHeaders({ accept: 'application/json;q=0, */*' }) },
  'with an empty body': { status: 400, body: '' },
  'with a body that is not JSON': { status: 400, body: '{"jsonrpc": "2.0", ' },
  'with JSON that is not a message': { status: 400, body: '"hello"' },
  'with a body that is nested 30,000 levels deep': { status: 400, body: createNestedList(30_000) },
  'with arguments that are nested 10,000 levels deep': {
    status: 400,
    body: whoami.replace('{}', `{"filters":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`),
  },
  'with a batch of messages': { status: 400, body: `[${whoami},${whoami.replace('1', '2')}]` },
  'with an empty batch': { status: 400, body: '[]' },
  'with an unknown protocol revision in its header': {
    status: 400,
    ...withHeaders({ 'mcp-protocol-version': '1999-01-01' }),
  },
  'with an unknown protocol revision in its envelope': {
    status: 400,
    body: createLatestCall({ ...envelope, [versionField]: '2031-01-01' }),
  },
  'with an incomplete envelope': { status: 400, body: createLatestCall({ [versionField]: '2026-07-28' }) },
  'with the method GET': { status: 405, method: 'GET' },
  'with the method DELETE': { status: 405, method: 'DELETE' },
  'to an unknown path': { status: 404, path: '/sse' },
};

describe('HTTP requests', () => {
  test.for(Object.entries(invalidRequests))(
    'an invalid HTTP request (%s) is rejected, and its connection stays open',
    async ([_, { status, namedSetting: names = '', ...options }], { server }) => {
      const connection = openConnection(server.origin);
      const hasBody = options.method === undefined;
      const refused = await connection.send({ ...(hasBody && { body: whoami }), ...options });
      expect(refused.status, refused.text).toBe(status);
      expect(refused.json).toMatchObject({ jsonrpc: '2.0', error: { message: expect.any(String) } });
      expect(refused.text).toContain(names);
      expect(refused.text).not.toMatch(/svc_live_a|evil/);
      if (status === 401) expect(refused.headers['www-authenticate']).toMatch(/^Bearer /);

      const next = await connection.call('whoami', {}, goodKey);
      expect(next.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
      expect(connection.connections()).toBe(1);
      await connection.close();
    },
  );

  test('an HTTP request whose body exceeds 1 MB is rejected with status 413', async ({ server }) => {
    const large = Buffer.alloc(1024 * 1024 + 1, ' ');
    const stated = await openConnection(server.origin).send({ body: large });
    const streamed = await openConnection(server.origin).send({
      body: Readable.from(Array.from({ length: 5 }, () => large.subarray(0, large.length / 4))),
    });
    for (const { status, headers } of [stated, streamed]) {
      expect(status).toBe(413);
      expect(headers.connection).toBe('close');
    }
    expect((await openConnection(server.origin).call('whoami', {}, goodKey)).status).toBe(200);
  });

  test('a request body of more than 64 KB is accepted only with an API key that the API has accepted before', async ({
    server,
  }) => {
    const body = whoami.replace('{}', `{"a":"${'x'.repeat(70_000)}"}`);
    const sendLargeBody = (key: string) =>
      openConnection(server.origin).send({ headers: createValidHeaders(key), body });
    const unknownKey = 'svc_live_made_up_for_this';
    expect((await sendLargeBody(unknownKey)).status).toBe(413);
    await openConnection(server.origin).call('whoami', {}, unknownKey);
    expect((await sendLargeBody(unknownKey)).json).toMatchObject({ result: { isError: true } });
  });

  test('the server closes the connection of a rejected request whose body it did not read', async ({ server }) => {
    const { status, headers } = await openConnection(server.origin).send({
      path: '/other',
      body: Buffer.alloc(500_000, ' '),
    });
    expect(status).toBe(404);
    expect(headers.connection).toBe('close');
  });

  test('the server reads a request body that is sent with chunked transfer encoding', async ({ server }) => {
    const { json } = await openConnection(server.origin).send({
      headers: createValidHeaders(goodKey),
      body: Readable.from([Buffer.from(whoami.slice(0, 10)), Buffer.from(whoami.slice(10))]),
    });
    expect(json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
  });

  test.for([
    ['bytes that are not HTTP', '400', '\0\x01 nonsense\r\n\r\n'],
    ['headers that are too large', '431', `POST /mcp HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
  ] as const)('the server closes an HTTP connection on which it receives %s', async ([_, status, text], { server }) => {
    const { socket, closed } = openRawSocket(server.port);
    socket.write(text);
    expect((await closed).split(' ').slice(0, 2)).toEqual(['HTTP/1.1', status]);
  });
});

describe('The Accept header', () => {
  const latest = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'whoami' };

  test.for([
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'APPLICATION/JSON; charset=utf-8',
    'application/json, application/mcp+json',
    'text/html, */*;q=0.1',
    'application/json;q=0.5, text/event-stream',
    'text/event-stream, application/json',
  ])(
    'a request with the Accept header %j gets a JSON response in every protocol revision',
    async (accept, { server }) => {
      const { accept: _, ...others } = createValidHeaders(goodKey);
      const headers = { ...others, ...(accept !== undefined && { accept }) };
      for (const [more, body] of [
        [{}, whoami],
        [latest, createLatestCall(envelope)],
      ] as const) {
        const answer = await openConnection(server.origin).send({ headers: { ...headers, ...more }, body });
        expect(answer).toMatchObject({ status: 200, json: { result: { structuredContent: { authenticated: true } } } });
      }
    },
  );

  test('a client that accepts only JSON gets JSON even if its call asks for progress notifications', async ({
    server,
  }) => {
    const gather = (meta: object) =>
      JSON.stringify(request(1, 'tools/call', { name: 'gather_ads', arguments: { maxCredits: 0 }, _meta: meta }));
    const typeOf = async (accept: string, more: object, meta: object) => {
      const headers = { ...createValidHeaders(goodKey), ...more, accept };
      const body = gather({ ...meta, progressToken: 'p' });
      return (await openConnection(server.origin).send({ headers, body })).headers['content-type'];
    };
    expect(await typeOf('application/json', {}, {})).toBe('application/json');
    const named = { ...latest, 'mcp-name': 'gather_ads' };
    expect(await typeOf('application/json', named, envelope)).toBe('application/json');
    expect(await typeOf('*/*', {}, {})).toBe('text/event-stream');
  });
});

test('the server also accepts the path /mcp/ with a slash at its end', async ({ server }) => {
  const { send } = openConnection(server.origin);
  const headers = createValidHeaders(goodKey);
  for (const path of ['/mcp/', '/mcp/?output=text']) {
    const { status, json } = await send({ path, headers, body: whoami });
    expect([status, json.result.isError]).toEqual([200, undefined]);
  }
  expect((await send({ path: '/mcp/', headers: removeHeader('authorization'), body: whoami })).status).toBe(401);
  for (const path of ['/mcp//', '/healthz/', '/MCP/'])
    expect((await send({ path, headers, body: whoami })).status, path).toBe(404);
});

test('a request with an unknown method gets HTTP status 200 or 404, depending on the protocol revision', async ({
  server,
}) => {
  const revision = '2026-07-28';
  const connection = openConnection(server.origin);
  const method = 'tools/forget';
  const sendUnknownMethod = (headers: Record<string, string>, params: object) =>
    connection.send({
      headers: { ...createValidHeaders(goodKey), ...headers },
      body: JSON.stringify(request(5, method, params)),
    });
  for (let round = 0; round < 2; round++) {
    const legacy = await sendUnknownMethod({}, {});
    expect(legacy).toMatchObject({ status: 200, json: { id: 5, error: { code: -32_601 } } });
    const modern = await sendUnknownMethod(
      { 'mcp-protocol-version': revision, 'mcp-method': method },
      { _meta: envelope },
    );
    expect(modern).toMatchObject({ status: 404, json: { id: 5, error: { code: -32_601 } } });
    const { json } = await connection.send({ headers: createValidHeaders(goodKey), body: whoami });
    expect(json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
  }
  await connection.close();
});

test.for([
  ['without the header MCP-Protocol-Version', { 'mcp-protocol-version': undefined }, -32_020],
  ['whose header MCP-Protocol-Version names another revision', { 'mcp-protocol-version': '2025-11-25' }, -32_020],
  ['whose header Mcp-Method names another method', { 'mcp-method': 'tools/list' }, -32_020],
  ['without the header Mcp-Name', { 'mcp-name': undefined }, -32_020],
  ['whose header Mcp-Name names another tool', { 'mcp-name': 'search_ads' }, -32_020],
  ['of an unknown protocol revision', { 'mcp-protocol-version': '2031-01-01' }, -32_022, '2031-01-01'],
] as const)(
  'a request %s is rejected with status 400 before its invalid parameters are reported',
  async ([_, changedHeaders, code, revision = '2026-07-28'], { server }) => {
    const call = createLatestRequest('tools/call', { name: 'whoami', arguments: [1] });
    const headers = Object.entries({ ...call.headers, ...changedHeaders }).filter(([, value]) => value !== undefined);
    const { status, json } = await openConnection(server.origin).send({
      headers: Object.fromEntries(headers),
      body: call.body.replace('2026-07-28', revision),
    });
    expect({ status, code: json.error?.code }).toEqual({ status: 400, code });
  },
);

test('a request of an unknown earlier revision is rejected with status 400 before its invalid parameters are reported', async ({
  server,
}) => {
  const { status, json } = await openConnection(server.origin).send({
    headers: { ...createValidHeaders(goodKey), 'mcp-protocol-version': '1999-01-01' },
    body: JSON.stringify(request(1, 'tools/call', { name: 'whoami', arguments: [1] })),
  });
  expect({ status, message: json.error?.message }).toEqual({
    status: 400,
    message: expect.stringContaining('Unsupported protocol version: 1999-01-01'),
  });
});

test('web pages from an allowed origin can call the server', async ({ upstream: { baseUrl } }) => {
  const open = await startHttp({ baseUrl, allowedOrigins: ['app.example'] });
  const connection = openConnection(open.origin);
  const origin = 'https://app.example';
  const preflight = await connection.send({
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers).toMatchObject({ 'access-control-allow-origin': origin });
  const called = await connection.send({ headers: { ...createValidHeaders(goodKey), origin }, body: whoami });
  expect(called.headers).toMatchObject({ 'access-control-allow-origin': origin });
  const foreign = await connection.send({ method: 'OPTIONS', headers: { origin: 'https://evil.example' } });
  expect(foreign.status).toBe(403);
  expect(JSON.parse(open.logged.at(-1) ?? '')).toMatchObject({ level: 'info', origin: 'https://evil.example' });
  await connection.close();
  await open.close();
});

const get = (server: HttpServer, path: string, host: string) =>
  openConnection(server.origin).send({ method: 'GET', path, headers: { host } });

test.for(['/healthz', '/readyz'])(
  'the path %s of the HTTP server accepts IP addresses and loopback names as Host, but no other names',
  async (path, { server }) => {
    for (const host of ['10.1.2.3:3000', '127.0.0.1', '[::1]:3000', '[2001:db8::1]', 'localhost:3000']) {
      expect((await get(server, path, host)).status, host).toBe(200);
    }
    for (const host of ['evil.example', '10.1.2.3.evil.example', 'localhost.evil.example:3000']) {
      expect((await get(server, path, host)).status, host).toBe(403);
    }
  },
);

test("a web page from the server's own origin can call the server only on a loopback address", async ({
  upstream: { baseUrl },
  server,
  onTestFinished,
}) => {
  const open = await startHttp({ baseUrl, host: '0.0.0.0', allowedHosts: ['127.0.0.1', 'ads.example'] });
  onTestFinished(() => open.close(0));
  const statusOf = async ({ origin, port }: HttpServer, from: string, host = `127.0.0.1:${port}`) => {
    const headers = { ...createValidHeaders(), host, origin: from };
    return (await openConnection(origin).send({ headers, body: JSON.stringify(createToolCall('whoami')) })).status;
  };
  for (const name of ['127.0.0.1', 'localhost', '[::1]']) {
    const ownHost = `${name}:${server.port}`;
    expect(await statusOf(server, `http://${ownHost}`, ownHost), name).toBe(200);
    expect(await statusOf(server, `https://${ownHost}`, ownHost), name).toBe(403);
    expect(await statusOf(server, `http://${name}:${server.port + 1}`, ownHost), name).toBe(403);
    expect(await statusOf(server, `http://${name}`, ownHost), name).toBe(403);
  }
  expect(await statusOf(server, 'null')).toBe(403);
  expect(await statusOf(server, 'http://evil.example', 'evil.example')).toBe(403);
  expect(await statusOf(open, `http://127.0.0.1:${open.port}`)).toBe(403);
  expect(await statusOf(open, 'http://ads.example', 'ads.example')).toBe(403);
});
