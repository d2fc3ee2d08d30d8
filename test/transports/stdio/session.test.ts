import { setTimeout as delay } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js';
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { describe, expect, test } from 'vitest';
import { allTools } from '../../../src/board/board.ts';
import { protocolVersionKey } from '../../../src/mcp/protocol.ts';
import { waitFor, waitUntil } from '../../support/deadline.ts';
import { delays, respondWhenOpen } from '../../support/faulty-upstream.ts';
import { createGate } from '../../support/gate.ts';
import { envelope, initialize, openSession, request } from './session.ts';

const whoami = (id: number) => request(id, 'tools/call', { name: 'whoami', arguments: {} });
const ping = (id: number | string = 1) => request(id, 'ping');

describe('Messages over stdio', () => {
  test('the server reads stdio messages that arrive in chunks of any size', async () => {
    const { stdin, lines, ended } = await openSession();
    for (const byte of Buffer.from(`${JSON.stringify(ping('Grüße 👋🏽'))}\r\n`)) stdin.write(Buffer.from([byte]));
    stdin.write(`\n${JSON.stringify(ping(1))}\n${JSON.stringify(ping(2))}\n`);
    stdin.end(JSON.stringify(ping(3)));
    await waitFor(ended, 'the session to end');
    expect(lines).toMatchObject(['Grüße 👋🏽', 1, 2, 3].map((id) => ({ id, result: {} })));
  });

  test.each([
    ['not json', -32_700, null],
    ['{"jsonrpc":"2.0"', -32_700, null],
    ['42', -32_600, null],
    ['{"jsonrpc":"1.0","id":7,"method":"ping"}', -32_600, 7],
    ['{"jsonrpc":"2.0","id":"a"}', -32_600, 'a'],
    ['{"jsonrpc":"2.0","id":[[7]],"method":"ping"}', -32_600, null],
    ['[{"jsonrpc":"2.0","id":7,"method":"ping"}]', -32_600, null],
  ])('the invalid stdio message %s gets an error response, and the session continues', async (line, code, id) => {
    const { stdin, lines, logged, ended } = await openSession();
    stdin.end(`${line}\n${JSON.stringify(ping())}\n${line}`);
    await waitFor(ended, 'the session to end');
    const refused = { jsonrpc: '2.0', id, error: { code } };
    expect(lines).toMatchObject([refused, { id: 1, result: {} }, refused]);
    expect(logged.filter((text) => text.includes('stdio'))).toHaveLength(2);
  });

  test.for([
    ['2025-11-25', { id: 2 ** 60 }],
    ['2025-11-25', { id: 1.5 }],
    ['2025-11-25', { id: null }],
    ['2025-11-25', { extra: 1 }],
    ['2026-07-28', { id: 1.5 }],
    ['2026-07-28', { extra: 1 }],
  ] as const)(
    'a stdio request with an invalid member is answered with an error (revision %s, member %j)',
    async ([revision, members]) => {
      const isLatest = revision === '2026-07-28';
      const { send, lines, stdin, ended } = await openSession({ revision: isLatest ? '' : revision });
      const params = { name: 'whoami', ...(isLatest && { _meta: envelope }) };
      send({ ...request(7, 'tools/call', params), ...members });
      stdin.end();
      await ended;
      expect(lines).toMatchObject([{ error: { code: -32_600, message: expect.stringMatching(/^Invalid request: /) } }]);
    },
  );

  test('a tool call with the parameter task runs as an ordinary call', async () => {
    const { ask } = await openSession();
    const { result } = await ask(request(2, 'tools/call', { name: 'whoami', task: { ttl: 1000 } }));
    expect(result.isError).toBeFalsy();
  });

  test.for(['2025-11-25', '2026-07-28'])(
    'the error about a resource whose URI contains the API key does not repeat the key (revision %s)',
    async (revision) => {
      const isLatest = revision === '2026-07-28';
      const { ask, logged } = await openSession({ revision: isLatest ? '' : revision });
      const params = { uri: 'x:svc_live_one', ...(isLatest && { _meta: envelope }) };
      const response = await ask(request(2, 'resources/read', params));
      expect(response.error.message).toContain('A URI must not contain the API key.');
      expect(JSON.stringify([response, logged])).not.toContain('svc_live_one');
    },
  );

  test('a stdio message larger than 10 MB is rejected', async () => {
    const { stdin, lines } = await openSession();
    const piece = Buffer.alloc(1024 * 1024, 'x');
    for (let megabyte = 0; megabyte < 11; megabyte++) stdin.write(piece);
    stdin.write(`\n${JSON.stringify(ping())}\n`);
    await waitUntil(() => lines.length === 2);
    const refused = { code: -32_700, message: expect.stringContaining('10 MB') };
    expect(lines).toMatchObject([{ error: refused }, { id: 1, result: {} }]);
  });
});

