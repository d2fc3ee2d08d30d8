import { expect, test } from 'vitest';
import { bareSocket, callOf, goodHeaders, keepAlive } from '../../support/http.ts';
import { serveHttp } from '../../support/process.ts';

test('unread batches of made-up keys leave a server with a small heap alive', async () => {
  const server = await serveHttp(['--base-url', 'https://api.example.com'], {
    NODE_OPTIONS: '--max-old-space-size=64',
  });
  const list = { jsonrpc: '2.0', method: 'tools/list' };
  const body = JSON.stringify(Array.from({ length: 10 }, (_, id) => ({ ...list, id })));
  const head = Object.entries({ ...goodHeaders(), host: 'localhost', 'content-length': String(body.length) });
  const request = `POST /mcp HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n${body}`;
  // 400 MB of answers are asked for.
  const sockets = Array.from({ length: 40 }, () => {
    const { socket } = bareSocket(server.port);
    socket.pause();
    socket.write(request.repeat(80));
    return socket;
  });
  const brisk = keepAlive(server.origin);
  for (let call = 0; call < 5; call++) {
    const { json } = await brisk.send({ headers: goodHeaders(), body: JSON.stringify(callOf('whoami')) });
    expect(json).toMatchObject({ result: { isError: true } });
  }
  for (const socket of sockets) socket.destroy();
  await brisk.close();
  expect((await server.close()).code).toBe(0);
});
