import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { deriveUuid } from './derive-uuid.ts';
import { ad, json, type Upstream } from './faulty-upstream.ts';
import { listenOnLoopback } from './loopback.ts';
import type { TestServer } from './server.ts';

/** The answer to a request for a picture: bytes that are sent unchanged, or a function that writes the response. */
export type PictureAnswer = Uint8Array | ((response: ServerResponse) => void);

/** Starts a picture host over real HTTP that answers each path as the test chooses. */
export async function startPictureHost() {
  const answers: PictureAnswer[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  let [sentBytes, openRequests] = [0, 0];
  const server = createServer((request, response) => {
    const { url: path = '', headers } = request;
    requests.push({ path, headers });
    openRequests++;
    response.on('error', () => {});
    response.on('close', () => {
      openRequests--;
      sentBytes += request.socket.bytesWritten;
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
    /** The number of bytes that the network accepted for requests that have ended. */
    sent: () => sentBytes,
    /** The number of requests that have not ended. */
    open: () => openRequests,
    close,
  };
}

interface ServerAndUpstream {
  server: Pick<TestServer, 'call'>;
  upstream: Pick<Upstream, 'respondWith'>;
}
let adCount = 0;
/** Runs a search that returns ads with these fields. Pictures come only from the fields. Returns the ids of the ads. */
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

/** Sends the same block of bytes until `bytes` are sent or the reader closes the connection. */
export const streamBytes =
  (bytes: number, headers: Record<string, string | number> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(200, headers);
    const block = Buffer.alloc(64 * 1024, 0xff);
    let remainingBytes = bytes;
    const writeMore = () => {
      while (remainingBytes > 0 && !response.destroyed) {
        remainingBytes -= block.length;
        if (!response.write(block)) return void response.once('drain', writeMore);
      }
      response.end();
    };
    writeMore();
  };
