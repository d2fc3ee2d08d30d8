import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { AnswerMemory } from '../limits.ts';

export interface Listener {
  /** `http://HOST:PORT` as this machine reaches it; the system chooses the port if 0 was asked for. */
  address: string;
  /** The same with the host that was bound, which may be all addresses. */
  bound: string;
  /** Stops taking connections; resolves when the open ones are done or the deadline has passed. */
  close(deadlineMs: number): Promise<void>;
}

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
  /** The memory that answers take, where it is also reserved before they are made. */
  answers?: AnswerMemory<ServerResponse>;
}

type Handler = (request: Request, environment: object) => Response | Promise<Response>;

const defaultBounds: ConnectionBounds = {
  maxConnections: 10_000,
  maxPipelined: 16,
  unreadMs: 30_000,
};

/** How long the head of a request may take to arrive, and how long a connection may rest between requests. */
const headersMs = 10_000;
const restMs = 65_000;
const maxHeaderSize = 16 * 1024;

/** A host as it stands in an address: an IPv6 one in brackets. */
export const hostInAddress = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

/** Listens on a host and port with a fetch-shaped handler. Rejects if the address is not available. */
export async function listen(fetch: Handler, options: ListenOptions): Promise<Listener> {
  const { host, port, requestMs = 20_000, idleMs = 0, fastAnswers = false, bounds } = options;
  const { answers = createAnswers() } = options;
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
  const closeResting = serveConnections(server, answer, { ...defaultBounds, ...bounds, answers });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const taken = server.address() as AddressInfo;
  // This is the address by which its own machine reaches a server that listens on all addresses.
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : hostInAddress(host);
  return {
    address: `http://${name}:${taken.port}`,
    bound: `http://${hostInAddress(host)}:${taken.port}`,
    close: (deadlineMs) =>
      new Promise((resolve) => {
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
  /**
   * Open connections. To make room for another connection, the server closes the one that has not sent a whole request
   * for the longest time.
   */
  maxConnections: number;
  /** Unanswered requests of one connection: one is served, the others wait. One more closes the connection. */
  maxPipelined: number;
  /** How long an answer may stay unread without any progress, in milliseconds. */
  unreadMs: number;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Makes a server answer the requests of a connection one at a time, each after the last answer has left the process. By
 * itself, Node answers pipelined requests all at once, and buffers what the client does not read.
 * @returns a function that closes idle connections, now and later. Node would wait for connections that have sent
 * nothing yet
 */
function serveConnections(
  server: Server,
  answer: Answer,
  { answers, ...bounds }: ConnectionBounds & { answers: AnswerMemory<ServerResponse> },
): () => void {
  const { note, closeResting } = boundConnections(server, bounds.maxConnections);
  const pipelines = new WeakMap<Socket, { unanswered: number; last: Promise<void> }>();

  server.on('request', async (request, response) => {
    const { socket } = request;
    const pipeline = pipelines.get(socket) ?? { unanswered: 0, last: Promise.resolve() };
    if (pipeline.unanswered >= bounds.maxPipelined) {
      socket.destroy();
      return;
    }
    const { last } = pipeline;
    pipelines.set(socket, pipeline);
    pipeline.unanswered++;
    note(socket, request);
    pipeline.last = new Promise((resolve) => {
      response.once('close', () => {
        answers.left(response);
        pipeline.unanswered--;
        if (pipeline.unanswered === 0) note(socket);
        resolve();
      });
    });
    await last;
    if (socket.destroyed) return;
    await answer(request, response);
    if (response.closed) return;
    answers.made(response, response.writableLength);
    if (response.writableLength > 0) socket.setTimeout(bounds.unreadMs);
  });
  return closeResting;
}

/**
 * Limits open connections. `note` is to be called when a connection has begun a request, and when all its requests are
 * answered.
 */
function boundConnections(server: Server, maxConnections: number) {
  /**
   * Open connections, each with its last request if that is not answered, in the order in which the requests came or
   * were answered.
   */
  const open = new Map<Socket, IncomingMessage | undefined>();
  const nextToClose = () => {
    for (const [socket, request] of open) if (!request?.complete) return socket;
    return undefined;
  };
  let isClosing = false;
  const note = (socket: Socket, request?: IncomingMessage) => {
    open.delete(socket);
    if (isClosing && request === undefined) socket.destroy();
    if (!socket.destroyed) open.set(socket, request);
  };
  server.on('connection', (socket) => {
    if (open.size >= maxConnections) {
      const closed = nextToClose() ?? socket;
      closed.destroy();
      open.delete(closed);
    }
    note(socket);
    socket.once('close', () => open.delete(socket));
  });
  return {
    note,
    closeResting: () => {
      isClosing = true;
      for (const [socket, request] of open) if (request === undefined) socket.destroy();
    },
  };
}

/** Bytes of answers that are being made or are not read yet, of all connections together. */
export const maxAnswerBytes = 128 * 1024 * 1024;

/** The memory that answers of a server take. */
export const createAnswers = (maxBytes = maxAnswerBytes, maxPerTenant = maxBytes): AnswerMemory<ServerResponse> =>
  new AnswerMemory({
    maxBytes,
    maxPerTenant,
    end: ({ socket }) => void socket?.destroy(),
    hasEnded: ({ closed }) => closed,
  });

/** Sends texts as bytes: an unread text would be held twice, at five bytes a character. */
class BytesResponse extends ServerResponse {
  override end(...[chunk, ...others]: unknown[]): this {
    const sent = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    return super.end(...([sent, ...others] as Parameters<ServerResponse['end']>));
  }
}
