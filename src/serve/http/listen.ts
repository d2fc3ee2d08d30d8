import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Answers } from '../answers.ts';
import { BytesResponse, type ConnectionBounds, createAnswers, serveConnections } from './connections.ts';

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
  answers?: Answers<ServerResponse>;
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
  serveConnections(server, answer, { ...defaultBounds, ...bounds, answers });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const taken = server.address() as AddressInfo;
  // A server that listens on all addresses is reached here from its own machine.
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
        server.closeIdleConnections();
      }),
  };
}
