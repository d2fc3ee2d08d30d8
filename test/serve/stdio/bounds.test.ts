import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { createLog, logCalls } from '../../../src/log/log.ts';
import { serveStdio } from '../../../src/serve/stdio.ts';
import { answering, delays, startUpstream } from '../../support/faulty-upstream.ts';
import { gateOf } from '../../support/gate.ts';
import { until } from '../../support/http.ts';

interface Answer {
  id: number;
  result?: {
    contents?: { text: string }[];
    isError?: boolean;
    structuredContent?: object;
    _meta?: Record<string, { kind: string }>;
  };
  error?: { code: number; message: string };
}

const identity = { authenticated: true, authSource: 'api_key' };
const request = (id: number, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params });
const whoami = (id: number) => request(id, 'tools/call', { name: 'whoami', arguments: {} });
const initialize = (protocolVersion: string) =>
  request(0, 'initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } });

const identifies = answering(() => identity);

/** Identifies the caller once the gate is open. */
const heldBy = (gate: ReturnType<typeof gateOf>) => answering(() => gate.opened.then(() => identity));

const never = new Promise<void>(() => {});

/** A session over two streams against a service that behaves as a test says. */
async function open({ behaviour = identifies, revision = '2025-11-25', drainMs = 2000, now = Date.now }) {
  const upstream = await startUpstream(behaviour);
  onTestFinished(upstream.close);
  const log = createLog('silent', () => {});
  const config = { ...readConfig({ AD_LIBRARY_API_KEY: 'svc_live_one' }), baseUrl: upstream.baseUrl };
  const app = await openApp({ config, log, now, elapsed: now, random: Math.random });
  onTestFinished(() => app.close());
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const streams = { stdin, stdout, stopRequested: never, drainMs };
  const { catalog, credentials } = app;
  const ended = serveStdio({ catalog, credentials, log, now, onCall: logCalls(log), ...streams });
  onTestFinished(() => void stdin.end());
  const lines: (Answer | Answer[])[] = [];
  let text = '';
  const read = () =>
    stdout.on('data', (more) => {
      const parts = (text + more).split('\n');
      text = parts.pop() ?? '';
      lines.push(...parts.map((line) => JSON.parse(line)));
    });
  const send = (...values: object[]) => stdin.write(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  read();
  send(initialize(revision));
  await until(() => lines.length === 1);
  lines.pop();
  return { upstream, stdin, stdout, send, lines, ended };
}

describe('calls at once', () => {
  test('are limited to 32 with 256 waiting, and more are busy', async () => {
    const gate = gateOf();
    const { upstream, send, lines } = await open({ behaviour: heldBy(gate) });
    send(...Array.from({ length: 300 }, (_, id) => whoami(id + 1)));
    await until(() => lines.length === 300 - 32 - 256);
    for (const line of lines)
      expect(line).toMatchObject({ result: { _meta: { 'ad-library/error': { kind: 'busy' } } } });
    await until(() => upstream.requests.length === 32);
    gate.open();
    await until(() => lines.length === 300);
    expect(lines.filter((line) => !Array.isArray(line) && line.result?.isError !== true)).toHaveLength(288);
  });

  test('have waited as a part of the time they have', async () => {
    const gate = gateOf();
    let late = 0;
    const now = () => Date.now() + late;
    const { upstream, send, lines } = await open({ behaviour: heldBy(gate), now });
    send(...Array.from({ length: 33 }, (_, id) => whoami(id + 1)));
    await until(() => upstream.requests.length === 32);
    upstream.does(delays.hangs);
    late = 45_000;
    gate.open();
    await until(() => lines.length === 33);
    expect(lines.at(-1)).toMatchObject({ id: 33, result: { _meta: { 'ad-library/error': { kind: 'timeout' } } } });
  });

  test('are not read while their answers are unread', async () => {
    const { send, stdin, stdout, lines } = await open({});
    // The first one asks the service for its filters.
    send(request(0, 'tools/list'));
    await until(() => lines.length === 1);
    lines.length = 0;
    stdout.pause();
    const lists = Array.from({ length: 2000 }, (_, id) => request(id + 1, 'tools/list'));
    send(...lists);
    // All that can happen without a reader happens in these turns.
    for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
    const held = stdout.readableLength + stdout.writableLength;
    stdout.resume();
    stdin.end();
    await until(() => lines.length === lists.length);
    expect(held).toBeLessThan(JSON.stringify(lines).length / 10);
  });
});

test.each([
  ['one by one', '2025-11-25', 12],
  ['in batches of ten', '2025-03-26', 4],
])(
  'reads of large files, %s, are made no faster than they are read, and each is answered',
  { timeout: 120_000 },
  async (_, revision, requests) => {
    const { send, stdout, lines } = await open({ revision });
    const sql = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10000)
      SELECT printf('%.*c', 1000, 'a') AS t FROM n`;
    send(request(1, 'tools/call', { name: 'export_ads', arguments: { sql } }));
    await until(() => lines.length === 1);
    const { uri, bytes } = Object((lines.shift() as Answer).result?.structuredContent) as {
      uri: string;
      bytes: number;
    };
    stdout.pause();
    const isBatch = revision === '2025-03-26';
    let id = 10;
    const read = () => request(++id, 'resources/read', { uri });
    send(...Array.from({ length: requests }, () => (isBatch ? Array.from({ length: 10 }, read) : read())));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const held = stdout.readableLength + stdout.writableLength;
    stdout.resume();
    await vi.waitUntil(() => lines.length === requests, { timeout: 100_000 });
    const answers = lines.flat();
    const whole = answers.filter(({ result }) => result?.contents?.[0]?.text.length === bytes - 2);
    expect(held).toBeLessThan(6 * bytes);
    expect(answers).toHaveLength(isBatch ? 10 * requests : requests);
    // Of a batch, what there was room for.
    expect(whole.length).toBeGreaterThanOrEqual(requests);
    for (const { error } of answers)
      if (error) expect(error.message).toContain('no room for all of this in one answer');
  },
);

describe('a batch', () => {
  test('of revision 2025-03-26 is answered in one line', async () => {
    const { send, lines } = await open({ revision: '2025-03-26' });
    send([whoami(1), { jsonrpc: '2.0', method: 'notifications/initialized' }, request(2, 'ping'), request(3, 'none')]);
    await until(() => lines.length === 1);
    const [answers] = lines as [Answer[]];
    expect(answers.toSorted((a, b) => a.id - b.id)).toMatchObject([
      { id: 1, result: { structuredContent: { authenticated: true } } },
      { id: 2, result: {} },
      { id: 3, error: { code: -32_601 } },
    ]);
  });

  test('of notifications alone has no answer, and malformed requests have one', async () => {
    const { send, lines } = await open({ revision: '2025-03-26' });
    send([{ jsonrpc: '2.0', method: 'notifications/initialized' }]);
    send([request(1, 'tools/call', { name: 5 }), request(2, 'ping')]);
    await until(() => lines.length === 1);
    expect(lines[0]).toMatchObject([
      { id: 1, error: { code: -32_602 } },
      { id: 2, result: {} },
    ]);
  });

  test('is answered as a whole, whatever is cancelled in it', async () => {
    const gate = gateOf();
    const { upstream, send, lines } = await open({
      revision: '2025-03-26',
      behaviour: heldBy(gate),
    });
    send([whoami(1), request(2, 'ping')]);
    await until(() => upstream.requests.length === 1);
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, request(3, 'ping'));
    await until(() => lines.length === 1);
    gate.open();
    await until(() => lines.length === 2);
    expect(lines[1]).toMatchObject([{ id: 2 }, { id: 1, result: { structuredContent: { authenticated: true } } }]);
  });

  test.each([
    ['under another revision', '2025-06-18', [request(1, 'ping')]],
    ['of no message', '2025-03-26', []],
    ['of eleven messages', '2025-03-26', Array.from({ length: 11 }, (_, id) => request(id, 'ping'))],
    ['with an id twice', '2025-03-26', [request(1, 'ping'), request(1, 'ping')]],
    ['that holds no messages', '2025-03-26', [1, 2]],
  ])('%s is refused', async (_, revision, batch) => {
    const { send, lines } = await open({ revision });
    send(batch, request(99, 'ping'));
    await until(() => lines.length === 2);
    expect(lines).toMatchObject([
      { id: null, error: { code: -32_600 } },
      { id: 99, result: {} },
    ]);
  });
});

describe('at the end of input', () => {
  test('calls under way are answered', async () => {
    const gate = gateOf();
    const { upstream, send, stdin, lines, ended } = await open({ behaviour: heldBy(gate) });
    send(whoami(1), whoami(2));
    stdin.end();
    await until(() => upstream.requests.length === 2);
    gate.open();
    await ended;
    expect(lines).toHaveLength(2);
  });

  test('calls are aborted that take longer than the drain', async () => {
    const { upstream, send, stdin, lines, ended } = await open({ behaviour: delays.hangs, drainMs: 200 });
    send(whoami(1));
    stdin.end();
    await ended;
    await until(() => upstream.requests[0]?.aborted === true);
    expect(lines).toEqual([]);
  });

  test('the session ends at once when the output is closed', async () => {
    const { upstream, send, stdout, ended } = await open({ behaviour: delays.hangs, drainMs: 600_000 });
    send(whoami(1));
    await until(() => upstream.requests.length === 1);
    stdout.destroy();
    await ended;
    await until(() => upstream.requests[0]?.aborted === true);
  });
});
