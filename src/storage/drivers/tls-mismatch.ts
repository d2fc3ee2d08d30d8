import { connect, isIP, type Socket } from 'node:net';
import { connect as connectWithTls } from 'node:tls';

/** The maximum time to wait for a response from the server, in milliseconds. */
const probeTimeoutMs = 1500;

/**
 * Finds out whether a connection to Redis failed because only one side uses TLS. A server without TLS never answers a
 * TLS client, and a server with TLS disconnects a client without TLS, but neither error states this cause. Sends no
 * credentials.
 * @param server `tls` is true if the client uses TLS
 * @returns the cause and how to fix it, or undefined if TLS is not the cause or the server does not respond
 */
export async function explainTlsMismatch(server: {
  tls: boolean;
  host: string;
  port: number;
}): Promise<string | undefined> {
  if (server.tls)
    return (await acceptsPlainText(server))
      ? 'AD_LIBRARY_STATE_URL begins with rediss://, but the server does not use TLS: change the URL to redis://, or switch on TLS in the server'
      : undefined;
  return (await acceptsTls(server))
    ? 'AD_LIBRARY_STATE_URL begins with redis://, but the server uses TLS: change the URL to rediss://'
    : undefined;
}

/**
 * Returns true if the Redis server answers a command that is sent without TLS. Every Redis reply to `PING` starts with
 * `+` or `-`.
 */
function acceptsPlainText({ host, port }: { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port }, () => socket.write('PING\r\n'));
    socket.once('data', (reply) => settle(/^[+-]/.test(reply.subarray(0, 1).toString('latin1'))));
    const settle = createResolver(socket, resolve);
  });
}

/**
 * Returns true if the server completes a TLS handshake. The server's certificate is not checked, because no data is
 * sent to the server.
 */
function acceptsTls({ host, port }: { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host, port, rejectUnauthorized: false, ...(isIP(host) === 0 && { servername: host }) };
    const settle = createResolver(
      connectWithTls(options, () => settle(true)),
      resolve,
    );
  });
}

/**
 * Returns a function that resolves a promise and closes the socket. If the socket fails, closes or times out before the
 * function is called, the promise resolves to false.
 */
function createResolver(socket: Socket, resolve: (isAccepted: boolean) => void): (isAccepted: boolean) => void {
  const settle = (isAccepted: boolean) => {
    clearTimeout(timer);
    resolve(isAccepted);
    socket.destroy();
  };
  const timer = setTimeout(() => settle(false), probeTimeoutMs).unref();
  socket.on('error', () => settle(false)).once('close', () => settle(false));
  return settle;
}
