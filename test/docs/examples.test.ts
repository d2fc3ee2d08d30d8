import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tools } from '../../src/tools/catalog.ts';
import { freePort } from '../support/free-port.ts';
import { serveHttp } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { root } from './pages.ts';

const python = (...args: string[]) => spawnSync('python3', args, { cwd: root, encoding: 'utf8' });
const hasPython = python('--version').status === 0;
const hasClient = python('-c', 'from mcp import Client').status === 0;
const example = 'docs/examples/python/count_and_gather.py';

test.skipIf(!hasPython)('the Python example is Python', () => {
  const compiled = join(temporaryFolder(), 'example.pyc');
  const { status, stderr } = python(
    '-c',
    `import py_compile; py_compile.compile('${example}', '${compiled}', doraise=True)`,
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test.skipIf(!hasClient)('the Python example counts, gathers and queries', async () => {
  const server = await serveHttp(['--demo']);
  const { status, stdout, stderr } = python(example, server.url);
  await server.close();
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('Read 267 of 267, complete: True.');
});

test.skipIf(!hasClient)('the Python example explains itself, and says when there is no server', async () => {
  expect(python(example, '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('[url]'), stderr: '' });
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  const { status, stderr } = python(example, url);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: `No server at ${url}: start one with \`node dist/main.js http --demo\`.\n`,
  });
});

test('the skill is as hosts read skills, and names tools that are there', () => {
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
