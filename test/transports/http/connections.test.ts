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
    return { ...connection, connected: once(connection.socket, 'connect') };
  };
  return { open, close: listener.close };
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
/** More than the system's buffers on the way hold. */
const large = 'x'.repeat(16 * 1024 * 1024);

const answered = async ({ socket, received }: ReturnType<typeof openRawSocket>, path?: string) => {
  const before = received().length;
  socket.write(get(path));
  await waitUntil(() => received().length > before);
};

const isClosed = ({ socket }: { socket: Socket }) => socket.destroyed || socket.closed;

/** Answers `/later` when the gate opens, and anything else at once. */
function gated() {
  const gate = createGate();
  const begun: string[] = [];
  const handler: Handler = async ({ url }) => {
    const { pathname } = new URL(url);
    begun.push(pathname);
    if (pathname === '/later') await gate.opened;
    return new Response(`answer of ${pathname}.`);
  };
  return { gate, begun, handler };
}

test('a request that is sent ahead waits for the answer before it, and more than one end the connection', async () => {
  const { gate, begun, handler } = gated();
  const { open } = await serve(handler);
  const within = open();
  within.socket.write(get('/later') + get('/next'));
  const beyond = open();
  beyond.socket.write(get('/later') + get('/a') + get('/b'));
  await beyond.closed;
  expect(begun).not.toContain('/next');
  gate.open();
  await waitUntil(() => within.received().endsWith('answer of /next.'));
  expect(within.received().match(/answer of \/\w+/g)).toEqual(['answer of /later', 'answer of /next']);
  expect(begun).not.toContain('/a');
});

test('an answer that nobody reads ends its connection, and nothing is begun behind it', async () => {
  let begun = 0;
  const handler: Handler = ({ url }) => new Response(url.endsWith('/large') ? `${++begun}${large}` : 'small');
  const { open } = await serve(handler, { bounds: { maxUnreadMs: 300, maxConnections: 1 } });
  const { socket, closed } = open();
  socket.pause();
  socket.write(get('/large').repeat(2));
  await waitUntil(() => begun === 1);
  // There is room for another as soon as that one is closed.
  let answer = '';
  while (!answer.endsWith('small')) {
    const other = open();
    other.socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    answer = await other.closed;
  }
  socket.resume();
  expect((await closed).length).toBeLessThan(large.length);
  expect(begun).toBe(1);
});

describe('past the bound of connections', () => {
  test('idle ones are closed, and where all wait for answers, the new one', async () => {
    const { gate, begun, handler } = gated();
    const { open } = await serve(handler, { bounds: { maxConnections: 3 } });
    const silent = open();
    await silent.connected;
    const used = open();
    await answered(used);
    const waiting = [open()];
    for (let count = 1; count <= 3; count++) {
      const last = waiting.at(-1);
      last?.socket.write(get('/later'));
      await waitUntil(() => begun.filter((path) => path === '/later').length === count);
      if (count < 3) waiting.push(open());
    }
    await silent.closed;
    await used.closed;
    const late = open();
    late.socket.write(get());
    expect(await late.closed).toBe('');
    gate.open();
    for (const { received } of waiting) await waitUntil(() => received().endsWith('answer of /later.'));
    await answered(open());
  });

  test('one address has a quarter, and takes nothing from another', async () => {
    const { begun, handler } = gated();
    const addressOf = (remote = '') => (remote.endsWith('127.0.0.9') ? undefined : remote);
    const { open } = await serve(handler, { getPeerAddress: addressOf, bounds: { maxConnections: 8 } });
    const other = open('127.0.0.2');
    await answered(other);
    const greedy = [open(), open()];
    for (const { socket } of greedy) socket.write(get('/later'));
    await waitUntil(() => begun.filter((path) => path === '/later').length === 2);
    expect(await open().closed).toBe('');
    const proxied = Array.from({ length: 4 }, () => open('127.0.0.9'));
    for (const one of proxied) await answered(one);
    for (const one of [other, ...proxied]) await answered(one);
    expect([...greedy, other, ...proxied].some(isClosed)).toBe(false);
  });
});

test('a server that ends closes connections that rest, used or not, and waits for answers', async () => {
  const { gate, begun, handler } = gated();
  const { open, close } = await serve(handler);
  const [silent, used, waiting] = [open(), open(), open()];
  await silent.connected;
  await answered(used);
  waiting.socket.write(get('/later'));
  await waitUntil(() => begun.includes('/later'));
  const closed = close(600_000);
  expect(await silent.closed).toBe('');
  await used.closed;
  expect(isClosed(waiting)).toBe(false);
  gate.open();
  expect(await waiting.closed).toMatch(/answer of \/later\.$/);
  await closed;
});

test.each([
  ['nothing', '', ''],
  ['half a head', 'POST /mcp HTTP/1.1\r\nHost: localhost\r\n', 'X-More: of it\r\n'],
  ['half a body', 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{"jsonrpc"', ' '],
])('a request of which %s comes in is not waited for', async (_, start, more) => {
  const { open } = await serve(async (request) => new Response(await request.text().catch(() => '')), {
    requestTimeoutMs: 100,
  });
  const { socket, closed } = open();
  socket.write(start);
  // Dripping on does not buy time.
  const drip = setInterval(() => more && socket.write(more), 20);
  expect(await closed.finally(() => clearInterval(drip))).toMatch(/^HTTP\/1\.1 408/);
});
