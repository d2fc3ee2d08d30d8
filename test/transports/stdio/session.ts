import { PassThrough } from 'node:stream';
import { onTestFinished } from 'vitest';
import { openApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import type { Config } from '../../../src/config/settings.ts';
import { createCallLogger, createLogger } from '../../../src/logging/log.ts';
import { serveStdio } from '../../../src/transports/stdio.ts';
import { mcpAppsCapabilities } from '../../support/capabilities.ts';
import { waitUntil } from '../../support/deadline.ts';
import { respondAsDocumented, startUpstream } from '../../support/faulty-upstream.ts';
import { createGate } from '../../support/gate.ts';
import { createValidHeaders } from '../../support/http.ts';

/** The client information that revision 2026-07-28 requires in the `_meta` of each request. */
export const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': mcpAppsCapabilities,
};

export const request = (id: number | string, method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

export const initialize = (protocolVersion: string, name = 'test', capabilities: object = mcpAppsCapabilities) =>
  request(0, 'initialize', { protocolVersion, capabilities, clientInfo: { name, version: '1' } });

/** Returns the headers and the body of an HTTP request of revision 2026-07-28. */
export const createLatestRequest = (method: string, params: Record<string, unknown> = {}) => ({
  headers: {
    ...{ ...createValidHeaders(), 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
    ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
  },
  body: JSON.stringify(request(1, method, { ...params, _meta: envelope })),
});

/**
 * Opens a stdio session over two streams in this process.
 * @param options `behaviour` sets the API's responses. With an empty `revision`, no handshake is sent
 */
export async function openSession({
  behaviour = respondAsDocumented,
  revision = '2025-11-25',
  drainMs = 2000,
  now = Date.now,
  fetch = undefined as Parameters<typeof openApp>[0]['fetch'],
  settings = {} as Partial<Config>,
} = {}) {
  const upstream = await startUpstream(behaviour);
  onTestFinished(upstream.close);
  const logged: string[] = [];
  const log = createLogger('debug', (line) => logged.push(line));
  const config = { ...readConfig({ AD_LIBRARY_API_KEY: 'svc_live_one' }), baseUrl: upstream.baseUrl, ...settings };
  const app = await openApp({ config, log, now, monotonicNow: now, random: Math.random, ...(fetch && { fetch }) });
  onTestFinished(() => app.close());
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const { catalog, credentials } = app;
  const { opened: stopRequested, open: stop } = createGate();
  const streams = { stdin, stdout, stopRequested, drainMs };
  const sessionEnd = serveStdio({
    catalog,
    credentials,
    log,
    monotonicNow: now,
    onCall: createCallLogger(log),
    ...streams,
  });
  onTestFinished(() => void stdin.end());
  const lines: ReturnType<typeof JSON.parse>[] = [];
  let text = '';
  stdout.on('data', (more) => {
    const textLines = (text + more).split('\n');
    text = textLines.pop() ?? '';
    lines.push(...textLines.map((part) => JSON.parse(part)));
  });
  const send = (...values: object[]) => stdin.write(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  const sendRequest = async (message: ReturnType<typeof request>) => {
    const { length } = lines;
    send(message);
    const find = () => lines.find(({ id }, at) => at >= length && id === message.id);
    await waitUntil(() => find() !== undefined);
    return find();
  };
  if (revision) await sendRequest(initialize(revision));
  lines.length = 0;
  return { upstream, stdin, stdout, send, ask: sendRequest, lines, logged, ended: sessionEnd, stop };
}
