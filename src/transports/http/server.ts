import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';

/** An HTTP server that is listening for connections, as returned by `listen`. */
export type ListeningServer = Awaited<ReturnType<typeof listen>>;

/** The host and port of an HTTP server, and the limits on its connections. */
export interface ListenOptions {
  host: string;
  port: number;
  /** How long a request may take to arrive, in milliseconds. 0 means no limit. */
  requestTimeoutMs?: number;
  /** How long a connection may be idle while its request is being served, in milliseconds. 0 means no limit. */
  idleTimeoutMs?: number;
  /**
   * True to replace the global `Request` and `Response` with the lighter classes of `@hono/node-server`. This is faster
   * for many small responses, but changes the globals of the whole process.
   */
  useFastResponses?: boolean;
  connectionLimits?: Partial<ConnectionLimits>;
  /**
   * Returns the IP address to which the connection limit applies, or undefined if the connection has no such limit.
   * Each IP address may use at most a quarter of all connections.
   */
  getPeerAddress?: ((remoteAddress: string | undefined) => string | undefined) | undefined;
  /**
   * Called when a connection is closed before its first request, because there are too many connections in total or
   * from the same IP address.
   */
  onConnectionRefused?: ((address: string | undefined) => void) | undefined;
}

type Handler = (request: Request, environment: object) => Response | Promise<Response>;

/** The connection limits in production. Tests use lower limits, which they can reach faster. */
const defaultLimits: ConnectionLimits = {
  maxConnections: 1024,
  maxResponseReadMs: 60_000,
};

/** How long the headers of a request may take to arrive, in milliseconds. */
const headersTimeoutMs = 10_000;
/** How long a connection stays open between two requests, in milliseconds. */
const keepAliveMs = 65_000;
const maxHeaderBytes = 16 * 1024;

/**
 * The maximum number of bytes of an unread request body that the server discards to reuse the connection. If more bytes
 * are unread, closing the connection is cheaper.
 */
const maxDiscardedBytes = 64 * 1024;

/** Formats a host for use in a URL, with brackets around an IPv6 address. */
export const formatUrlHost = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

/**
 * Starts an HTTP server that passes requests to a fetch handler. Resolves when the server is listening.
 * @throws Error if the host and port are not available
 */
