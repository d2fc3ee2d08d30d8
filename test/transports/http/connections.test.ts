import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ListenOptions, listen } from '../../../src/transports/http/server.ts';
import { waitUntil } from '../../support/deadline.ts';
import { createGate } from '../../support/gate.ts';
import { openRawSocket } from '../../support/http.ts';

type Handler = Parameters<typeof listen>[0];

async function serve(handler: Handler, options: Partial<ListenOptions> = {}) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0, ...options });
  onTestFinished(() => listener.close(0));
  const port = Number(new URL(listener.url).port);
  const open = (from?: string) => {
    const connection = openRawSocket(port, from);
    onTestFinished(() => void connection.socket.destroy());
    return Object.assign(connection, { connected: once(connection.socket, 'connect') });
  };
  return { open, close: listener.close };
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
/** A response body that does not fit into the network buffers of the operating system. */
const large = 'x'.repeat(16 * 1024 * 1024);

/** Sends a request and waits for the start of the response. */
const exchange = async ({ socket, received }: ReturnType<typeof openRawSocket>, path?: string) => {
  const before = received().length;
  socket.write(get(path));
  await waitUntil(() => received().length > before);
};

const isClosed = ({ socket }: { socket: Socket }) => socket.destroyed || socket.closed;

/** Creates a handler that responds to `/later` when the gate opens, and to all other paths immediately. */
function createGatedHandler() {
  const gate = createGate();
  const startedPaths: string[] = [];
  const handler: Handler = async ({ url }) => {
    const { pathname } = new URL(url);
    startedPaths.push(pathname);
    if (pathname === '/later') await gate.opened;
    return new Response(`answer of ${pathname}.`);
  };
  return { gate, startedPaths, handler };
}

test('an HTTP connection is closed if more than one pipelined request waits on it', async () => {
  const { gate, startedPaths, handler } = createGatedHandler();
  const { open } = await serve(handler);
  const withOneAhead = open();
  withOneAhead.socket.write(get('/later') + get('/next'));
  const withTwoAhead = open();
  withTwoAhead.socket.write(get('/later') + get('/a') + get('/b'));
  await withTwoAhead.closed;
  expect(startedPaths).not.toContain('/next');
  gate.open();
  await waitUntil(() => withOneAhead.received().endsWith('answer of /next.'));
  expect(withOneAhead.received().match(/answer of \/\w+/g)).toEqual(['answer of /later', 'answer of /next']);
  expect(startedPaths).not.toContain('/a');
});

test('the server ignores a pipelined HTTP request if the previous response closes the connection', async () => {
  const startedPaths: string[] = [];
  const { open } = await serve(({ url }) => {
    startedPaths.push(new URL(url).pathname);
    return new Response('last answer.', { headers: { connection: 'close' } });
  });
  const { socket, closed } = open();
  socket.write(get('/first') + get('/next'));
  expect(await closed).toMatch(/last answer\.$/);
  expect(startedPaths).toEqual(['/first']);
});

test('an HTTP connection is closed if its client does not read the response', async () => {
  let startedRequests = 0;
  const handler: Handler = ({ url }) => new Response(url.endsWith('/large') ? `${++startedRequests}${large}` : 'small');
  const { open } = await serve(handler, { connectionLimits: { maxResponseReadMs: 300, maxConnections: 1 } });
  const { socket, closed } = open();
  socket.pause();
  socket.write(get('/large').repeat(2));
  await waitUntil(() => startedRequests === 1);
  // The server accepts another connection as soon as the first one is closed.
  let answer = '';
  while (!answer.endsWith('small')) {
    const otherConnection = open();
    otherConnection.socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    answer = await otherConnection.closed;
  }
  socket.resume();
  expect((await closed).length).toBeLessThan(large.length);
  expect(startedRequests).toBe(1);
});

