import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { readConfig } from '../../src/config/read-config.ts';
import { describedTools } from '../../src/mcp/described-tools.ts';
import { listTools } from '../../src/mcp/list-tools.ts';
import { waitUntil } from '../support/deadline.ts';
import { respondWhenOpen, startUpstream } from '../support/faulty-upstream.ts';
import { createGate } from '../support/gate.ts';
import { createToolCall, openConnection, startHttp } from '../support/http.ts';
import { buildImportFlag, runCommand, startCommand, startHttpCommand } from '../support/process.ts';
import { hasRedis, startRedis } from '../support/store-servers.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { initialize, request } from '../transports/stdio/session.ts';

const baseUrl = 'https://api.example.com';
const folder = createTemporaryFolder();

const session = [initialize('2025-11-25'), request(2, 'tools/list'), createToolCall('whoami')]
  .map((message) => JSON.stringify(message))
  .join('\n');

/**
 * Runs a stdio server for one session, which lists the tools and calls `whoami`. Returns the tools, the result of the
 * call, and the log.
 */
async function callOnce(args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await runCommand(args, { env, input: session });
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const findResult = (id: number) => answers.find((answer) => answer.id === id)?.result;
  const { content, isError } = findResult(1);
  return { code, stderr, text: content[0].text as string, isError: isError === true, tools: findResult(2).tools };
}

