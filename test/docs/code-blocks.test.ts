import { execFile, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { createCursorLink, createVsCodeLink } from '../../scripts/docs/reference.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { connectCommand, connectHttp, type TestClient } from '../support/clients.ts';
import { startHttp } from '../support/http.ts';
import { baselineCompilerFlags, type CommandResult, startCommand } from '../support/process.ts';
import { startServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { type CodeBlock, listCodeBlocks, pages, root } from './pages.ts';

/** The working folder of the code blocks, with the files that they import. */
const folder = createTemporaryFolder();
const ad = '{"id":"11111111-1111-4111-8111-111111111111"}\n';
for (const [name, content] of Object.entries({
  'ads.jsonl': ad,
  'pages.jsonl': '{"pageId":"p","pageName":"P"}\n',
  'page-1.json': `{"data":[${ad}]}`,
  'page-2.json.gz': gzipSync(`{"data":[${ad}]}`),
  'ads.csv': 'ad_archive_id,page_id,page_name\n1234567890123456,2345,P\n',
}))
  writeFileSync(join(folder, name), content);
for (const name of ['own-ads.csv', 'own-ads.jsonl'])
  copyFileSync(join(root, 'docs/examples', name), join(folder, name));
for (const name of ['dist', 'node_modules']) symlinkSync(join(root, name), join(folder, name));

const library = startCommand(['library', 'serve', '--demo', '--port', '0']);
const [, key = ''] = await library.waitForStderr(/demo key (\S+)$/m);
const [, baseUrl = ''] = await library.waitForStderr(/library on (\S+)$/m);
const http = await startHttp({ baseUrl });
const demo = await startServer({ config: { demo: true } });
afterAll(async () => {
  await demo.close();
  await http.close();
  library.child.kill();
  await library.ended;
});

// On a busy machine, gather_ads may stop at its deadline. Repeat the call until it is complete, because current_ads
// contains only complete searches.
while (!(await demo.call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 30 })).data.complete);
const [[adId]] = (await demo.call('query_ads', { sql: 'SELECT id FROM ads LIMIT 1' })).data.rows as [[string]];
const labels = { hook: 'question', format: 'product photo', angle: 'guarantee' };
await demo.call('label_ads', { labels: Object.entries(labels).map(([label, value]) => ({ adId, label, value })) });

const fill = (text: string) =>
  text
    .replaceAll('/path/to/ad-library-mcp/', root)
    .replaceAll('svc_live_…', key)
    .replaceAll('https://…', baseUrl)
    .replaceAll('http://127.0.0.1:3000/mcp', http.url);

const runners: Record<string, (text: string) => Promise<void>> = {
  json: runJson,
  sh: async (text) => {
    for (const line of text.split('\n')) await expectRuns(line);
  },
  sql: async (sql) => {
    const { text, isError, data } = await demo.call('query_ads', { sql });
    expect(isError, text).toBe(false);
    // Only the results of statements about ads have a note on missing ads.
    if (/\b(?:current_)?ads\b/.test(sql)) expect(text).toContain('Coverage');
    expect(data.rows).not.toEqual([]);
  },
  ts: async (text) => {
    if (text.includes('new Client(')) return runClient('client.mjs', text, process.execPath);
    const program = `${text}\nawait server.close();\nprocess.stdout.write('closed');`;
    const args = ['--input-type=module', '-e', program];
    expect((await promisify(execFile)(process.execPath, args, { cwd: root })).stdout).toBe('closed');
  },
  // Only CI has the Python package `mcp` installed.
  python: async (text) => {
    if (spawnSync('python3', ['-c', 'from mcp import Client']).status === 0)
      await runClient('client.py', text, 'python3');
  },
};

async function runClient(name: string, text: string, program: string): Promise<void> {
  // The folder contains node_modules, so Node.js finds the packages from its subfolders.
  const clientFolder = mkdtempSync(join(folder, 'client-'));
  const pathOf = (file: string) => join(clientFolder, file);
  writeFileSync(pathOf(name), fill(text));
  await promisify(execFile)(program, [pathOf(name)], { cwd: clientFolder });
  expect(readFileSync(pathOf('ads.csv'), 'utf8')).toContain('Page name');
  expect(readFileSync(pathOf('ads.jpg')).subarray(0, 2).toString('hex')).toBe('ffd8');
}

/** Blocks that already ran, by name. Several pages contain the same block, which needs to run only once. */
const runs = new Map<string, Promise<void> | undefined>();
function runOnlyOnce(name: string, run: () => Promise<void> | undefined): Promise<void> | undefined {
  if (!runs.has(name)) runs.set(name, run());
  return runs.get(name);
}

const runOnce = ({ language, text }: CodeBlock) => runOnlyOnce(text, () => runners[language]?.(text));

