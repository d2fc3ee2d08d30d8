import { execFile } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { listLatestBuild } from '../../scripts/bundle.ts';
import { allTools } from '../../src/board/board.ts';
import { connectCommand } from '../support/clients.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = createTemporaryFolder();
const shell = process.platform === 'win32';
const npm = async (cwd: string, ...args: string[]) =>
  (await promisify(execFile)('npm', [...args, '--loglevel=error'], { cwd, shell })).stdout;

// Pack without building: the build exists already, and rebuilding would disturb tests that run at the same time.
const npmOutput = await npm(root, 'pack', '--ignore-scripts', '--json', `--pack-destination=${folder}`);
const [packed] = JSON.parse(npmOutput) as [{ filename: string; files: { path: string }[] }];
// Create a package.json, because npm would otherwise install into the nearest parent folder that has one.
writeFileSync(join(folder, 'package.json'), '{ "private": true }');
await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`);

test('the npm package contains only the build and the files that a package needs', () => {
  const paths = packed.files.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(listLatestBuild()));
  const beside = paths.filter((path) => !path.startsWith('dist/'));
  expect(beside.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
  expect(statSync(join(folder, packed.filename)).size).toBeLessThan(6 * 1024 * 1024);
});

// bundle.test.ts runs every tool of this build, so two calls suffice here.
test('the command that the npm package installs can run tool calls', async () => {
  const [command = '', ...args] = [...(shell ? ['cmd', '/c'] : []), 'npx', '--offline', 'ad-library-mcp', '--demo'];
  const client = await connectCommand('v2 auto', { command, args, cwd: folder });
  expect(await client.listTools()).toHaveLength(allTools.length);
  expect((await client.call('query_ads', { sql: 'SELECT 1' })).data.rows).toEqual([[1]]);
  await client.close();
});