describe('Starting the stdio server', () => {
  test('the stdio server starts without any settings and names the missing ones', async () => {
    const { code, stderr, text, isError, tools } = await callOnce([], {});
    expect([code, isError]).toEqual([0, true]);
    // The build computes the list of tools in advance. It must equal the list that the source code computes.
    expect(tools).toEqual(listTools(describedTools, { includesOutputSchemas: true }));
    for (const message of [stderr, text]) {
      expect(message).toContain('AD_LIBRARY_API_KEY (in the host\'s form: "API key")');
      expect(message).toContain('AD_LIBRARY_BASE_URL (in the host\'s form: "API address")');
    }
    expect(text).toContain('AD_LIBRARY_DEMO');
    expect(stderr).toMatch(/^ad-library-mcp: [^\n]+\n$/);
    const runWithKey = await runCommand([], { env: { AD_LIBRARY_API_KEY: 'svc_live_one' } });
    expect(runWithKey.stderr).not.toContain('AD_LIBRARY_API_KEY');
    // A user who starts the server in a terminal sees a hint. In this test, standard input is not a terminal.
    expect(await runCommand(['--demo'])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('the stdio server names all invalid environment variables and never prints their secrets', async () => {
    const env = {
      AD_LIBRARY_CREDIT_BUDGET: '2.5',
      AD_LIBRARY_TOOLS: 'a\u001b[2J\nad-library-mcp: fine,b\u009b',
      AD_LIBRARY_API_KEY: 'svc_live_CANARY x\u00e9',
    };
    const { code, stderr, text, isError } = await callOnce([], env);
    expect([code, isError]).toEqual([2, true]);
    for (const message of [stderr, text]) {
      for (const name of Object.keys(env)) expect(message).toContain(name);
      expect(message).toContain('AD_LIBRARY_API_KEY must be the key');
      expect(message).not.toMatch(/[^\n\P{Cc}]|CANARY/u);
    }
    expect(text).toContain('Ask the user to correct them');
    expect(stderr).not.toMatch(/^ad-library-mcp: fine/m);
  });

  test.each([
    [['--credit-budget', '2.5'], '--credit-budget must be a whole number from 0 to 1000000000'],
    [['--outptu', 'text'], "unknown option '--outptu' (Did you mean --output?)"],
    [['--api-key=svc_live_CANARY'], "unknown option '--api-key=svc_live_***'"],
    [['svc_live_CANARY'], "unknown command 'svc_live_***'"],
  ])('the stdio server rejects the arguments %j with exit code 2', async (args, problem) => {
    const { code, stdout, stderr } = await runCommand(args, { input: session });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`ad-library-mcp: ${problem}`);
  });
});

test('the http command exits with an error if no base URL is set or if a data folder is set', async () => {
  const { code, stderr } = await runCommand(['http'], { env: { AD_LIBRARY_FILES: 'kept' } });
  expect(code).toBe(2);
  expect(stderr).toMatch(/AD_LIBRARY_BASE_URL \(or --base-url\) must be set[^\n]*--demo\n/);
  expect(stderr).toContain('AD_LIBRARY_FILES must be left out');
});

test('a server whose port is in use prints one sentence and exits with code 1', async () => {
  const { port, close } = await startHttpCommand(['--base-url', baseUrl]);
  const database = join(folder, 'unused.db');
  for (const args of [
    ['http', '--base-url', baseUrl],
    ['library', 'serve', '--database', database],
  ]) {
    const { code, stdout, stderr } = await runCommand([...args, '--port', String(port)]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const problem = `ad-library-mcp: port ${port} of 127.0.0.1 is in use: choose another one with --port\n`;
    expect(stderr.endsWith(problem)).toBe(true);
  }
  await close();
});

test.skipIf(!hasRedis)('a server with a shared store exits with code 1 if its port is in use', async () => {
  const redis = await startRedis();
  onTestFinished(redis.close);
  const { port, close } = await startHttpCommand(['--base-url', baseUrl]);
  const env = { AD_LIBRARY_STATE_URL: redis.url, AD_LIBRARY_STATE_SECRET: 'a secret of at least 32 characters' };
  const { code, stderr } = await runCommand(['http', '--base-url', baseUrl, '--port', String(port)], { env });
  expect(code).toBe(1);
  expect(stderr).toContain(`port ${port} of 127.0.0.1 is in use`);
  await close();
});

test.skipIf(!hasRedis)('a server that fails during startup closes its connection to the shared store', async () => {
  const redis = await startRedis();
  onTestFinished(redis.close);
  const listConnections = () => redis.cli('CLIENT', 'LIST').trim().split('\n');
  const env = { AD_LIBRARY_STATE_URL: redis.url, AD_LIBRARY_STATE_SECRET: 'a secret of at least 32 characters' };
  const { stateUrl, stateSecret } = readConfig(env);
  const invalidProxy = { address: '10.0.0.0', prefixLength: 99, family: 'ipv4' as const };
  const server = startHttp({ baseUrl, stateUrl, stateSecret, trustedProxy: invalidProxy });
  await expect(server).rejects.toThrow('prefix');
  await waitUntil(() => listConnections().length === 1);
});

test('the error of a server whose host setting is not an address of this machine names the setting to change', async () => {
  const database = join(folder, 'unused.db');
  for (const [host, problem] of [
    // RFC 5737 reserves this address for documentation, so no machine has it.
    ['192.0.2.1', '192.0.2.1 is not an address of this machine'],
    ['host.invalid', 'the host host.invalid was not found'],
  ])
    for (const args of [
      ['http', '--base-url', baseUrl],
      ['library', 'serve', '--database', database],
    ]) {
      const { code, stdout, stderr } = await runCommand([...args, '--allowed-hosts', 'a.example', '--host', `${host}`]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(`ad-library-mcp: ${problem}: choose another`);
      expect(stderr).toMatch(/--host or AD_LIBRARY_HOST\n$/);
    }
});

test('an HTTP server prints its URL when it starts', async () => {
  const database = join(folder, 'ads.db');
  const readStartLines = async (args: string[], host: string) => {
    const serverProcess = startCommand([...args, '--allowed-hosts', 'a.example', '--host', host, '--port', '0']);
    await serverProcess.waitForStderr(/ on http:\/\/\S+\n/);
    serverProcess.child.kill();
    const stderr = (await serverProcess.ended).stderr.replace(
      /ad-library-mcp: pages at http:\S+:\d+\/p\/[\w-]{16}\/\n$/,
      '',
    );
    return stderr.replace(/:\d+(\/mcp)?\n$/, ':PORT$1');
  };
  const library = ['library', 'serve', '--database', database];
  const emptyLine = `ad-library-mcp: ${database} is empty; "library import" loads ads and pages into it\n`;
  expect(await readStartLines(library, '0.0.0.0')).toBe(`${emptyLine}ad-library-mcp: library on http://0.0.0.0:PORT`);
  const input =
    '{"id":"11111111-1111-4111-8111-111111111111"}\n{"pageId":"p","pageName":"P"}\n{"pageId":"q","pageName":"Q"}\n';
  await runCommand(['library', 'import', '-', '--database', database], { input });
  const countsLine = `ad-library-mcp: ${database} holds 1 ad and 2 pages\n`;
  expect(await readStartLines(library, '::1')).toBe(`${countsLine}ad-library-mcp: library on http://[::1]:PORT`);
  const http = ['http', '--base-url', baseUrl];
  expect(await readStartLines(http, '::1')).toBe('ad-library-mcp: listening on http://[::1]:PORT/mcp');
});

test('AD_LIBRARY_LOG_FORMAT=json prints every log message as JSON, except the line that says that the server is ready', async () => {
  const env = { AD_LIBRARY_LOG_FORMAT: 'json', AD_LIBRARY_KEYS: 'x' };
  const parseLines = (stderr: string) =>
    stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  const failed = await runCommand(['http'], { env });
  expect(failed.code).toBe(2);
  expect(parseLines(failed.stderr)).toMatchObject([
    { level: 'warn', name: 'ad-library-mcp', msg: expect.stringContaining('AD_LIBRARY_KEYS is not a setting') },
    { level: 'error', msg: expect.stringContaining('AD_LIBRARY_BASE_URL') },
  ]);
  const overStdio = await callOnce([], env);
  expect(parseLines(overStdio.stderr).at(-1)).toMatchObject({ msg: expect.stringContaining('calls will fail until') });
  const served = startCommand(['http', '--log-format', 'json', '--base-url', baseUrl, '--port', '0'], env);
  await served.waitForStderr(/ on http:\/\/\S+\n/);
  served.child.kill();
  const lines = (await served.ended).stderr.trim().split('\n');
  expect(lines.pop()).toMatch(/^ad-library-mcp: listening on http:/);
  expect(parseLines(lines.join('\n'))).toHaveLength(1);
});

const missingFolder = join(folder, 'missing');
test.each([
  ['an unknown option', ['http', '--nonsense'], 2, "unknown option '--nonsense'"],
  ['an unknown command', ['nonsense'], 2, "unknown command 'nonsense'"],
  ['an option without its value', ['http', '--port'], 2, "option '--port <number>' argument missing"],
  ['a group without a command', ['library'], 2, 'library needs a command'],
  ['an invalid setting', ['http', '--demo', '--cache-seconds', 'x'], 2, '--cache-seconds must be'],
  ['an unknown tool', ['call', 'nonsense', '--demo'], 2, 'there is no tool \\"nonsense\\"'],
  ['a missing file', ['library', 'import', missingFolder], 2, 'does not exist'],
  ['an unreadable database', ['library', 'serve', '--database', join(missingFolder, 'ads.db')], 1, ''],
  ['a result that is an error', ['call', 'get_ad', '{"adId":"x"}', '--json', '--demo'], 1, 'adId'],
])(
  'with AD_LIBRARY_LOG_FORMAT=json, a command reports its error as one line of JSON (error: %s)',
  async (_problem, args, code, message) => {
    const failed = await runCommand(args, { env: { AD_LIBRARY_LOG_FORMAT: ' json ' } });
    expect(failed.code).toBe(code);
    const lines = failed.stderr.trim().split('\n');
    expect(lines).toEqual([expect.stringContaining(message)]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'error',
      name: 'ad-library-mcp',
      msg: expect.any(String),
    });
  },
);

test.each([
  [
    'failed',
    '{"id":"x"}\n',
    1,
    { level: 'error', msg: expect.stringMatching(/nothing was read, .*\n {2}line 1: id: /) },
  ],
  ['worked', '{"pageId":"p","pageName":"P"}\n', 0, { level: 'info', msg: expect.stringContaining('0 ads and 1 page') }],
])(
  'with AD_LIBRARY_LOG_FORMAT=json, `library import` prints each report as one line of JSON (import: %s)',
  async (name, input, exitCode, report) => {
    const args = ['library', 'import', '-', '--pictures', '--database', join(folder, `${name}.db`)];
    const { code, stderr } = await runCommand(args, { input, env: { AD_LIBRARY_LOG_FORMAT: 'json' } });
    const reports = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect([code, reports[0]]).toMatchObject([exitCode, { name: 'ad-library-mcp', ...report }]);
    expect(reports.slice(1).map(({ msg }) => msg)).toEqual([
      'pictures: none is missing',
      'pictures: 0 pictures stored, 0.0 MB',
    ]);
  },
);

test('with AD_LIBRARY_LOG_FORMAT=json, the local library prints only its demo key and its URL as plain text', async () => {
  const env = { AD_LIBRARY_LOG_FORMAT: 'json' };
  const served = startCommand(['library', 'serve', '--demo', '--port', '0'], env);
  await served.waitForStderr(/pages at \S+/);
  served.child.kill();
  const [keyLine, urlLine, ...lines] = (await served.ended).stderr.trim().split('\n');
  expect(keyLine).toMatch(/^ad-library-mcp: demo key svc_live_/);
  expect(urlLine).toMatch(/^ad-library-mcp: library on http:/);
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([expect.stringMatching(/^pages at http:/)]);
});

test('with AD_LIBRARY_LOG_FORMAT=json, the error message about a port that is already in use is JSON', async () => {
  const { origin } = await startHttpCommand(['--demo']);
  const args = ['http', '--demo', '--port', new URL(origin).port];
  const { code, stderr } = await runCommand(args, { env: { AD_LIBRARY_LOG_FORMAT: 'json' } });
  expect([code, JSON.parse(stderr).msg]).toEqual([1, expect.stringContaining('is in use')]);
});

test.each([
  ['the flag selects text', ['--log-format', 'text'], 'json', false],
  ['the flag selects JSON', ['--log-format=json'], 'text', true],
  ['the value of the flag is invalid', ['--log-format', 'xml'], 'json', true],
  ['the value of the flag is missing', ['--log-format'], 'json', true],
])(
  'an error in the command line is printed in the log format that the user chose (case: %s)',
  async (_case, args, variable, isJson) => {
    const { code, stderr } = await runCommand(['http', '--nonsense', ...args], {
      env: { AD_LIBRARY_LOG_FORMAT: variable },
    });
    expect([code, stderr.startsWith('{')]).toEqual([2, isJson]);
  },
);

test.runIf(existsSync('/dev/full'))(
  'a command whose output file is on a full disk names the problem and exits with code 1',
  async () => {
    const writeToFullDisk = ['sh', '-c', 'exec "$@" > /dev/full', 'sh'];
    for (const args of [
      ['library', 'filters'],
      ['call', 'whoami', '--demo'],
    ]) {
      const { code, stderr } = await startCommand(args, {}, writeToFullDisk).ended;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^ad-library-mcp: standard output cannot be written: ENOSPC[^\n]*\n$/),
      });
    }
  },
);

