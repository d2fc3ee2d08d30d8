import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { deriveUuid } from './derive-uuid.ts';
import { ad, respondWithJson, type Upstream } from './faulty-upstream.ts';
import { listenOnLoopback } from './loopback.ts';
import type { TestServer } from './server.ts';

/** A picture response: the bytes to send, or a function that writes the response. */
export type PictureAnswer = Uint8Array | ((response: ServerResponse) => void);

/** Starts an HTTP host for pictures. Tests choose the response of each path. */
export async function startPictureHost() {
  const responses: PictureAnswer[] = [];
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
    const pictureResponse = responses[Number.parseInt(path.slice(1), 10)];
    if (typeof pictureResponse === 'function') pictureResponse(response);
    else response.writeHead(pictureResponse ? 200 : 404, { 'content-type': 'image/jpeg' }).end(pictureResponse);
  });
  const { port, close } = await listenOnLoopback(server);
  return {
    host: { host: '127.0.0.1', port },
    serve: (pictureResponse: PictureAnswer) => `http://127.0.0.1:${port}/${responses.push(pictureResponse) - 1}`,
    requests,
    /** Returns the number of bytes sent by requests that have ended. */
    getSentBytes: () => sentBytes,
    /** Returns the number of running requests. */
    countOpenRequests: () => openRequests,
    close,
  };
}

interface ServerAndUpstream {
  server: Pick<TestServer, 'call'>;
  upstream: Pick<Upstream, 'respondWith'>;
}
let adCount = 0;
/** Runs a search that returns ads with these fields and no other pictures. Returns the ids of the ads. */
export async function loadAds({ server, upstream }: ServerAndUpstream, ...fields: object[]): Promise<string[]> {
  const items = fields.map((field) => ({
    ...ad,
    id: deriveUuid(`pictured ${adCount++}`),
    media: [],
    cards: [],
    ...field,
  }));
  upstream.respondWith(respondWithJson({ items, cursor: null, hasMore: false }));
  await server.call('search_ads', { fresh: true });
  return items.map(({ id }) => id);
}

/** Sends the same block repeatedly, until `bytes` bytes are sent or the reader closes the connection. */
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
