import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAnswers, type ListenOptions, listen } from '../../../src/serve/http/server.ts';
import { gateOf } from '../../support/gate.ts';
import { bareSocket, until } from '../../support/http.ts';

type Handler = Parameters<typeof listen>[0];

async function serve(handler: Handler, options: Partial<ListenOptions> = {}) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0, ...options });
  onTestFinished(() => listener.close(0));
  const port = Number(new URL(listener.address).port);
  const open = () => {
    const connection = bareSocket(port);
    onTestFinished(() => void connection.socket.destroy());
    return { ...connection, connected: once(connection.socket, 'connect') };
  };
  return { open, close: listener.close };
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
const hello: Handler = () => new Response('hello');
/** More than the system's buffers on the way hold. */
const large = 'x'.repeat(16 * 1024 * 1024);

const answered = async ({ socket, received }: ReturnType<typeof bareSocket>, path?: string) => {
  const before = received().length;
  socket.write(get(path));
  await until(() => received().length > before);
};

const isClosed = ({ socket }: { socket: Socket }) => socket.destroyed || socket.closed;

describe('requests pipelined on one connection', () => {
  test('are answered one at a time, in order', async () => {
    const gates = [gateOf(), gateOf(), gateOf()];
    const begun: string[] = [];
    const { open } = await serve(async ({ url }) => {
      const { pathname } = new URL(url);
      begun.push(pathname);
      await gates[begun.length - 1]?.opened;
      return new Response(`answer of ${pathname}.`);
    });
    const { socket, received } = open();
    socket.write(['/a', '/b', '/c'].map(get).join(''));
    for (const [index, path] of ['/a', '/b', '/c'].entries()) {
      await until(() => begun.length === index + 1);
      expect(begun.at(-1)).toBe(path);
      gates[index]?.open();
      await until(() => received().includes(`answer of ${path}.`));
    }
    expect(received().match(/answer of \/.\./g)).toEqual(['answer of /a.', 'answer of /b.', 'answer of /c.']);
  });

  test('are not handled while the previous answer is unread', async () => {
    let begun = 0;
    const { open } = await serve(() => {
      begun++;
      return new Response(large);
    });
    const { socket, received } = open();
    socket.pause();
    socket.write(get().repeat(3));
    await answered(open());
    await answered(open());
    expect(begun).toBe(3);
    socket.resume();
    await until(() => received().length > 3 * large.length);
    expect(begun).toBe(5);
  });

  test('end the connection when there are too many', async () => {
    const { open } = await serve(() => new Promise<Response>(() => {}), { bounds: { maxPipelined: 3 } });
    const within = open();
    within.socket.write(get().repeat(3));
    const beyond = open();
    beyond.socket.write(get().repeat(4));
    await beyond.closed;
    expect(isClosed(within)).toBe(false);
  });
});

describe('answers that nobody reads', () => {
  test('are bounded in all: the slowest reader is closed', async () => {
    const { open } = await serve(({ url }) => new Response(url.endsWith('/large') ? large : 'small'), {
      answers: createAnswers(large.length * 1.5),
    });
    const [first, second] = [open(), open()];
    for (const { socket } of [first, second]) {
      socket.pause();
      socket.write(get('/large'));
      await answered(open());
      await answered(open());
    }
    first.socket.resume();
    expect((await first.closed).length).toBeLessThan(large.length);
    second.socket.resume();
    await until(() => second.received().length > large.length);
  });

  test('are kept for a while only', async () => {
    const handler: Handler = ({ url }) => new Response(url.endsWith('/large') ? large : 'small');
    const { open } = await serve(handler, { bounds: { unreadMs: 50, maxConnections: 1 } });
    const { socket, closed } = open();
    socket.pause();
    socket.write(get('/large'));
    // There is room for another as soon as that one is closed.
    let answer = '';
    while (!answer.endsWith('small')) {
      const other = open();
      other.socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
      answer = await other.closed;
    }
    socket.resume();
    expect((await closed).length).toBeLessThan(large.length);
  });
});

describe('past the bound of connections', () => {
  const bounds = { maxConnections: 3 };

  test('the longest idle are closed first, silent ones included', async () => {
    const { open } = await serve(hello, { bounds });
    const silent = open();
    await silent.connected;
    const [used, usedLater] = [open(), open()];
    await answered(used);
    await answered(usedLater);
    await answered(open());
    await silent.closed;
    await answered(open());
    await used.closed;
    expect(isClosed(usedLater)).toBe(false);
    await answered(usedLater);
  });

  test('while none rests, the one makes room whose request has been coming in longest', async () => {
    const gate = gateOf();
    let begun = 0;
    const { open } = await serve(
      async (request) => {
        begun++;
        await request.text();
        if (request.method === 'GET') await gate.opened;
        return new Response('at last');
      },
      { bounds },
    );
    const [whole, half, halfLater] = [open(), open(), open()];
    whole.socket.write(get());
    await until(() => begun === 1);
    for (const { socket } of [half, halfLater]) {
      const before = begun;
      socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nha');
      await until(() => begun > before);
    }
    const late = open();
    await half.closed;
    halfLater.socket.write('lf!');
    await until(() => halfLater.received().endsWith('at last'));
    gate.open();
    await until(() => whole.received().endsWith('at last'));
    await answered(late);
  });

  test('none that waits for its answer is closed; while all wait, the new one is', async () => {
    const gate = gateOf();
    let begun = 0;
    const handler = () => {
      begun++;
      return gate.opened.then(() => new Response('at last'));
    };
    const { open } = await serve(handler, { bounds });
    const waiting = [open(), open(), open()];
    for (const { socket } of waiting) socket.write(get());
    await until(() => begun === 3);
    const late = open();
    late.socket.write(get());
    expect(await late.closed).toBe('');
    gate.open();
    for (const { received } of waiting) await until(() => received().endsWith('at last'));
    await answered(open());
  });
});

test('a server that ends closes connections that rest, used or not, and waits for answers', async () => {
  const gate = gateOf();
  let begun = 0;
  const { open, close } = await serve(async ({ url }) => {
    if (!url.endsWith('/later')) return new Response('at once');
    begun++;
    await gate.opened;
    return new Response('at last');
  });
  const [silent, used, waiting] = [open(), open(), open()];
  await silent.connected;
  await answered(used);
  waiting.socket.write(get('/later'));
  await until(() => begun === 1);
  const closed = close(600_000);
  expect(await silent.closed).toBe('');
  await used.closed;
  expect(isClosed(waiting)).toBe(false);
  gate.open();
  expect(await waiting.closed).toMatch(/at last$/);
  await closed;
});

describe('a request that does not come in', () => {
  const part = {
    nothing: ['', ''],
    'half a head': ['POST /mcp HTTP/1.1\r\nHost: localhost\r\n', 'X-More: of it\r\n'],
    'half a body': ['POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{"jsonrpc"', ' '],
  } as const;
  test.each(Object.entries(part))('is not waited for: %s', async (_, [start, more]) => {
    const { open } = await serve(async (request) => new Response(await request.text().catch(() => '')), {
      requestMs: 100,
    });
    const { socket, closed } = open();
    socket.write(start);
    // Dripping on does not buy time.
    const drip = setInterval(() => more && socket.write(more), 20);
    expect(await closed.finally(() => clearInterval(drip))).toMatch(/^HTTP\/1\.1 408/);
  });
});
