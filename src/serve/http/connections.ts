import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionBounds {
  /** Open connections. To make room for another, the one that has rested longest is closed. */
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
  const connections = new WeakMap<Socket, { unanswered: number; last: Promise<void> }>();
  /** Those without a request, the longest first. */
  const resting = new Set<Socket>();
  const unread = createUnreadAnswers(bounds);
  let open = 0;

  server.on('connection', (socket) => {
    const [longest] = resting;
    if (open >= bounds.maxConnections) (longest ?? socket).destroy();
    if (socket.destroyed) return;
    open++;
    connections.set(socket, { unanswered: 0, last: Promise.resolve() });
    resting.add(socket);
    socket.once('close', () => {
      open--;
      resting.delete(socket);
    });
  });

  server.on('request', async (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (connection === undefined || connection.unanswered >= bounds.maxPipelined) {
      socket.destroy();
      return;
    }
    const { last } = connection;
    connection.unanswered++;
    resting.delete(socket);
    connection.last = new Promise((resolve) => {
      response.once('close', () => {
        connection.unanswered--;
        if (connection.unanswered === 0 && !socket.destroyed) resting.add(socket);
        resolve();
      });
    });
    await last;
    if (socket.destroyed) return;
    await answer(request, response);
    unread.watch(socket, response);
  });
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
