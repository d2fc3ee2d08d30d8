import { connect, type Socket } from 'node:net';
import { Client } from 'undici';
import { serveHttp } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config/read-config.ts';
import type { Config } from '../../src/config/settings.ts';
import { waitInBackground } from './deadline.ts';

/** An HTTP server that runs in this process. */
export type HttpServer = Awaited<ReturnType<typeof startHttp>>;

/** Starts the HTTP server in this process. Tests connect to it over real sockets. */
export async function startHttp(config: Partial<Config> = {}, dependencies?: Parameters<typeof serveHttp>[2]) {
  const logged: string[] = [];
  const completeConfig = { ...readConfig({}), logLevel: 'debug' as const, port: 0, ...config };
  const listener = await serveHttp(completeConfig, (line) => logged.push(line), dependencies);
  return {
    url: `${listener.url}/mcp`,
    origin: listener.url,
    port: Number(new URL(listener.url).port),
    logged,
    close: (deadlineMs = 5000) => listener.close(deadlineMs),
  };
}

/** Returns valid request headers with an API key, for protocol revisions before 2026-07-28. */
export const createValidHeaders = (key = 'svc_live_caller'): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
});

/** Returns the JSON-RPC request of a tool call. */
export const createToolCall = (name: string, args: object = {}, id: unknown = 1) =>
  ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }) as const;

/** Opens a keep-alive connection. `connections()` returns how often the client had to connect. */
export function openConnection(origin: string) {
  const client = new Client(origin);
  const connectEvents: unknown[] = [];
  client.on('connect', () => connectEvents.push(1));
  const send = async (options: Partial<Parameters<Client['request']>[0]>) => {
    const response = await client.request({ path: '/mcp', method: 'POST', headers: createValidHeaders(), ...options });
    const text = await response.body.text();
    const json = /^[{[]/.test(text) ? JSON.parse(text) : {};
    return { status: response.statusCode, headers: response.headers, text, json };
  };
  return {
    send,
    call: (name: string, args: object = {}, key?: string) =>
      send({ headers: createValidHeaders(key), body: JSON.stringify(createToolCall(name, args)) }),
    connections: () => connectEvents.length,
    close: () => client.destroy(),
  };
}

/** Returns the text of an HTTP request to `/mcp` with a JSON body. */
export function formatHttpRequest(body: object, headers = createValidHeaders()): string {
  const text = JSON.stringify(body);
  const fields = Object.entries({ host: 'localhost', ...headers, 'content-length': `${text.length}` });
  return `POST /mcp HTTP/1.1\r\n${fields.map((field) => field.join(': ')).join('\r\n')}\r\n\r\n${text}`;
}

/** Opens a raw socket, for requests that no HTTP client would send. */
export function openRawSocket(port: number, localAddress?: string) {
  const socket: Socket = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) });
  socket.on('error', () => {});
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  const close = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  return {
    socket,
    received: () => received,
    /** Resolves with all received text when the connection has closed. Rejects after a minute. */
    get closed() {
      return waitInBackground(close, 'the connection to close');
    },
  };
}
