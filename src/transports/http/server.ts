import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';

export type Listener = Awaited<ReturnType<typeof listen>>;

export interface ListenOptions {
  host: string;
  port: number;
  /** How long a request may take to arrive, in milliseconds; 0 for any time. */
  requestMs?: number;
  /** How long a connection may be silent while its request is being answered, in milliseconds; 0 for any time. */
  idleMs?: number;
  /** Passes answers as strings instead of streams, for the whole process; faster for many answers. */
  fastAnswers?: boolean;
  bounds?: Partial<ConnectionBounds>;
  /** Names the address that has a quarter of the connections at most; undefined for one that may have all. */
  addressOf?: ((remote: string | undefined) => string | undefined) | undefined;
}

type Handler = (request: Request, environment: object) => Response | Promise<Response>;

const defaultBounds: ConnectionBounds = {
  maxConnections: 1024,
  unreadMs: 60_000,
};

/** How long the head of a request may take to arrive, and how long a connection may rest between requests. */
const headersMs = 10_000;
const restMs = 65_000;
const maxHeaderSize = 16 * 1024;

/** Bytes of a request that nobody read, which are discarded for the sake of the connection. */
const maxDiscarded = 64 * 1024;

export const hostInAddress = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

/** Listens on a host and port with a fetch-shaped handler. Rejects if the address is not available. */
export async function listen(fetch: Handler, options: ListenOptions) {
  const { host, port, requestMs = 20_000, idleMs = 0, fastAnswers = false, bounds, addressOf } = options;
  const server = createServer({
    ServerResponse: BytesResponse,
    maxHeaderSize,
    keepAliveTimeout: restMs,
    headersTimeout: Math.min(headersMs, requestMs || headersMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(5000, (requestMs || headersMs) / 2),
  });
  server.setTimeout(idleMs);
  const answer = getRequestListener(fetch, { overrideGlobalObjects: fastAnswers });
  const closeResting = serveConnections(server, answer, { ...defaultBounds, ...bounds, addressOf });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const taken = server.address() as AddressInfo;
  // This is the address by which its own machine reaches a server that listens on all addresses.
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : hostInAddress(host);
  return {
    /** As this machine reaches it; the system chooses the port if 0 was asked for. */
    address: `http://${name}:${taken.port}`,
    /** With the host that was bound, which may be all addresses. */
    bound: `http://${hostInAddress(host)}:${taken.port}`,
    /** Stops taking connections; resolves when the open ones are done or the deadline has passed. */
    close: (deadlineMs: number) =>
      new Promise<void>((resolve) => {
        const late = setTimeout(() => server.closeAllConnections(), deadlineMs);
        server.close(() => {
          clearTimeout(late);
          resolve();
        });
        closeResting();
      }),
  };
}

interface ConnectionBounds {
  maxConnections: number;
  /** How long an answer may take to be read, in milliseconds. */
  unreadMs: number;
}

interface Connection {
  /** The address that the connection counts for; undefined where that is not limited. */
  address: string | undefined;
  unanswered: number;
  lastAnswer: Promise<void>;
}

/**
 * Bounds what connections hold: how many there are, of which one address has a quarter at most, and one request of each
 * at a time, whose answer has to be read. By itself, Node answers pipelined requests all at once, and buffers what the
 * client does not read.
 * @returns a function that closes idle connections, now and later. Node would wait for connections that have sent
 * nothing yet
 */
function serveConnections(
  server: Server,
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
  { maxConnections, unreadMs, addressOf }: ConnectionBounds & Pick<ListenOptions, 'addressOf'>,
): () => void {
  const open = new Map<Socket, Connection>();
  let isClosing = false;

  server.on('connection', (socket) => {
    const address = addressOf?.(socket.remoteAddress);
    const all = [...open];
    const ofAddress = address === undefined ? [] : all.filter(([, other]) => other.address === address);
    const others = ofAddress.length >= maxConnections / 4 ? ofAddress : all.length >= maxConnections ? all : [];
    if (others.length > 0) {
      const [idle] = others.find(([, { unanswered }]) => unanswered === 0) ?? [];
      if (idle === undefined) return void socket.destroy();
      idle.destroy();
      open.delete(idle);
    }
    open.set(socket, { address, unanswered: 0, lastAnswer: Promise.resolve() });
    socket.once('close', () => open.delete(socket));
  });

  server.on('request', async (request, response) => {
    const { socket } = request;
    const connection = open.get(socket);
    // One more may come in just before this process knows that the answer before it has left.
    if (connection === undefined || connection.unanswered > 1) return void socket.destroy();
    const { lastAnswer } = connection;
    connection.unanswered++;
    connection.lastAnswer = new Promise((resolve) => {
      response.once('close', () => {
        connection.unanswered--;
        if (isClosing && connection.unanswered === 0) socket.destroy();
        resolve();
      });
    });
    await lastAnswer;
    if (socket.destroyed) return;
    await answer(request, response);
    if (response.closed) return;
    const late = setTimeout(() => socket.destroy(), unreadMs);
    response.once('close', () => clearTimeout(late));
  });

  return () => {
    isClosing = true;
    for (const [socket, { unanswered }] of open) if (unanswered === 0) socket.destroy();
  };
}

/**
 * Sends texts as bytes: an unread text would be held twice, at five bytes a character. An answer to a long request that
 * was not read to its end closes the connection, and says so: else a client would send the next request into its end.
 */
class BytesResponse extends ServerResponse {
  override writeHead(...given: unknown[]): this {
    const { complete, headers } = this.req;
    if (!complete && Number(headers['content-length'] ?? 0) > maxDiscarded) this.setHeader('connection', 'close');
    return super.writeHead(...(given as Parameters<ServerResponse['writeHead']>));
  }

  override end(...[chunk, ...others]: unknown[]): this {
    const sent = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    return super.end(...([sent, ...others] as Parameters<ServerResponse['end']>));
  }
}
