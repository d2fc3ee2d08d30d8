import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { tools } from '../../src/tools/catalog.ts';
import { freePort } from '../support/loopback.ts';
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

// Run the example twice: the second run reads stored ads, and its results have other fields.
test('the TypeScript example program counts ads, gathers them and queries them with SQL', async () => {
  const example = join(root, 'docs/examples/typescript/count-and-gather.ts');
  const outfile = join(createTemporaryFolder(), 'count-and-gather.mjs');
  buildSync({ entryPoints: [example], outfile, bundle: true, platform: 'node', format: 'esm' });
  await expectTwice((url) => run(process.execPath, outfile, url), 'complete: true.');
});

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
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
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
