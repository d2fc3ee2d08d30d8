import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setTimeout as after } from 'node:timers/promises';
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type App, openApp } from '../../../src/app.ts';
import { allTools } from '../../../src/board/board.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { createLog } from '../../../src/log/log.ts';
import { versionKey } from '../../../src/mcp/protocol.ts';
import { serveStdio } from '../../../src/serve/stdio.ts';

let app: App;
let logged: string[];
const log = createLog('debug', (line) => logged.push(line));
beforeEach(async () => {
  logged = [];
  app = await openApp({ config: readConfig({}), log, now: Date.now, elapsed: Date.now, random: Math.random });
});
afterEach(() => app.close());

const envelope = {
  [versionKey]: '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const request = (id: number, method: string, params = {}) => ({ jsonrpc: '2.0', id, method, params });
const modern = (id: number, method: string) => request(id, method, { _meta: envelope });
const initialize = request(1, 'initialize', {
  protocolVersion: LATEST_PROTOCOL_VERSION,
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});

function startSession({ catalog, credentials } = app) {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const drainMs = 2000;
  const ended = serveStdio({
    catalog,
    credentials,
    log,
    now: Date.now,
    onCall: () => {},
    stopRequested: new Promise(() => {}),
    stdin,
    stdout,
    drainMs,
  });
  return { stdin, stdout, ended };
}

/** The answers of one session to messages that come one after the other, by their ids. */
async function session(...messages: object[]) {
  const { stdin, stdout, ended } = startSession();
  const answers: Record<string, Record<string, unknown>> = {};
  for (const message of messages) {
    stdin.write(`${JSON.stringify(message)}\n`);
    if (!('id' in message)) continue;
    const answer = JSON.parse(String((await once(stdout, 'data'))[0]));
    answers[answer.id] = answer;
  }
  stdin.end();
  await ended;
  return answers;
}

const toolsOf = (answer: Record<string, unknown> | undefined) => (answer?.result as { tools?: [] })?.tools;

test('a client that opens in the old era stays in it', async () => {
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const answers = await session(initialize, initialized, request(2, 'tools/list'), request(3, 'ping'));
  expect(answers[1]).toMatchObject({ result: { protocolVersion: LATEST_PROTOCOL_VERSION } });
  expect(toolsOf(answers[2])).toHaveLength(allTools.length);
  expect(answers[3]).toMatchObject({ result: {} });
});

test('a client that opens in the new era stays in it', async () => {
  const answers = await session(modern(1, 'tools/list'), modern(2, 'tools/list'), request(3, 'tools/list'));
  expect(toolsOf(answers[1])).toHaveLength(allTools.length);
  expect(toolsOf(answers[2])).toEqual(toolsOf(answers[1]));
  expect(answers[3]).toHaveProperty('error');
});

test('discovery alone does not choose the new era', async () => {
  const answers = await session(modern(7, 'server/discover'), modern(8, 'server/discover'), initialize);
  expect(answers[7]).toMatchObject({ result: { supportedVersions: expect.arrayContaining(['2026-07-28']) } });
  expect(answers[8]).toHaveProperty('result');
  expect(answers[1]).toMatchObject({ result: { protocolVersion: LATEST_PROTOCOL_VERSION } });
});

test.for([
  ['2025-11-25', {}],
  ['2026-07-28', { _meta: envelope }],
] as const)('of revision %s, all that came before the end of the input is answered', async ([revision, meta]) => {
  // A list of tools waits for the filters of a service on this machine.
  const slow = () => after(200, { status: 404, headers: { get: () => null }, text: async () => '' });
  const config = readConfig({ AD_LIBRARY_BASE_URL: 'http://127.0.0.1:9' });
  const own = await openApp({ config, log, now: Date.now, elapsed: Date.now, random: Math.random, fetch: slow });
  onTestFinished(() => own.close());
  const { stdin, stdout, ended } = startSession(own);
  let written = '';
  stdout.on('data', (more) => {
    written += more;
  });
  if (revision === '2025-11-25') stdin.write(`${JSON.stringify(initialize)}\n`);
  const free = ['query_ads', 'view_ads', 'get_credits'].map((name) => ['tools/call', { name, arguments: {} }] as const);
  const requests = [['tools/list'], ...free, ['prompts/list'], ['resources/list'], ...free] as const;
  stdin.end(
    requests.map(([method, params], at) => JSON.stringify(request(at + 2, method, { ...params, ...meta }))).join('\n'),
  );
  await ended;
  const ids = written
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id);
  expect(new Set(ids)).toEqual(
    new Set([...(revision === '2025-11-25' ? [1] : []), ...requests.map((_, at) => at + 2)]),
  );
});

test('an unreadable message is answered, and logged at level debug', async () => {
  const { stdin, stdout, ended } = startSession();
  stdin.end('not json\n');
  await ended;
  expect(JSON.parse(String(stdout.read()))).toMatchObject({ error: { code: -32_700 } });
  expect(logged).toEqual([expect.stringContaining('stdio')]);
});