async function expectRuns(line: string): Promise<void> {
  const filled = fill(line);
  // Another program may use the documented port. Append `--port 0`, because the last flag wins.
  const serves = /main\.js http\b|library serve\b/.test(filled);
  const { code, stdout, stderr } = await runLine(serves ? `exec env ${filled} --port 0` : filled);
  expect({ line, code, stderr: code === 0 ? '' : stderr }).toEqual({ line, code: 0, stderr: '' });
  if (line.startsWith('claude mcp add ')) await expectAnswer(await connect(readClaude(JSON.parse(stdout))));
}

/** A shell function that stands in for Claude Code and prints its arguments. */
const claude = `claude() { node -p 'JSON.stringify(process.argv.slice(1))' -- "$@"; }`;

/** Runs a shell command in the folder. */
function runLine(line: string): Promise<CommandResult> {
  const child = spawn('sh', ['-c', `${claude}\n${line}`], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, AD_LIBRARY_API_KEY: key, NODE_OPTIONS: baselineCompilerFlags.join() },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
    // Stop a server as soon as it is ready.
    if (/(listening|library) on http/.test(stderr) && child.pid) process.kill(-child.pid, 'SIGTERM');
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

interface ServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
  headers?: Record<string, string>;
}

/** Returns the server entry that `claude mcp add` creates from these arguments, according to its help. */
function readClaude(cliArgs: string[]): ServerEntry {
  const pairs = (flag: string) => {
    const texts = cliArgs.filter((_, index) => cliArgs[index - 1] === flag);
    return Object.fromEntries(texts.map((text) => text.split(/(?:=|: )(.*)/)));
  };
  if (cliArgs.includes('http'))
    return { url: cliArgs.find((word) => word.startsWith('http://')) ?? '', headers: pairs('--header') };
  const [command = '', ...args] = cliArgs.slice(cliArgs.indexOf('--') + 1);
  return { command, args, env: pairs('-e') };
}

/** Placeholders that a host replaces with user input or environment variables. */
const inputs = /\$\{(?:input|env):[\w-]+\}/g;

/** Connects to every server in a host configuration and calls a tool. Validates the JSON if it is a filter file. */
async function runJson(text: string): Promise<void> {
  const value = JSON.parse(fill(text).replace(inputs, key));
  if (value.ads && value.pages) return readFilters(text);
  const servers: ServerEntry[] = Object.values(value.mcpServers ?? value.servers ?? { it: value });
  expect(servers).not.toEqual([]);
  for (const server of servers) await runOnlyOnce(JSON.stringify(server), () => connect(server).then(expectAnswer));
}

async function expectAnswer(client: TestClient): Promise<void> {
  const { isError, text } = await client.call('whoami');
  expect({ isError, text }).toEqual({ isError: false, text: expect.stringContaining('authenticated by: api_key') });
  await client.close();
}

function connect({ command: program, args = [], env, url, headers = {} }: ServerEntry): Promise<TestClient> {
  if (program) {
    // Some blocks omit the environment variables. Use the settings of the other blocks for them.
    const settings = env ?? { AD_LIBRARY_API_KEY: key, AD_LIBRARY_BASE_URL: baseUrl };
    return connectCommand('v1', { command: program, args, env: { HOME: folder, ...settings }, cwd: folder });
  }
  const [, headerKey] = /^Bearer (\S+)$/.exec(headers.Authorization ?? '') ?? [];
  return connectHttp('v1', String(url), headerKey);
}

function readFilters(text: string): void {
  const file = join(folder, 'filters.json');
  writeFileSync(file, text);
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  expect(searchFilters?.ads.map(({ key: name }) => name)).toEqual(
    JSON.parse(text).ads.map((filter: { key: string }) => filter.key),
  );
}

// The code blocks need a Unix shell.
describe.skipIf(process.platform === 'win32').each(pages)('$file', (page) => {
  const blocks = listCodeBlocks(page).filter(({ notRun }) => !notRun);

  test('every code block in the documentation either runs or says why it is not run', () => {
    expect(blocks.filter(({ language }) => !(language in runners)).map(({ title }) => title)).toEqual([]);
  });

  test.each(blocks.filter(({ language }) => language in runners))(
    'the code block runs without errors: $title',
    runOnce,
  );
});

test('every install link in the README adds a server that works', async () => {
  for (const link of [createVsCodeLink(true), createCursorLink(true)]) {
    expect(pages[0]?.text).toContain(link);
    const { searchParams: query } = new URL(link);
    const config = query.get('config');
    const ofCode = () => decodeURIComponent(query.get('url')?.replace('vscode:mcp/install?', '') ?? '');
    await runJson(config ? Buffer.from(config, 'base64').toString() : ofCode());
  }
});

// .mcp.json needs a link to the built command, which the folder does not have on Windows.
test.skipIf(process.platform === 'win32')('the file .mcp.json in the repository starts the demo server', () =>
  runJson(readFileSync(join(root, '.mcp.json'), 'utf8')),
);