export async function listen(fetchHandler: Handler, options: ListenOptions) {
  const { host, port, requestTimeoutMs = 20_000, idleTimeoutMs = 0, useFastResponses = false } = options;
  const { connectionLimits, getPeerAddress, onConnectionRefused } = options;
  const server = createServer({
    ServerResponse: BytesResponse,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: keepAliveMs,
    headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs || headersTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(5000, (requestTimeoutMs || headersTimeoutMs) / 2),
  });
  server.setTimeout(idleTimeoutMs);
  const serveRequest = getRequestListener(fetchHandler, { overrideGlobalObjects: useFastResponses });
  const closeIdleConnections = limitConnections(server, serveRequest, {
    ...defaultLimits,
    ...connectionLimits,
    getPeerAddress,
    onConnectionRefused,
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const boundAddress = server.address() as AddressInfo;
  // If the server listens on all interfaces, programs on this machine can reach it at the loopback address.
  const isListeningOnAllAddresses = host === '0.0.0.0' || host === '::';
  const reachableHost = isListeningOnAllAddresses ? '127.0.0.1' : formatUrlHost(host);
  return {
    /**
     * The URL for requests from this machine. If `port` is 0, the URL contains the port that the operating system
     * chose.
     */
    url: `http://${reachableHost}:${boundAddress.port}`,
    /** The URL with the host that the server is bound to, which may be `0.0.0.0` or `[::]`. */
    boundUrl: `http://${formatUrlHost(host)}:${boundAddress.port}`,
    /** Stops accepting connections. Resolves when all open connections have ended, at the latest after `drainMs`. */
    close: (drainMs: number) =>
      new Promise<void>((resolve) => {
        const drainTimer = setTimeout(() => server.closeAllConnections(), drainMs);
        server.close(() => {
          clearTimeout(drainTimer);
          resolve();
        });
        closeIdleConnections();
      }),
  };
}

interface ConnectionLimits {
  /** The maximum number of open connections, from all IP addresses together. */
  maxConnections: number;
  /**
   * How long a client may take to read a response, in milliseconds. After this time, the server closes the connection.
   */
  maxResponseReadMs: number;
}

/** The state of an open TCP connection, to which `limitConnections` applies the limits. */
interface TcpConnection {
  /** The IP address to which the connection limit applies. Undefined if there is no such limit for this connection. */
  ipAddress: string | undefined;
  /** The number of requests on this connection whose responses are not complete yet. */
  pendingRequestCount: number;
  /** True after the first request has arrived on this connection. */
  hasBeenUsed: boolean;
  /** Resolves when the response to the last request has been sent. */
  lastResponseSent: Promise<void>;
}

/**
 * Limits the memory that connections can use. The number of connections is limited, both in total and per IP address.
 * Each connection serves one request at a time, and the client must read each response within `maxResponseReadMs`.
 * Without these limits, Node would serve all pipelined requests at once and buffer every unread response.
 * @returns a function that closes idle connections, including those that become idle later. Without this function, a
 * closing server would wait for connections that have not sent a request yet.
 */
function limitConnections(
  server: Server,
  serveRequest: (request: IncomingMessage, response: ServerResponse) => unknown,
  {
    maxConnections,
    maxResponseReadMs,
    getPeerAddress,
    onConnectionRefused,
  }: ConnectionLimits & Pick<ListenOptions, 'getPeerAddress' | 'onConnectionRefused'>,
): () => void {
  const connections = new Map<Socket, TcpConnection>();
  let isClosing = false;

  /**
   * Returns true if another connection may be opened. If a limit is reached, first closes an idle connection. If the
   * idle connection was never used, reports a refusal, because its client may be about to send a request. Returns false
   * if every connection has a pending request.
   */
  const makeRoomForConnection = (ipAddress: string | undefined): boolean => {
    const allConnections = [...connections];
    const connectionsOfAddress =
      ipAddress === undefined ? [] : allConnections.filter(([, connection]) => connection.ipAddress === ipAddress);
    const isAddressFull = connectionsOfAddress.length >= maxConnections / 4;
    if (!isAddressFull && allConnections.length < maxConnections) return true;
    const closableConnections = isAddressFull ? connectionsOfAddress : allConnections;
    const idleEntry = closableConnections.find(([, { pendingRequestCount }]) => pendingRequestCount === 0);
    if (idleEntry === undefined) return false;
    const [idleSocket, { hasBeenUsed, ipAddress: idleAddress }] = idleEntry;
    idleSocket.destroy();
    connections.delete(idleSocket);
    if (!hasBeenUsed) onConnectionRefused?.(idleAddress);
    return true;
  };

  server.on('connection', (socket) => {
    const ipAddress = getPeerAddress?.(socket.remoteAddress);
    if (!makeRoomForConnection(ipAddress)) {
      socket.destroy();
      onConnectionRefused?.(ipAddress);
      return;
    }
    connections.set(socket, {
      ipAddress,
      pendingRequestCount: 0,
      hasBeenUsed: false,
      lastResponseSent: Promise.resolve(),
    });
    socket.once('close', () => connections.delete(socket));
  });

  server.on('request', async (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    // Allow two pending requests, because a client can receive a response and send its next request before this process
    // knows that the response was sent. A client with more pending requests does not wait for responses, so close its
    // connection.
    if (connection === undefined || connection.pendingRequestCount > 1) return void socket.destroy();
    const { lastResponseSent } = connection;
    connection.hasBeenUsed = true;
    connection.pendingRequestCount++;
    connection.lastResponseSent = new Promise((resolve) => {
      response.once('close', () => {
        connection.pendingRequestCount--;
        if (isClosing && connection.pendingRequestCount === 0) socket.destroy();
        resolve();
      });
    });
    await lastResponseSent;
    // If the previous response has closed the connection, do not serve this request. Node would neither send the
    // response to this request nor emit `close` for it.
    if (!socket.writable) return;
    await serveRequest(request, response);
    if (response.closed) return;
    const slowClientTimer = setTimeout(() => socket.destroy(), maxResponseReadMs);
    response.once('close', () => clearTimeout(slowClientTimer));
  });

  return () => {
    isClosing = true;
    for (const [socket, { pendingRequestCount }] of connections) if (pendingRequestCount === 0) socket.destroy();
  };
}

/**
 * Sends text responses as bytes, and closes connections with unread request data.
 *
 * Node buffers an unread text twice, with five bytes per character in total, but buffers bytes only once. If a long
 * request was not read completely, the response has the `connection: close` header. Otherwise, the server would have to
 * read all remaining bytes before it could read the client's next request.
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
