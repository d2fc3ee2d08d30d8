import { afterAll, describe, expect } from 'vitest';
import { testClient } from '../../support/client-suite.ts';
import { clientKinds, connectStdio, type TestClient } from '../../support/clients.ts';
import { waitUntil } from '../../support/deadline.ts';
import {
  createCreditHeaders,
  respondAsDocumented,
  respondWithJson,
  type Upstream,
} from '../../support/faulty-upstream.ts';
import { test } from '../../support/fixtures.ts';
import { createGate } from '../../support/gate.ts';
import { createToolCall, createValidHeaders } from '../../support/http.ts';
import { runCommand, startCommand, startHttpCommand } from '../../support/process.ts';
import { startService } from '../../support/service.ts';
import { expectProgress } from '../expect-progress.ts';
import { initialize, request } from './session.ts';

const service = await startService();
afterAll(() => service.close());

describe.each(clientKinds)('A %s client over stdio', (kind) => {
  let client: TestClient;
  testClient(async () => {
    const environment = { AD_LIBRARY_API_KEY: service.createKey(), AD_LIBRARY_BASE_URL: service.baseUrl };
    client = await connectStdio(kind, [], environment);
    return client;
  });

  test('gather_ads over stdio reports its progress to the client after each result page', () =>
    expectProgress(client, ['DE']));
});

const linesOf = (...messages: object[]) => messages.map((message) => `${JSON.stringify(message)}\n`).join('');
const session = (tool: string) => linesOf(initialize('2025-11-25'), createToolCall(tool, {}, 2));

const startIn = ({ baseUrl }: Upstream) =>
  startCommand(['--base-url', baseUrl, '--log-level', 'debug'], { AD_LIBRARY_API_KEY: 'svc_live_piped' });

test.for(['the end of the input', 'SIGTERM'])(
  'the stdio server returns the result of a running paid call after %s',
  async (end, { upstream }) => {
    const gate = createGate();
    const answer = respondWithJson({ items: [], cursor: null, hasMore: false }, { headers: createCreditHeaders(5) });
    upstream.respondWith((...exchange) => void gate.opened.then(() => answer(...exchange)));
    const { child, ended } = startIn(upstream);
    child.stdin?.write(session('search_ads'));
    await upstream.waitForRequests(1);
    if (end === 'SIGTERM') child.kill(end);
    else child.stdin?.end();
    gate.open();
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({ id: 2, result: { structuredContent: { receipt: { charged: 5 } } } });
  },
);

describe('The input and output pipes of the stdio command', () => {
  test.beforeEach(({ upstream }) => upstream.respondWith(respondAsDocumented));

  test('the stdio server writes only protocol messages to standard output', async () => {
    const input = `${linesOf(initialize('2025-11-25'))}not json\n${linesOf(request(3, 'tools/list'))}`;
    const { stdout, stderr, code } = await runCommand(['--demo'], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([0, null, 3].map((id) => ({ jsonrpc: '2.0', id })));
  });

  test('the stdio server exits with code 0 when the program that reads its output disconnects', async () => {
    const running = startCommand(['--demo']);
    running.child.stdout?.destroy();
    running.child.stdin?.on('error', () => {}).write(session('whoami'));
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/at .*\.js:\d+/);
  });

  test('the stdio and HTTP servers keep running when the program that reads their log disconnects', async ({
    upstream,
  }) => {
    const piped = startIn(upstream);
    const { url, process: listening } = await startHttpCommand([
      '--base-url',
      upstream.baseUrl,
      '--log-level',
      'debug',
    ]);
    for (const { child } of [piped, listening]) child.stderr?.destroy();
    for (let call = 0; call < 5; call++) {
      const body = JSON.stringify(createToolCall('whoami'));
      expect((await fetch(url, { method: 'POST', headers: createValidHeaders(), body })).status).toBe(200);
      piped.child.stdin?.write(`not json\n${session('whoami')}`);
      await new Promise((resolve) => piped.child.stdout?.once('data', resolve));
    }
    for (const { child, ended } of [piped, listening]) {
      child.kill('SIGTERM');
      expect((await ended).code).toBe(0);
    }
  });

  test('the stdio server drops log lines instead of buffering them if no program reads its log', async ({
    upstream,
  }) => {
    const running = startIn(upstream);
    const { stdin, stdout, stderr } = running.child;
    stderr?.pause();
    let answers = 0;
    stdout?.on('data', (text: string) => {
      answers += text.split('\n').length - 1;
    });
    const problems = 30_000;
    stdin?.write('no message\n'.repeat(problems));
    await waitUntil(() => answers === problems);
    stderr?.resume();
    stdin?.write(linesOf(initialize('2025-11-25')));
    while (!running.stderr().includes('info: call')) {
      stdin?.write(linesOf(createToolCall('whoami')));
      await new Promise((resolve) => stdout?.once('data', resolve));
    }
    expect(running.stderr().length).toBeLessThan(2 * 1024 * 1024);
    stdin?.end();
    expect((await running.ended).code).toBe(0);
  });
});
