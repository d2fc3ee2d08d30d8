import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { connectCommand } from '../support/clients.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
// Beside the packages, whose paths a build looks at.
const clone = mkdtempSync(join(root, '.building-clone-'));
symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
afterAll(() => rmSync(clone, { recursive: true }));
for (const part of ['src', 'scripts', 'docs/skill', 'package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE'])
  cpSync(join(root, part), join(clone, part), { recursive: true });

const dist = join(clone, 'dist');
const main = join(dist, 'main.js');
const buildsIn = () => readdirSync(dist).filter((entry) => entry.startsWith('build-'));
const timeOf = (name: string) => statSync(join(dist, name)).mtimeMs;

/** Builds the clone as another version, which changes the names of its pieces. */
async function build(version: string): Promise<void> {
  const path = join(clone, 'package.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), version }));
  await promisify(execFile)(process.execPath, ['--import', 'tsx', 'scripts/build.ts'], { cwd: clone });
}

const versionOf = async () => (await promisify(execFile)(process.execPath, [main, '--version'])).stdout.trim();

test('a server that runs goes on while its dist is built anew, workers included', { timeout: 300_000 }, async () => {
  await build('1.0.0');
  const started = { command: process.execPath, args: [main, '--demo'] };
  const client = await connectCommand('v1', started);
  let starts = 0;
  let isBuilding = true;
  const building = build('2.0.0').then(() => {
    isBuilding = false;
  });
  // In the middle of it, a start meets one build or the other.
  while (isBuilding) {
    expect(['1.0.0', '2.0.0']).toContain(await versionOf());
    starts++;
  }
  await building;
  expect(starts).toBeGreaterThan(0);
  expect(buildsIn()).toHaveLength(2);
  expect(await versionOf()).toBe('2.0.0');
  const called = await makeDemoCalls(client.call);
  expect(called.filter(({ result }) => result.isError)).toEqual([]);
  expect(await client.read('ui://ad-library/board')).toHaveLength(1);
  await client.close();
});

test('the same sources are the same build, and only the latest builds stay', { timeout: 300_000 }, async () => {
  const [running, latest] = buildsIn().toSorted((left, right) => timeOf(left) - timeOf(right));
  const earlier = ['build-1', 'build-2', 'build-3', 'build-4'];
  for (const [at, name] of earlier.entries()) {
    mkdirSync(join(dist, name));
    utimesSync(join(dist, name), at, at);
  }
  await build('2.0.0');
  expect(new Set(buildsIn())).toEqual(new Set([running, latest, ...earlier.slice(1)]));
  expect(await versionOf()).toBe('2.0.0');
  expect(readdirSync(clone).filter((entry) => entry.startsWith('.building'))).toEqual([]);
  expect(existsSync(join(dist, 'embed.d.ts'))).toBe(true);
});
