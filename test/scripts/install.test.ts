import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const cwd = fileURLToPath(new URL('../../', import.meta.url));

test('npm ci finds no package that refuses this Node', async () => {
  const args = ['ci', '--dry-run', '--ignore-scripts', '--offline'];
  const { stderr } = await promisify(execFile)('npm', args, { cwd, shell: process.platform === 'win32' });
  expect(stderr).not.toContain('EBADENGINE');
});