describe('The protocol revision of a stdio session', () => {
  const modern = (id: number, method: string) => request(id, method, { _meta: envelope });

  test('a stdio client that starts with protocol revision 2026-07-28 must keep to this revision', async () => {
    // The server has its own copy of this SDK constant, so that it need not load the SDK at startup.
    expect([protocolVersionKey in envelope, protocolVersionKey]).toEqual([true, PROTOCOL_VERSION_META_KEY]);
    const { ask } = await openSession({ revision: '' });
    const first = (await ask(modern(1, 'tools/list'))).result?.tools;
    expect(first).toHaveLength(allTools.length);
    expect((await ask(modern(2, 'tools/list'))).result?.tools).toEqual(first);
    expect(await ask(request(3, 'tools/list'))).toHaveProperty('error');
  });

  test('a stdio client can choose an earlier protocol revision after it called server/discover', async () => {
    const { ask } = await openSession({ revision: '' });
    const supported = { result: { supportedVersions: expect.arrayContaining(['2026-07-28']) } };
    expect(await ask(modern(7, 'server/discover'))).toMatchObject(supported);
    expect(await ask(modern(8, 'server/discover'))).toHaveProperty('result');
    const opened = { result: { protocolVersion: LATEST_PROTOCOL_VERSION } };
    expect(await ask(initialize(LATEST_PROTOCOL_VERSION))).toMatchObject(opened);
  });
});

describe('The limit of concurrent calls over stdio', () => {
  test('a stdio session runs 32 calls at a time, queues 256 and rejects further calls as busy', async () => {
    const gate = createGate();
    const { upstream, send, lines } = await openSession({ behaviour: respondWhenOpen(gate) });
    send(...Array.from({ length: 300 }, (_, id) => whoami(id + 1)));
    await waitUntil(() => lines.length === 300 - 32 - 256);
    for (const line of lines)
      expect(line).toMatchObject({ result: { _meta: { 'ad-library/error': { kind: 'busy' } } } });
    await upstream.waitForRequests(32);
    gate.open();
    await waitUntil(() => lines.length === 300);
    expect(lines.filter(({ result }) => result?.isError !== true)).toHaveLength(288);
  });

  test('the time for which a stdio call waits for a slot counts toward the timeout of the call', async () => {
    const gate = createGate();
    let late = 0;
    const now = () => Date.now() + late;
    const { upstream, send, lines } = await openSession({ behaviour: respondWhenOpen(gate), now });
    send(...Array.from({ length: 33 }, (_, id) => whoami(id + 1)));
    await upstream.waitForRequests(32);
    upstream.respondWith(delays.hangs);
    late = 45_000;
    gate.open();
    await waitUntil(() => lines.length === 33);
    expect(lines.at(-1)).toMatchObject({ id: 33, result: { _meta: { 'ad-library/error': { kind: 'timeout' } } } });
  });

  test('the server stops reading its standard input while the client does not read the output', async () => {
    const { send, stdin, stdout, ask, lines } = await openSession();
    // The first tool list requests the filter description from the API.
    await ask(request(0, 'tools/list'));
    lines.length = 0;
    stdout.pause();
    const lists = Array.from({ length: 200 }, (_, id) => request(id + 1, 'tools/list'));
    send(...lists);
    // After 500 event-loop turns, the server has written all that it can write without a reader.
    for (let eventLoopTurn = 0; eventLoopTurn < 500; eventLoopTurn++)
      await new Promise((resolve) => setImmediate(resolve));
    const bufferedBytes = stdout.readableLength + stdout.writableLength;
    stdout.resume();
    stdin.end();
    await waitUntil(() => lines.length === lists.length);
    expect(bufferedBytes).toBeLessThan(JSON.stringify(lines).length / 10);
  });
});

test('cancelled calls leave no pending promises behind in a stdio session', async () => {
  const { upstream, send, ask } = await openSession({ behaviour: delays.hangs });
  const cancelCalls = async (from: number, count: number) => {
    for (let id = from; id < from + count; id++) {
      const before = upstream.requests.length;
      send(request(id, 'tools/call', { name: 'get_account', arguments: {} }));
      await waitUntil(() => upstream.requests.length > before);
      send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
      expect(await upstream.requests.at(-1)?.waitForAbort()).toBe(true);
    }
    upstream.requests.length = 0;
    await ask(ping(from));
  };
  await cancelCalls(1000, 40);
  const before = queryObjects(Promise, { format: 'count' });
  await cancelCalls(3000, 100);
  expect(queryObjects(Promise, { format: 'count' }) - before).toBeLessThan(50);
});

