import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';

/** A server that is listening. */
export type Listener = Awaited<ReturnType<typeof listen>>;

/** The address and port of a server, and the limits of its connections. */
export interface ListenOptions {
  host: string;
  port: number;
  /** How long a request may take to arrive, in milliseconds. 0 means no limit. */
  requestTimeoutMs?: number;
  /** How long a connection may be silent while its request is being answered, in milliseconds. 0 means no limit. */
  idleTimeoutMs?: number;
  /**
   * Replaces the global `Request` and `Response` with the lighter versions of `@hono/node-server`. This is faster for
   * many small answers, but it changes the globals of the whole process.
   */
  useFastResponses?: boolean;
  bounds?: Partial<ConnectionBounds>;
  /**
   * Returns the address that a connection counts for. One address may have a quarter of the connections. Connections for
   * which the function returns undefined have no such limit.
   */
  getPeerAddress?: ((remote: string | undefined) => string | undefined) | undefined;
  /** Called when a connection is closed immediately because there are too many, in total or of its address. */
  onConnectionRefused?: ((address: string | undefined) => void) | undefined;
}

type Handler = (request: Request, environment: object) => Response | Promise<Response>;

const defaultBounds: ConnectionBounds = {
  maxConnections: 1024,
  maxUnreadMs: 60_000,
};

/** How long the headers of a request may take to arrive, in milliseconds. */
const headersTimeoutMs = 10_000;
/** How long a connection stays open between two requests, in milliseconds. */
const keepAliveMs = 65_000;
const maxHeaderBytes = 16 * 1024;

/**
 * The most bytes of an unread request body that the server reads and discards to keep the connection open. If more bytes
 * are left, closing the connection is cheaper.
 */
const maxDiscardedBytes = 64 * 1024;

/** Returns a host in the form that URLs need: an IPv6 address is put in brackets. */
export const formatUrlHost = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

/**
 * Starts a server that answers requests with a fetch handler. Resolves when the server is listening.
 * @throws Error if the host and port are not available
 */
