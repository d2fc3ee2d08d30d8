import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionBounds {
  /** Open connections. To make room for another, one that has sent no whole request is closed, the longest idle first. */
  maxConnections: number;
  /** Requests of one connection that are not answered yet: one is served, the others wait. One more closes it. */
  maxPipelined: number;
  /** Bytes of answers that are not read yet, of all connections together. Past that, the slowest reader is closed. */
  maxUnreadBytes: number;
  /** How long an answer may stay unread without any progress, in milliseconds. */
  unreadMs: number;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Has a server answer each connection one request at a time, and go on when the last answer has left the process.
 * Node by itself has a client's pipelined requests answered all at once, and keeps what the client does not read.
 */
export function serveConnections(server: Server, answer: Answer, bounds: ConnectionBounds): void {
  const { idle, receiving } = boundConnections(server, bounds.maxConnections);
  const unread = createUnreadAnswers(bounds);
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
    idle.delete(socket);
    receiving.set(socket, request);
    pipeline.last = new Promise((resolve) => {
      response.once('close', () => {
        pipeline.unanswered--;
        if (receiving.get(socket) === request) receiving.delete(socket);
        if (pipeline.unanswered === 0 && !socket.destroyed) idle.add(socket);
        resolve();
      });
    });
    await last;
    if (socket.destroyed) return;
    await answer(request, response);
    unread.watch(socket, response);
  });
}

/**
 * Bounds the open connections. Holds those without a request, the longest idle first, and the last request of the
 * others, which may never come to its end.
 */
function boundConnections(server: Server, maxConnections: number) {
  const idle = new Set<Socket>();
  const receiving = new Map<Socket, IncomingMessage>();
  let open = 0;
  const forget = (socket: Socket) => {
    idle.delete(socket);
    receiving.delete(socket);
  };
  const oldestWaiting = (): Socket | undefined => {
    const [oldest] = idle;
    if (oldest) return oldest;
    for (const [socket, { complete }] of receiving) {
      if (!complete) return socket;
      receiving.delete(socket);
    }
    return undefined;
  };
  server.on('connection', (socket) => {
    if (open >= maxConnections) {
      const closed = oldestWaiting() ?? socket;
      forget(closed);
      closed.destroy();
    }
    if (socket.destroyed) return;
    open++;
    idle.add(socket);
    socket.once('close', () => {
      open--;
      forget(socket);
    });
  });
  return { idle, receiving };
}

/** Answers that were handed over and not read, the longest first. */
function createUnreadAnswers({ maxUnreadBytes, unreadMs }: ConnectionBounds) {
  const bytesOf = new Map<Socket, number>();
  let total = 0;
  const forget = (socket: Socket) => {
    total -= bytesOf.get(socket) ?? 0;
    bytesOf.delete(socket);
  };
  return {
    watch(socket: Socket, response: ServerResponse): void {
      const bytes = response.writableLength;
      if (bytes === 0 || response.closed) return;
      bytesOf.set(socket, bytes);
      total += bytes;
      socket.setTimeout(unreadMs);
      response.once('close', () => forget(socket));
      for (const slowest of bytesOf.keys()) {
        if (total <= maxUnreadBytes) break;
        forget(slowest);
        slowest.destroy();
      }
    },
  };
}
