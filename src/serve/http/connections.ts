import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Answers } from '../answers.ts';

export interface ConnectionBounds {
  /** Open connections. To make room for another, one that has sent no whole request is closed, the longest idle first. */
  maxConnections: number;
  /** Unanswered requests of one connection: one is served, the others wait. One more closes the connection. */
  maxPipelined: number;
  /** How long an answer may stay unread without any progress, in milliseconds. */
  unreadMs: number;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Makes a server answer the requests of a connection one at a time, each after the last answer has left the process.
 * By itself, Node answers pipelined requests all at once, and buffers what the client does not read.
 */
export function serveConnections(
  server: Server,
  answer: Answer,
  { answers, ...bounds }: ConnectionBounds & { answers: Answers<ServerResponse> },
): void {
  const { idle, receiving } = boundConnections(server, bounds.maxConnections);
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
        answers.left(response);
        pipeline.unanswered--;
        if (receiving.get(socket) === request) receiving.delete(socket);
        if (pipeline.unanswered === 0 && !socket.destroyed) idle.add(socket);
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
}

/**
 * Limits open connections. Tracks those without a request, the longest idle first, and the last request of the others,
 * which may never be complete.
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

/** Of answers that are being made or are not read yet, of all connections together. */
export const maxAnswerBytes = 128 * 1024 * 1024;

/** The memory that answers of a server take. */
export const createAnswers = (maxBytes = maxAnswerBytes, maxPerTenant = maxBytes): Answers<ServerResponse> =>
  new Answers({
    maxBytes,
    maxPerTenant,
    end: ({ socket }) => void socket?.destroy(),
    hasEnded: ({ closed }) => closed,
  });

/** Sends texts as their bytes: what is not read yet would be held twice, at five bytes a character. */
export class BytesResponse extends ServerResponse {
  override end(...[chunk, ...others]: unknown[]): this {
    const sent = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    return super.end(...([sent, ...others] as Parameters<ServerResponse['end']>));
  }
}