test('the server sends large files over stdio only as fast as the client reads them', async () => {
  const { send, stdout, ask, lines } = await openSession();
  const sql = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000)
    SELECT printf('%.*c', 1000, 'a') AS t FROM n`;
  const exported = await ask(request(1, 'tools/call', { name: 'export_ads', arguments: { sql } }));
  const { uri, bytes } = Object(exported.result?.structuredContent) as { uri: string; bytes: number };
  lines.length = 0;
  stdout.pause();
  send(...Array.from({ length: 12 }, (_, id) => request(id + 10, 'resources/read', { uri })));
  await waitUntil(() => stdout.readableLength > 0);
  await delay(200);
  const bufferedBytes = stdout.readableLength + stdout.writableLength;
  stdout.resume();
  await waitUntil(() => lines.length === 12);
  expect(bufferedBytes).toBeLessThan(6 * bytes);
  for (const { result } of lines) expect(result?.contents?.[0]?.text).toHaveLength(bytes - 2);
});

describe('The end of standard input in a stdio session', () => {
  test.for([
    ['2025-11-25', {}],
    ['2026-07-28', { _meta: envelope }],
  ] as const)(
    'all requests of a stdio session (protocol revision %s) get a response although standard input closes',
    async ([revision, meta]) => {
      // A tool list waits for the filter description of a local API.
      const slow = () => delay(200, { status: 404, headers: { get: () => null }, text: async () => '' });
      const isModern = revision === '2026-07-28';
      const { stdin, lines, ended } = await openSession({ fetch: slow, ...(isModern && { revision: '' }) });
      const calls = ['query_ads', 'view_ads', 'get_credits'].map(
        (name) => ['tools/call', { name, arguments: {} }] as const,
      );
      const requests = [['tools/list'], ...calls, ['prompts/list'], ['resources/list'], ...calls] as const;
      stdin.end(
        requests.map(([method, params], at) => JSON.stringify(request(at, method, { ...params, ...meta }))).join('\n'),
      );
      await waitFor(ended, 'the session to end');
      expect(new Set(lines.map(({ id }) => id))).toEqual(new Set(requests.keys()));
    },
  );

  test('a paid stdio call gets its response after standard input closes, even after the shutdown time (drainMs)', async () => {
    const gate = createGate();
    const { upstream, send, stdin, lines, ended } = await openSession({
      behaviour: respondWhenOpen(gate),
      drainMs: 50,
    });
    send(request(1, 'tools/call', { name: 'search_ads', arguments: {} }));
    await upstream.waitForRequests(1);
    stdin.end();
    await delay(300);
    gate.open();
    await waitFor(ended, 'the session to end');
    expect(lines).toMatchObject([{ id: 1, result: { content: [{ type: 'text' }] } }]);
  });

  test('a stdio call without an API response times out although standard input has closed', async () => {
    const settings = { timeoutMs: 500 };
    const { send, stdin, lines, ended } = await openSession({ behaviour: delays.hangs, drainMs: 60_000, settings });
    send(request(1, 'tools/call', { name: 'search_ads', arguments: {} }));
    stdin.end();
    await waitFor(ended, 'the session to end');
    expect(lines).toMatchObject([{ id: 1, result: { _meta: { 'ad-library/error': { kind: 'timeout' } } } }]);
  });

  test('a stop signal ends a stdio session after the shutdown time (drainMs) and aborts the running calls', async () => {
    const { upstream, send, stdin, stop, lines, ended } = await openSession({ behaviour: delays.hangs, drainMs: 200 });
    send(whoami(1));
    stdin.end();
    await upstream.waitForRequests(1);
    stop();
    await waitFor(ended, 'the session to end');
    expect(await upstream.requests[0]?.waitForAbort()).toBe(true);
    expect(lines).toEqual([]);
  });

  test('a stdio session ends immediately when its output pipe closes', async () => {
    const { upstream, send, stdout, ended } = await openSession({ behaviour: delays.hangs, drainMs: 600_000 });
    send(whoami(1));
    await upstream.waitForRequests(1);
    stdout.destroy(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }));
    await waitFor(ended, 'the session to end');
    expect(await upstream.requests[0]?.waitForAbort()).toBe(true);
  });
});
