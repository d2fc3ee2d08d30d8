import { describe, expect, onTestFinished, test } from 'vitest';
import { answering, startUpstream } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { callOf, keepAlive, until } from '../support/http.ts';
import { run, serveHttp, start } from '../support/process.ts';

const address = 'https://api.example.com';

const opening = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
const session = [{ jsonrpc: '2.0', id: 0, method: 'initialize', params: opening }, callOf('whoami')]
  .map((message) => JSON.stringify(message))
  .join('\n');

/** The result of one call over stdio, and what the process said. Its last line has no line break. */
async function callOnce(args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await run(args, { env, input: session });
  const { result } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  return { code, stderr, text: result.content[0].text as string, isError: result.isError === true };
}

describe('over stdio', () => {
  test('what is missing is named at the start and in results, by variable and by the form of the host', async () => {
    const { code, stderr, text, isError } = await callOnce([], {});
    expect([code, isError]).toEqual([0, true]);
    for (const told of [stderr, text]) {
      expect(told).toContain('AD_LIBRARY_API_KEY (in the host\'s form: "API key")');
      expect(told).toContain('AD_LIBRARY_BASE_URL (in the host\'s form: "API address")');
    }
    expect(stderr).toMatch(/^ad-library-mcp: [^\n]+\n$/);
    const keyed = await run([], { env: { AD_LIBRARY_API_KEY: 'svc_live_one' } });
    expect(keyed.stderr).not.toContain('AD_LIBRARY_API_KEY');
    expect((await run(['--demo'])).stderr).toBe('');
  });

  test('wrong variables are all named at the start and in results, and no escape reaches the terminal', async () => {
    const env = {
      AD_LIBRARY_CREDIT_BUDGET: '2.5',
      AD_LIBRARY_TOOLS: 'a\u001b[2J\nad-library-mcp: fine,b\u009b',
      AD_LIBRARY_API_KEY: 'svc_live_CANARY x',
    };
    const { code, stderr, text, isError } = await callOnce([], env);
    expect([code, isError]).toEqual([2, true]);
    for (const told of [stderr, text]) {
      for (const name of Object.keys(env)) expect(told).toContain(name);
      expect(told).not.toMatch(/[^\n\P{Cc}]|CANARY/u);
    }
    expect(text).toContain('Ask the user to correct them');
    expect(stderr).not.toMatch(/^ad-library-mcp: fine/m);
  });

  test.each([
    [['--credit-budget', '2.5'], '--credit-budget must be a whole number from 0 to 1000000000'],
    [['stdio', '--tools', ','], '--tools must hold at least one name'],
    [['--outptu', 'text'], "unknown option '--outptu' (Did you mean --output?)"],
  ])('%j is wrong use: nothing is served', async (args, problem) => {
    const { code, stdout, stderr } = await run(args, { input: session });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`ad-library-mcp: ${problem}`);
  });
});

test('http without an address refuses to start, and names the settings', async () => {
  const { code, stderr } = await run(['http'], { env: { AD_LIBRARY_FILES: 'kept' } });
  expect(code).toBe(2);
  expect(stderr).toMatch(/AD_LIBRARY_BASE_URL \(or --base-url\) must be set[^\n]*--demo\n/);
  expect(stderr).toContain('AD_LIBRARY_FILES must be left out');
  expect((await run(['http', '--base-url', address, '--files', 'kept'])).stderr).toContain('--files must be left out');
});

// Signals are not sent on Windows: processes just end there.
describe.skipIf(process.platform === 'win32')('a server that finishes a call after the first signal', () => {
  async function draining(signal: NodeJS.Signals) {
    const gate = gateOf();
    const upstream = await startUpstream(answering(() => gate.opened.then(() => ({ authenticated: true }))));
    onTestFinished(upstream.close);
    const { origin, process: running } = await serveHttp(['--base-url', upstream.baseUrl]);
    const client = keepAlive(origin);
    onTestFinished(() => void client.close());
    const answer = client.call('whoami').catch(() => undefined);
    await until(() => upstream.requests.length === 1);
    const probe = keepAlive(origin);
    onTestFinished(() => void probe.close());
    // A connection that is open already is still answered.
    const isReady = async () => (await probe.send({ method: 'GET', path: '/readyz' })).status === 200;
    expect(await isReady()).toBe(true);
    running.child.kill(signal);
    while (await isReady());
    return { gate, answer, running };
  }

  test.each(['SIGTERM', 'SIGINT'] as const)('is not hurried by a SIGTERM after %s', async (signal) => {
    const { gate, answer, running } = await draining(signal);
    running.child.kill('SIGTERM');
    gate.open();
    expect((await answer)?.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect((await running.ended).code).toBe(0);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('ends at once at a SIGINT that comes later than %s', async (signal) => {
    const { answer, running } = await draining(signal);
    const again = setInterval(() => running.child.kill('SIGINT'), 100);
    const { code } = await running.ended;
    clearInterval(again);
    expect(code).toBe(130);
    expect(await answer).toBeUndefined();
  });
});

test('a process that is started by hand says so only to a terminal', async () => {
  const running = start(['--demo']);
  running.child.stdin?.end();
  expect(await running.ended).toEqual({ code: 0, stdout: '', stderr: '' });
});
