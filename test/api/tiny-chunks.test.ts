import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Behaviour, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { startServer, type TestServer } from '../support/server.ts';

let upstream: Upstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream();
  server = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_chunks' } });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What is sent at once: ten thousand chunks of one space. */
const piece = Buffer.from('1\r\n \r\n'.repeat(10_000));

/** Three million bytes, each in a chunk of its own; the end of the answer once it is let. */
function dribbling() {
  const sent = gateOf();
  const end = gateOf();
  const behaviour: Behaviour = (_, { socket }) => {
    if (socket === null) return;
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    let pieces = 0;
    const more = () => {
      while (pieces++ < 300) if (!socket.write(piece)) return void socket.once('drain', more);
      sent.open();
      void end.opened.then(() => socket.end('2\r\n{}\r\n0\r\n\r\n'));
    };
    more();
  };
  return { behaviour, sent: sent.opened, end: end.open };
}

test('an answer in chunks of one byte takes memory by its bytes and not by its chunks', async () => {
  const { behaviour, sent, end } = dribbling();
  upstream.does(behaviour);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const answer = server.call('get_account');
  await sent;
  collectGarbage();
  const held = process.memoryUsage().heapUsed - before;
  end();
  await answer;
  // As objects of their own, two million chunks or more take over 200 MB.
  expect(held).toBeLessThan(64 * 1024 * 1024);
});
