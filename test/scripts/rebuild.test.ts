import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { findLatestBuildFolder, listLatestBuild } from '../../scripts/bundle.ts';
import { connectCommand } from '../support/clients.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
// Create the clone inside the repository, because the build reads the paths of packages.
const clone = mkdtempSync(join(root, '.building-clone-'));
afterAll(() => rmSync(clone, { recursive: true }));
symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
const sources = ['src', 'scripts', 'docs/skill', 'package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE'];
// Copy the existing build into the clone, even if the sources have changed since.
for (const part of [...sources, ...listLatestBuild()]) cpSync(join(root, part), join(clone, part), { recursive: true });

const dist = join(clone, 'dist');
const main = join(dist, 'main.js');
const listBuilds = () => readdirSync(dist).filter((entry) => entry.startsWith('build-'));
const readTime = (name: string) => statSync(join(dist, name)).mtimeMs;
/** Returns the names of all files and folders in the dist folder, each with a number that changes if it is replaced. */
const describeEntries = () =>
  readdirSync(dist)
    .map((name) => `${name} ${statSync(join(dist, name), { throwIfNoEntry: false })?.ino}`)
    .join();
const node = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: clone });
const build = () => node('--import', 'tsx', 'scripts/build.ts');
const readVersion = async () => (await node(main, '--version')).stdout.trim();

test('query_ads succeeds even if an earlier call could not read the SQLite WebAssembly file', async () => {
  const sqliteFile = join(clone, findLatestBuildFolder(), 'sqlite3.wasm');
  const client = await connectCommand('v1', { command: process.execPath, args: [main, '--demo'] });
  await client.call('search_ads');
  const countAds = { sql: 'SELECT count(*) FROM ads' };
  renameSync(sqliteFile, `${sqliteFile}.moved`);
  expect((await client.call('query_ads', countAds)).isError).toBe(true);
  renameSync(`${sqliteFile}.moved`, sqliteFile);
  const { data, text } = await client.call('query_ads', countAds);
  expect(data.rows, text).toEqual([[expect.any(Number)]]);
  await client.close();
});

test('a running server keeps working while the dist folder is rebuilt', {
  timeout: 300_000,
}, async () => {
  const before = await readVersion();
  // Change the version, so that the next build gets new file names.
  const path = join(clone, 'package.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), version: '2.0.0' }));
  const client = await connectCommand('v1', { command: process.execPath, args: [main, '--demo'] });
  let isBuilding = true;
  const building = build().finally(() => {
    isBuilding = false;
  });
  // During the build, the command starts from either the old or the new build. Start the command only after an entry of
  // the dist folder has changed, because each start takes processor time from the build.
  let checkedEntries = '';
  while (isBuilding) {
    const entries = describeEntries();
    if (entries !== checkedEntries) expect([before, '2.0.0']).toContain(await readVersion());
    checkedEntries = entries;
    await delay(5);
  }
  await building;
  expect(await readVersion()).toBe('2.0.0');
  const called = await makeDemoCalls(client.call);
  expect(called.filter(({ result }) => result.isError)).toEqual([]);
  expect(await client.read('ui://ad-library/board')).toHaveLength(1);
  await client.close();

  // The same sources produce the same build.
  const [running, latest, ...otherBuilds] = listBuilds().toSorted((left, right) => readTime(left) - readTime(right));
  expect(otherBuilds).toEqual([]);
  const earlier = ['build-1', 'build-2', 'build-3', 'build-4'];
  for (const [at, name] of earlier.entries()) {
    mkdirSync(join(dist, name));
    utimesSync(join(dist, name), at, at);
  }
  await build();
  expect(new Set(listBuilds())).toEqual(new Set([running, latest, ...earlier.slice(1)]));
  expect(await readVersion()).toBe('2.0.0');
  expect(readdirSync(clone).filter((entry) => entry.startsWith('.building'))).toEqual([]);
  expect(existsSync(join(dist, 'embed.d.ts'))).toBe(true);
});
