import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';

export interface Listener {
  /** The port taken, which the system chooses where 0 was asked for. */
  address: string;
  /** Stops taking connections; resolves when the open ones are done or the deadline has passed. */
  close(deadlineMs: number): Promise<void>;
}

/** Listens on a host and port with a fetch-shaped handler. Rejects when the address cannot be had. */
export async function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const taken = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    address: `http://${name}:${taken.port}`,
    close: (deadlineMs) =>
      new Promise((resolve) => {
        const late = setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), deadlineMs);
        server.close(() => {
          clearTimeout(late);
          resolve();
        });
        if ('closeIdleConnections' in server) server.closeIdleConnections();
      }),
  };
}
