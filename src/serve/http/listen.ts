import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';

export interface Listener {
  /** `http://HOST:PORT` as this machine reaches it; the system chooses the port where 0 was asked for. */
  address: string;
  /** Stops taking connections; resolves when the open ones are done or the deadline has passed. */
  close(deadlineMs: number): Promise<void>;
}

export interface ListenOptions {
  host: string;
  port: number;
  /** Longest time a request may take to come in, in milliseconds; 0 for any. */
  requestMs?: number;
  /** Longest silence on a connection while it is being answered, in milliseconds; one that reads nothing is silent. */
  idleMs?: number;
  /** Lets answers pass as strings and not as streams, for the whole process; faster where answers are many. */
  fastAnswers?: boolean;
}

type Handler = (request: Request, environment: object) => Response | Promise<Response>;

/** A request's head must have come in by then; a connection may rest that long between requests. */
const bounds = { headersTimeout: 10_000, keepAliveTimeout: 65_000, maxHeaderSize: 16 * 1024 };

/** Open connections; further ones are closed at once. */
const mostConnections = 10_000;

/** A host as it stands in an address: an IPv6 one in brackets. */
export const hostInAddress = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

/** Listens on a host and port with a fetch-shaped handler. Rejects when the address cannot be had. */
export async function listen(fetch: Handler, options: ListenOptions): Promise<Listener> {
  const { host, port, requestMs = 20_000, idleMs = 0, fastAnswers = false } = options;
  const server = createAdaptorServer({
    fetch,
    overrideGlobalObjects: fastAnswers,
    serverOptions: { ...bounds, requestTimeout: requestMs, connectionsCheckingInterval: 5000 },
  }) as Server;
  server.maxConnections = mostConnections;
  server.setTimeout(idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const taken = server.address() as AddressInfo;
  // Bound to all of its addresses, a machine reaches itself at this one.
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : hostInAddress(host);
  return {
    address: `http://${name}:${taken.port}`,
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
