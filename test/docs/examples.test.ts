import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { tools } from '../../src/tools/catalog.ts';
import { AdService } from '../support/ad-service.ts';
import { startUpstream } from '../support/faulty-upstream.ts';
import { findFreePort } from '../support/loopback.ts';
import { startHttpCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { root } from './pages.ts';

const run = (...[program = '', ...args]: string[]) => spawnSync(program, args, { cwd: root, encoding: 'utf8' });
const python = (...args: string[]) => run('python3', ...args);
const hasPython = python('--version').status === 0;
const hasClient = python('-c', 'from mcp import Client').status === 0;
const unless = hasClient ? '' : ' (not run: `pip install mcp` first)';
const pythonExample = 'docs/examples/python/count_and_gather.py';

test.skipIf(!hasPython)('the Python example compiles without errors', () => {
  const compiled = join(createTemporaryFolder(), 'example.pyc');
  const { status, stderr } = python(
    '-c',
    `import py_compile; py_compile.compile('${pythonExample}', '${compiled}', doraise=True)`,
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

function buildTypeScriptExample(): string {
  const example = join(root, 'docs/examples/typescript/count-and-gather.ts');
  const outfile = join(createTemporaryFolder(), 'count-and-gather.mjs');
  buildSync({ entryPoints: [example], outfile, bundle: true, platform: 'node', format: 'esm' });
  return outfile;
}

// Run the example twice: the second run reads stored ads, and its results have other fields.
test('the TypeScript example program counts ads, gathers them and queries them with SQL', async () => {
  const program = buildTypeScriptExample();
  await expectTwice((url) => run(process.execPath, program, url), 'complete: true.');
});

/** Runs an example against a service. Returns the output of the example. */
async function runWithService(
  [program = '', ...args]: string[],
  { service, delayMs = 0, flags: moreFlags = [] }: { service: AdService; delayMs?: number; flags?: string[] },
): Promise<string> {
  const upstream = await startUpstream((...exchange) => void delay(delayMs).then(() => service.respond(...exchange)));
  const filtersFile = join(createTemporaryFolder(), 'filters.json');
  writeFileSync(filtersFile, JSON.stringify({ ads: [{ key: 'displayFormat', type: 'strings', values: ['IMAGE'] }] }));
  const flags = ['--base-url', upstream.baseUrl, '--search-filters', filtersFile, '--timeout-ms', '4000', ...moreFlags];
  const server = await startHttpCommand(flags);
  onTestFinished(async () => {
    await server.close();
    await upstream.close();
  });
  const env = { ...process.env, AD_LIBRARY_API_KEY: 'svc_live_example' };
  const { stdout } = await promisify(execFile)(program, [...args, server.url], { cwd: root, env });
  return stdout;
}

/** Runs an example against a slow service, so that each call of `gather_ads` stops at its deadline. */
async function expectWithinLimit(command: string[]): Promise<void> {
  const service = new AdService(1000);
  expect(await runWithService(command, { service, delayMs: 900 })).toContain('of 1000, complete: ');
  expect(service.chargedCredits).toBeLessThanOrEqual(50);
}

test('the TypeScript example program spends at most its limit, even if it calls gather_ads several times', async () => {
  await expectWithinLimit([process.execPath, buildTypeScriptExample()]);
});

/** Runs an example against a service whose second response states no charge. */
async function expectWithinLimitWithoutCharge(command: string[]): Promise<void> {
  const service = new AdService(1000);
  service.priceSearch = (_, { sequenceNumber }) => {
    service.hasChargeHeaders = sequenceNumber !== 2;
    return 25;
  };
  const output = await runWithService(command, { service, flags: ['--cache-seconds', '0'] });
  expect(output).toMatch(/Read [1-9]\d* of 1000, complete: /);
  expect(service.chargedCredits).toBe(50);
}

test('the TypeScript example program spends at most 50 credits if the service does not state one of the charges', async () => {
  await expectWithinLimitWithoutCharge([process.execPath, buildTypeScriptExample()]);
});

test.skipIf(!hasClient)(
  `the Python example program spends at most 50 credits if the service does not state one of the charges${unless}`,
  async () => {
    await expectWithinLimitWithoutCharge(['python3', pythonExample]);
  },
);

test('the TypeScript example program warns that its figures are incomplete if a slow service reports no charges', async () => {
  const service = new AdService(1000);
  service.hasChargeHeaders = false;
  const output = await runWithService([process.execPath, buildTypeScriptExample()], { service, delayMs: 900 });
  expect(output).toMatch(/Read [1-9]\d* of 1000, complete: false\./);
  expect(output).toContain('The figures are not based on all matching ads. Reading stopped: ');
});

test.skipIf(!hasClient)(
  `the Python example program spends at most its limit, even if it calls gather_ads several times${unless}`,
  async () => {
    await expectWithinLimit(['python3', pythonExample]);
  },
);

test.skipIf(!hasClient)(
  `the Python example program counts ads, gathers them and queries them with SQL${unless}`,
  async () => {
    await expectTwice((url) => run('python3', pythonExample, url), 'complete: True.');
    expect(python(pythonExample, '--help')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('[url]'),
      stderr: '',
    });
  },
);

type Run = (url: string) => ReturnType<typeof run>;

async function expectTwice(runExample: Run, complete: string): Promise<void> {
  const server = await startHttpCommand(['--demo']);
  for (const _ of ['first', 'again']) {
    const { status, stdout, stderr } = runExample(server.url);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(`Read 267 of 267, ${complete}`);
  }
  await server.close();
  const url = `http://127.0.0.1:${await findFreePort()}/mcp`;
  expect(runExample(url)).toMatchObject({
    status: 1,
    stderr: `No server at ${url}: start one with \`node dist/main.js http --demo\`.\n`,
  });
}

test('the ad-research skill has valid frontmatter and names only tools that exist', () => {
  const skill = readFileSync(join(root, 'docs/skill/ad-research/SKILL.md'), 'utf8');
  const [, head = ''] = /^---\n([\s\S]*?)\n---\n/.exec(skill) ?? [];
  const fields = Object.fromEntries(head.split('\n').map((line) => line.split(/: (.*)/).slice(0, 2)));
  expect(fields.name).toBe('ad-research');
  expect(fields.description.length).toBeLessThanOrEqual(1024);
  expect(fields.compatibility.length).toBeLessThanOrEqual(500);
  expect(skill.split('\n').length).toBeLessThan(500);
  const named = new Set(
    [...skill.matchAll(/`((?:count|gather|query|export|search|get|view)_\w+)`/g)].map(([, name]) => name),
  );
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining([...named]));
});
