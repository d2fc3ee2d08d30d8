import { connect, type Socket } from 'node:net';
import { Client } from 'undici';
import { serveHttp } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config/read-config.ts';
import type { Config } from '../../src/config/settings.ts';

export type HttpServer = Awaited<ReturnType<typeof startHttp>>;

/** The server over real sockets, in this process. */
export async function startHttp(config: Partial<Config> = {}, ways?: Parameters<typeof serveHttp>[2]) {
  const logged: string[] = [];
  const whole = { ...readConfig({}), logLevel: 'debug' as const, port: 0, ...config };
  const listener = await serveHttp(whole, (line) => logged.push(line), ways);
  return {
    url: `${listener.url}/mcp`,
    origin: listener.url,
    port: Number(new URL(listener.url).port),
    logged,
    close: (deadlineMs = 5000) => listener.close(deadlineMs),
  };
}

/** Headers of a well-formed request of the old era, with a key. */
export const validHeaders = (key = 'svc_live_caller'): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
});

export const toolCall = (name: string, args: object = {}, id: unknown = 1) =>
  ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }) as const;

/** One connection that is kept alive; counts how often it had to be made anew. */
export function openConnection(origin: string) {
  const client = new Client(origin);
  const opened: unknown[] = [];
  client.on('connect', () => opened.push(1));
  const send = async (options: Partial<Parameters<Client['request']>[0]>) => {
    const answer = await client.request({ path: '/mcp', method: 'POST', headers: validHeaders(), ...options });
    const text = await answer.body.text();
    const json = /^[{[]/.test(text) ? JSON.parse(text) : {};
    return { status: answer.statusCode, headers: answer.headers, text, json };
  };
  return {
    send,
    call: (name: string, args: object = {}, key?: string) =>
      send({ headers: validHeaders(key), body: JSON.stringify(toolCall(name, args)) }),
    connections: () => opened.length,
    close: () => client.destroy(),
  };
}

export function formatHttpRequest(body: object, headers = validHeaders()): string {
  const text = JSON.stringify(body);
  const fields = Object.entries({ host: 'localhost', ...headers, 'content-length': `${text.length}` });
  return `POST /mcp HTTP/1.1\r\n${fields.map((field) => field.join(': ')).join('\r\n')}\r\n\r\n${text}`;
}

/** A bare socket, for requests that no client would send. */
export function openRawSocket(port: number, localAddress?: string) {
  const socket: Socket = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) });
  socket.on('error', () => {});
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  return {
    socket,
    received: () => received,
    closed: new Promise<string>((resolve) => socket.once('close', () => resolve(received))),
  };
}