export async function listen(fetch: Handler, options: ListenOptions) {
  const { host, port, requestTimeoutMs = 20_000, idleTimeoutMs = 0, useFastResponses = false } = options;
  const { bounds, getPeerAddress, onConnectionRefused } = options;
  const server = createServer({
    ServerResponse: BytesResponse,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: keepAliveMs,
    headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs || headersTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(5000, (requestTimeoutMs || headersTimeoutMs) / 2),
  });
  server.setTimeout(idleTimeoutMs);
  const answerRequest = getRequestListener(fetch, { overrideGlobalObjects: useFastResponses });
  const closeIdleConnections = limitConnections(server, answerRequest, {
    ...defaultBounds,
    ...bounds,
    getPeerAddress,
    onConnectionRefused,
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const boundAddress = server.address() as AddressInfo;
  // A server that listens on all addresses is reachable from its own machine under the loopback address.
  const listensOnAllAddresses = host === '0.0.0.0' || host === '::';
  const reachableHost = listensOnAllAddresses ? '127.0.0.1' : formatUrlHost(host);
  return {
    /** The URL under which this machine reaches the server. If port 0 was requested, it has the port that the system chose. */
    url: `http://${reachableHost}:${boundAddress.port}`,
    /** The URL with the host that the server is bound to, which can be `0.0.0.0` or `[::]`. */
    boundUrl: `http://${formatUrlHost(host)}:${boundAddress.port}`,
    /** Stops accepting connections. Resolves when all open connections have ended, or when the deadline has passed. */
    close: (deadlineMs: number) =>
      new Promise<void>((resolve) => {
        const deadlineTimer = setTimeout(() => server.closeAllConnections(), deadlineMs);
        server.close(() => {
          clearTimeout(deadlineTimer);
          resolve();
        });
        closeIdleConnections();
      }),
  };
}

interface ConnectionBounds {
  /** The most connections, for all addresses together. */
  maxConnections: number;
  /** How long a client may take to read an answer, in milliseconds. After that, the server closes the connection. */
  maxUnreadMs: number;
}

interface Connection {
  /** The address that the connection counts for. Undefined if connections of this address are not limited. */
  address: string | undefined;
  /** The number of requests whose answers have not left the process yet. */
  unansweredRequests: number;
  /** Resolves when the answer to the last request has left the process. */
  lastAnswer: Promise<void>;
}

/**
 * Limits how much memory connections can take. The number of connections is limited, in total and for each address. Each
 * connection is served one request at a time, and the client must read the answer within `maxUnreadMs`. Node itself
 * answers all pipelined requests at once and buffers every answer that the client does not read.
 * @returns a function that closes idle connections, including those that become idle later. Without it, a server that is
 * closing would wait for connections that have not sent a request yet
 */
function limitConnections(
  server: Server,
  answerRequest: (request: IncomingMessage, response: ServerResponse) => unknown,
  {
    maxConnections,
    maxUnreadMs,
    getPeerAddress,
    onConnectionRefused,
  }: ConnectionBounds & Pick<ListenOptions, 'getPeerAddress' | 'onConnectionRefused'>,
): () => void {
  const connections = new Map<Socket, Connection>();
  let isClosing = false;

  /** Makes room for a new connection by closing an idle one. Returns false if all connections are waiting for answers. */
  const makeRoomFor = (address: string | undefined): boolean => {
    const allConnections = [...connections];
    const addressConnections =
      address === undefined ? [] : allConnections.filter(([, connection]) => connection.address === address);
    const isAddressFull = addressConnections.length >= maxConnections / 4;
    if (!isAddressFull && allConnections.length < maxConnections) return true;
    const candidates = isAddressFull ? addressConnections : allConnections;
    const [idleSocket] = candidates.find(([, { unansweredRequests }]) => unansweredRequests === 0) ?? [];
    if (idleSocket === undefined) return false;
    idleSocket.destroy();
    connections.delete(idleSocket);
    return true;
  };

  server.on('connection', (socket) => {
    const address = getPeerAddress?.(socket.remoteAddress);
    if (!makeRoomFor(address)) {
      socket.destroy();
      onConnectionRefused?.(address);
      return;
    }
    connections.set(socket, { address, unansweredRequests: 0, lastAnswer: Promise.resolve() });
    socket.once('close', () => connections.delete(socket));
  });

  server.on('request', async (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    // A client that waits for each answer may be ahead by one request: the client can have received an answer before
    // this process is notified that the answer was sent. More requests mean that the client does not wait.
    if (connection === undefined || connection.unansweredRequests > 1) return void socket.destroy();
    const { lastAnswer } = connection;
    connection.unansweredRequests++;
    connection.lastAnswer = new Promise((resolve) => {
      response.once('close', () => {
        connection.unansweredRequests--;
        if (isClosing && connection.unansweredRequests === 0) socket.destroy();
        resolve();
      });
    });
    await lastAnswer;
    if (socket.destroyed) return;
    await answerRequest(request, response);
    if (response.closed) return;
    const unreadTimer = setTimeout(() => socket.destroy(), maxUnreadMs);
    response.once('close', () => clearTimeout(unreadTimer));
  });

  return () => {
    isClosing = true;
    for (const [socket, { unansweredRequests }] of connections) if (unansweredRequests === 0) socket.destroy();
  };
}

/**
 * A response that sends texts as bytes and closes connections that still hold unread requests.
 *
 * Node holds an unread text twice, which takes five bytes per character. It holds bytes once. If a long request was not
 * read to its end, the answer has the header `connection: close`. Otherwise the client would send its next request after
 * the unread bytes, and the server would have to read them all first.
 */
class BytesResponse extends ServerResponse {
  override writeHead(...args: unknown[]): this {
    const { complete, headers } = this.req;
    const isLong = Number(headers['content-length'] ?? 0) > maxDiscardedBytes;
    if (!complete && isLong) this.setHeader('connection', 'close');
    return super.writeHead(...(args as Parameters<ServerResponse['writeHead']>));
  }

  override end(...[chunk, ...otherArgs]: unknown[]): this {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    return super.end(...([bytes, ...otherArgs] as Parameters<ServerResponse['end']>));
  }
}