test.each(['18.20.8', '20.18.3', '21.7.3', '22.1.0'])(
  'a command under Node %s exits and names the required version of Node',
  async (node) => {
    expect(packageJson.engines.node).toBe('^20.19.0 || >=22.2.0');
    const script = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${node}' } })`;
    expect(await runCommand(['call', 'whoami', '--demo'], { env: { NODE_OPTIONS: buildImportFlag(script) } })).toEqual({
      code: 1,
      stdout: '',
      stderr: `ad-library-mcp: needs Node 20.19 or newer, but not 21, 22.0 or 22.1; this is Node ${node}\n`,
    });
  },
);

test('a server reports a misspelled environment variable and suggests the closest setting', async () => {
  const env = {
    AD_LIBRARY_CREDITS_BUDGET: 'svc_live_CANARY',
    AD_LIBRARY_KEY: 'svc_live_CANARY',
    'AD_LIBRARY_\u001b[2J': '1',
    // The command ignores variables of other programs, and settings without a value.
    ...{ AD_LIBRARIES: '1', MY_AD_LIBRARY_KEY: '1', AD_LIBRARY_TOOLS: '' },
  };
  const { stderr } = await runCommand(['library', 'filters'], { env });
  expect(stderr.split('\n')).toEqual([
    'ad-library-mcp: AD_LIBRARY_CREDITS_BUDGET is not a setting and has no effect; did you mean AD_LIBRARY_CREDIT_BUDGET?',
    'ad-library-mcp: AD_LIBRARY_KEY is not a setting and has no effect; did you mean AD_LIBRARY_API_KEY?',
    String.raw`ad-library-mcp: AD_LIBRARY_\u001b[2J is not a setting and has no effect`,
    '',
  ]);
});

