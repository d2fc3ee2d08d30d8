import { spawn } from 'node:child_process';
import { describe, expect } from 'vitest';
import { allTools } from '../../../src/board/board.ts';
import { testClient } from '../../support/client-suite.ts';
import { clientKinds, connectStdio } from '../../support/clients.ts';
import { delays, json, paid } from '../../support/faulty-upstream.ts';
import { test } from '../../support/fixtures.ts';
import { gateOf } from '../../support/gate.ts';
import { until } from '../../support/http.ts';
import { command, run, start } from '../../support/process.ts';
import type { TestService } from '../../support/service.ts';

describe.each(clientKinds)('a %s client over stdio', (kind) => {
  testClient((args) => connectStdio(kind, args));

  test('without key or address lists the tools and is told what to set', async () => {
    const client = await connectStdio(kind, []);
    expect(await client.listTools()).toHaveLength(allTools.length);
    const { text, isError, error } = await client.call('search_ads');
    expect(isError).toBe(true);
    expect(error).toMatchObject({ kind: 'no_api_key', retryable: false });
    expect(text).toMatch(/AD_LIBRARY_API_KEY.*AD_LIBRARY_BASE_URL.*AD_LIBRARY_DEMO/);
    await client.close();
  });
});

describe('the service over stdio', () => {
  const settings = ({ apiKey, baseUrl }: Pick<TestService, 'apiKey' | 'baseUrl'>) => ({
    AD_LIBRARY_API_KEY: apiKey,
    AD_LIBRARY_BASE_URL: baseUrl,
  });

  test('is asked with the key of the environment', async ({ service }) => {
    const client = await connectStdio('v1', [], settings(service));
    expect((await client.call('whoami')).data).toMatchObject({ authenticated: true });
    await client.close();
  });

  test('refuses a wrong key, and the answer says what to check', async ({ service }) => {
    const client = await connectStdio('v1', [], settings({ ...service, apiKey: 'svc_live_wrong' }));
    const { text, error } = await client.call('search_ads');
    expect(error).toMatchObject({ kind: 'unauthorized', status: 401 });
    expect(text).toContain('developer portal');
    expect(text).not.toContain('svc_live_wrong');
    await client.close();
  });

  test('that does not listen is reported within the deadline', async ({ service }) => {
    const client = await connectStdio(
      'v1',
      ['--timeout-ms', '2000'],
      settings({ ...service, baseUrl: 'http://127.0.0.1:9' }),
    );
    const { text, error } = await client.call('search_ads');
    expect(error).toMatchObject({ kind: 'network', retryable: true });
    expect(text).toContain('AD_LIBRARY_BASE_URL');
    expect(text).toContain('Nothing was sent, nothing was charged');
    await client.close();
  });

  test('that hangs is abandoned at the end of input', async ({ upstream, service }) => {
    upstream.does(delays.hangs);
    const input = `${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`;
    const { code } = await run([], { env: settings({ ...service, baseUrl: upstream.baseUrl }), input });
    expect(code).toBe(0);
    await upstream.requests[0]?.left;
    expect(upstream.requests.map(({ path }) => path)).toEqual(['/v1/whoami']);
  });

  test('is waited for when the process is asked to end, so that what is paid for is delivered', async ({
    upstream,
    service,
  }) => {
    const gate = gateOf();
    const answer = json({ items: [], cursor: null, hasMore: false }, { headers: paid(5) });
    upstream.does((...exchange) => void gate.opened.then(() => answer(...exchange)));
    const running = start(['--log-level', 'debug'], settings({ ...service, baseUrl: upstream.baseUrl }));
    running.child.stdin?.write(`${JSON.stringify(initialize)}\n${JSON.stringify(callOf('search_ads'))}\n`);
    await upstream.reached(1);
    running.child.kill('SIGTERM');
    gate.open();
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      id: 2,
      result: { structuredContent: { receipt: { charged: 5 } } },
    });
  });

  test('is waited for at the end of input, as a shell pipes it', async ({ service }) => {
    const input = `${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`;
    const { code, stdout } = await run([], { env: settings(service), input });
    expect(code).toBe(0);
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      id: 2,
      result: { structuredContent: { authenticated: true } },
    });
  });
});

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const callOf = (name: string) => ({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name, arguments: {} } });

const askHttp = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(callOf('whoami')),
  });

describe('the pipes', () => {
  test('carry nothing but the protocol on standard output', async () => {
    const { stdout, stderr, code } = await run(['--demo'], { input: `${JSON.stringify(initialize)}\nnot json\n` });
    expect(code).toBe(0);
    expect(stderr).toBe('');
    const lines = stdout.split('\n').filter((line) => line !== '');
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  });

  test('answer what came before the end of input, as a shell pipes it', async () => {
    const list = { jsonrpc: '2.0', id: 3, method: 'tools/list' };
    const { stdout, code } = await run([], { input: `${JSON.stringify(initialize)}\n${JSON.stringify(list)}\n` });
    expect(code).toBe(0);
    expect(
      stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).id),
    ).toEqual([1, 3]);
  });

  test('may close on the reading side without a crash', async () => {
    const running = start(['--demo']);
    running.child.stdout?.destroy();
    running.child.stdin?.write(`${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`);
    running.child.stdin?.on('error', () => {});
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/at .*\.js:\d+/);
  });

  test.each([
    ['stdio', ['--demo', '--log-level', 'debug']],
    ['HTTP', ['http', '--demo', '--port', '0', '--log-level', 'debug']],
  ])('of the log may close on the reading side, and %s goes on', async (_, args) => {
    const running = start(args);
    const { child } = running;
    const listening = args[0] === 'http' ? await running.says(/listening on (\S+)/) : undefined;
    child.stderr?.destroy();
    for (let call = 0; call < 5; call++) {
      if (listening) expect((await askHttp(listening[1] ?? '')).status).toBe(200);
      else {
        child.stdin?.write(`not json\n${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`);
        await new Promise((resolve) => child.stdout?.once('data', resolve));
      }
    }
    child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  test('of the log may stay unread, and lines are dropped', async () => {
    const { command: file, args } = command(['--demo', '--log-level', 'debug']);
    const child = spawn(file, args, { stdio: 'pipe', env: { PATH: process.env.PATH } });
    const { stdin, stdout, stderr } = child;
    let answers = 0;
    stdout.on('data', (bytes: Buffer) => {
      answers += bytes.toString().split('\n').length - 1;
    });
    const problems = 50_000;
    stdin.write('no message\n'.repeat(problems));
    await until(() => answers === problems);
    let logged = '';
    stderr.on('data', (bytes: Buffer) => {
      logged += bytes;
    });
    stdin.write(`${JSON.stringify(initialize)}\n`);
    while (!logged.includes('info: call')) {
      stdin.write(`${JSON.stringify(callOf('whoami'))}\n`);
      await new Promise((resolve) => stdout.once('data', resolve));
    }
    expect(logged.length).toBeLessThan(2 * 1024 * 1024);
    stdin.end();
    await new Promise((resolve) => child.once('close', resolve));
  });

  test('SIGTERM ends the process cleanly', async () => {
    const running = start(['--demo']);
    running.child.stdin?.write(`${JSON.stringify(initialize)}\n`);
    await new Promise((resolve) => running.child.stdout?.once('data', resolve));
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });
});
