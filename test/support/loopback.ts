import { createServer, type Server } from 'node:http';
import type { AddressInfo, Server as TcpServer } from 'node:net';

/** Listens on a free port of the loopback interface. `close` also ends open connections. */
export async function listenOnLoopback(server: Server | TcpServer) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { port, close };
}

/** Returns a port that is currently free. */
export async function findFreePort(): Promise<number> {
  const { port, close } = await listenOnLoopback(createServer());
  await close();
  return port;
}