describe('The connection limit', () => {
  test('the server closes idle connections when its connection limit is reached', async () => {
    const { gate, startedPaths, handler } = createGatedHandler();
    const { open } = await serve(handler, { connectionLimits: { maxConnections: 3 } });
    const silent = open();
    await silent.connected;
    const used = open();
    await exchange(used);
    const waiting = [open()];
    for (let count = 1; count <= 3; count++) {
      const last = waiting.at(-1);
      last?.socket.write(get('/later'));
      await waitUntil(() => startedPaths.filter((path) => path === '/later').length === count);
      if (count < 3) waiting.push(open());
    }
    await silent.closed;
    await used.closed;
    const late = open();
    late.socket.write(get());
    expect(await late.closed).toBe('');
    gate.open();
    for (const { received } of waiting) await waitUntil(() => received().endsWith('answer of /later.'));
    await exchange(open());
  });

  test('the server reports a connection as refused if it closes the connection before the first request has arrived', async () => {
    const { handler } = createGatedHandler();
    const refusedAddresses: unknown[] = [];
    const { open } = await serve(handler, {
      getPeerAddress: (remote) => remote,
      connectionLimits: { maxConnections: 8 },
      onConnectionRefused: (address) => refusedAddresses.push(address),
    });
    const used = open();
    await exchange(used);
    const [unused, newer] = [open(), open()];
    await used.closed;
    await newer.connected;
    // The server closed a connection whose client already has its response. No client misses a response.
    expect(refusedAddresses).toEqual([]);
    await exchange(newer);
    const newest = open();
    expect(await unused.closed).toBe('');
    await exchange(newest);
    expect(refusedAddresses).toEqual(['127.0.0.1']);
  });

  test('one IP address can use at most a quarter of all connections to the server', async () => {
    const { startedPaths, handler } = createGatedHandler();
    const addressOf = (remote = '') => (remote.endsWith('127.0.0.9') ? undefined : remote);
    const refusedAddresses: unknown[] = [];
    const { open } = await serve(handler, {
      getPeerAddress: addressOf,
      connectionLimits: { maxConnections: 8 },
      onConnectionRefused: (address) => refusedAddresses.push(address),
    });
    const otherConnection = open('127.0.0.2');
    await exchange(otherConnection);
    const greedy = [open(), open()];
    for (const { socket } of greedy) socket.write(get('/later'));
    await waitUntil(() => startedPaths.filter((path) => path === '/later').length === 2);
    expect(await open().closed).toBe('');
    const proxied = Array.from({ length: 4 }, () => open('127.0.0.9'));
    for (const connection of proxied) await exchange(connection);
    for (const connection of [otherConnection, ...proxied]) await exchange(connection);
    expect([...greedy, otherConnection, ...proxied].some(isClosed)).toBe(false);
    expect(refusedAddresses).toEqual(['127.0.0.1']);
  });
});

test('a server that shuts down closes idle connections immediately', async () => {
  const { gate, startedPaths, handler } = createGatedHandler();
  const { open, close } = await serve(handler);
  const [silent, used, waiting] = [open(), open(), open()];
  await silent.connected;
  await exchange(used);
  waiting.socket.write(get('/later'));
  await waitUntil(() => startedPaths.includes('/later'));
  const closed = close(600_000);
  expect(await silent.closed).toBe('');
  await used.closed;
  expect(isClosed(waiting)).toBe(false);
  gate.open();
  expect(await waiting.closed).toMatch(/answer of \/later\.$/);
  await closed;
});

test.each([
  ['sends nothing', '', ''],
  ['sends half of its headers', 'POST /mcp HTTP/1.1\r\nHost: localhost\r\n', 'X-More: of it\r\n'],
  ['sends half of its body', 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{"jsonrpc"', ' '],
])('the server responds with status 408 after the request timeout if the client %s', async (_, start, more) => {
  const { open } = await serve(async (request) => new Response(await request.text().catch(() => '')), {
    requestTimeoutMs: 100,
  });
  const { socket, closed } = open();
  socket.write(start);
  // Slowly sent bytes must not extend the timeout.
  const slowWrites = setInterval(() => more && socket.write(more), 20);
  expect(await closed.finally(() => clearInterval(slowWrites))).toMatch(/^HTTP\/1\.1 408/);
});
