import { spawn } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testClient } from '../../support/client-suite.ts';
import { clientKinds, connectStdio } from '../../support/clients.ts';
import { until } from '../../support/http.ts';
import { command, run, start } from '../../support/process.ts';
import { startService, type TestService } from '../../support/service.ts';

describe.each(clientKinds)('a %s client over stdio', (kind) => {
  testClient((args) => connectStdio(kind, args));

  test('without key or address lists the tools and is told what to set', async () => {
    const client = await connectStdio(kind, []);
    expect(await client.listTools()).toHaveLength(10);
    const { text, isError, error } = await client.call('search_ads');
    expect(isError).toBe(true);
    expect(error).toMatchObject({ kind: 'no_api_key', retryable: false });
    expect(text).toMatch(/AD_LIBRARY_API_KEY.*AD_LIBRARY_BASE_URL.*AD_LIBRARY_DEMO/);
    await client.close();
  });
});

describe('the service over stdio', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  const settings = (key: string, address = service.baseUrl) => ({
    AD_LIBRARY_API_KEY: key,
    AD_LIBRARY_BASE_URL: address,
  });

  test('is asked with the key of the environment', async () => {
    const client = await connectStdio('v1', [], settings(service.apiKey));
    expect((await client.call('whoami')).data).toMatchObject({ authenticated: true });
    await client.close();
  });

  test('refuses a wrong key, and the answer says what to check', async () => {
    const client = await connectStdio('v1', [], settings('svc_live_wrong'));
    const { text, error } = await client.call('search_ads');
    expect(error).toMatchObject({ kind: 'unauthorized', status: 401 });
    expect(text).toContain('developer portal');
    expect(text).not.toContain('svc_live_wrong');
    await client.close();
  });

  test('that is dead gives an answer within the deadline', async () => {
    const client = await connectStdio('v1', ['--timeout-ms', '2000'], settings(service.apiKey, 'http://127.0.0.1:9'));
    const { text, error } = await client.call('search_ads');
    expect(error).toMatchObject({ kind: 'network', retryable: true });
    expect(text).toContain('AD_LIBRARY_BASE_URL');
    expect(text).toContain('Nothing was sent, nothing was charged');
    await client.close();
  });

  test('that hangs is left soon after the end of input', async () => {
    const aborted: string[] = [];
    const hanging = createServer((request) => request.once('close', () => aborted.push(request.url ?? '')));
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
    const input = `${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`;
    const { code } = await run([], { env: settings(service.apiKey, address), input });
    expect(code).toBe(0);
    await new Promise((resolve) => hanging.close(resolve));
    expect(aborted).toEqual(['/v1/whoami']);
  });

  test('is waited for when the process is asked to end, so that what is paid for is delivered', async () => {
    const held: ServerResponse[] = [];
    const holding = createServer((_, response) => void held.push(response));
    await new Promise<void>((resolve) => holding.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(holding.address() as AddressInfo).port}`;
    const running = start(['--log-level', 'debug'], settings(service.apiKey, address));
    running.child.stdin?.write(`${JSON.stringify(initialize)}\n${JSON.stringify(callOf('search_ads'))}\n`);
    await until(() => held.length === 1);
    running.child.kill('SIGTERM');
    held[0]?.setHeader('x-service-credits-charged', '5').end('{"items":[],"cursor":null,"hasMore":false}');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      id: 2,
      result: { structuredContent: { receipt: { charged: 5 } } },
    });
    await new Promise((resolve) => holding.close(resolve));
  });

  test('is waited for at the end of input, as a shell pipes it', async () => {
    const input = `${JSON.stringify(initialize)}\n${JSON.stringify(callOf('whoami'))}\n`;
    const { code, stdout } = await run([], { env: settings(service.apiKey), input });
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