// Windows has no signals, and a killed process ends immediately there, so skip these tests.
describe.skipIf(process.platform === 'win32')('Signals to a server with a running call', () => {
  async function startDraining(signal: NodeJS.Signals) {
    const gate = createGate();
    const upstream = await startUpstream(respondWhenOpen(gate));
    onTestFinished(upstream.close);
    const { origin, process: running } = await startHttpCommand(['--base-url', upstream.baseUrl]);
    const client = openConnection(origin);
    onTestFinished(() => void client.close());
    const answer = client.call('whoami').catch(() => undefined);
    await upstream.waitForRequests(1);
    const probe = openConnection(origin);
    onTestFinished(() => void probe.close());
    // While a stopped server finishes its call, it still responds on connections that were open before the signal.
    const isReady = async () => (await probe.send({ method: 'GET', path: '/readyz' })).status === 200;
    expect(await isReady()).toBe(true);
    running.child.kill(signal);
    while (await isReady());
    return { gate, answer, running };
  }

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'a server that receives %s and then SIGTERM finishes the call that is running',
    async (signal) => {
      const { gate, answer, running } = await startDraining(signal);
      running.child.kill('SIGTERM');
      gate.open();
      expect((await answer)?.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
      const { code, stderr } = await running.ended;
      expect(code).toBe(0);
      expect(stderr).toMatch(/^ad-library-mcp: listening on \S+\n$/);
    },
  );

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'a server that receives %s and then SIGINT exits without waiting for the running call',
    async (signal) => {
      const { answer, running } = await startDraining(signal);
      const repeatedSignal = setInterval(() => running.child.kill('SIGINT'), 100);
      const { code } = await running.ended;
      clearInterval(repeatedSignal);
      expect(code).toBe(130);
      expect(await answer).toBeUndefined();
    },
  );
});
