import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { ad, json, type Upstream } from './faulty-upstream.ts';
import { listenOnLoopback } from './loopback.ts';
import type { TestServer } from './server.ts';
import { deriveUuid } from './uuid-of.ts';

/** What a host does with a request; bytes are sent as they are. */
export type PictureAnswer = Uint8Array | ((response: ServerResponse) => void);

/** A host of pictures over real HTTP, which does what a test tells it. */
export async function startPictureHost() {
  const answers: PictureAnswer[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  let [sent, open] = [0, 0];
  const server = createServer((request, response) => {
    const { url: path = '', headers } = request;
    requests.push({ path, headers });
    open++;
    response.on('error', () => {});
    response.on('close', () => {
      open--;
      sent += request.socket.bytesWritten;
    });
    const answer = answers[Number.parseInt(path.slice(1), 10)];
    if (typeof answer === 'function') answer(response);
    else response.writeHead(answer ? 200 : 404, { 'content-type': 'image/jpeg' }).end(answer);
  });
  const { port, close } = await listenOnLoopback(server);
  return {
    host: { host: '127.0.0.1', port },
    serve: (answer: PictureAnswer) => `http://127.0.0.1:${port}/${answers.push(answer) - 1}`,
    requests,
    /** Bytes that the network took, once the requests have ended. */
    sent: () => sent,
    /** Requests that have not ended. */
    open: () => open,
    close,
  };
}

interface ServerAndUpstream {
  server: Pick<TestServer, 'call'>;
  upstream: Pick<Upstream, 'respondWith'>;
}
let adCount = 0;
/** Lets a search bring ads with these fields, and no pictures but theirs. Returns their ids. */
export async function loadAds({ server, upstream }: ServerAndUpstream, ...fields: object[]): Promise<string[]> {
  const items = fields.map((field) => ({
    ...ad,
    id: deriveUuid(`pictured ${adCount++}`),
    media: [],
    cards: [],
    ...field,
  }));
  upstream.respondWith(json({ items, cursor: null, hasMore: false }));
  await server.call('search_ads', { fresh: true });
  return items.map(({ id }) => id);
}

/** Sends the same bytes over and over, as long as somebody reads them. */
export const streamBytes =
  (bytes: number, headers: Record<string, string | number> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(200, headers);
    const part = Buffer.alloc(64 * 1024, 0xff);
    let left = bytes;
    const more = () => {
      while (left > 0 && !response.destroyed) {
        left -= part.length;
        if (!response.write(part)) return void response.once('drain', more);
      }
      response.end();
    };
    more();
  };
