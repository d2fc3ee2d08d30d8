import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';

const test = freshServiceTest().extend('folder', async ({ task: _ }, { onCleanup }) => {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-files-'));
  onCleanup(() => rmSync(folder, { recursive: true }));
  return folder;
});

test('with a folder for files an export is a file in it, which only its owner can read', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 5 });
  const { data, text } = await server.call('export_ads', { name: 'tea', format: 'jsonl' });
  const file = join(folder, 'exports', 'tea.jsonl');
  expect(data).toMatchObject({ file, rows: 5, bytes: statSync(file).size });
  expect(text).toContain(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, 'exports')).mode & 0o777).toBe(0o700);
  const written = readFileSync(file, 'utf8');
  expect(
    written
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toHaveLength(5);
  const { contents } = await server.client.readResource({ uri: data.uri as string });
  expect(contents).toMatchObject([{ text: written }]);
});

test('sheets and Parquet files are read as resources in base64', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 5 });
  for (const [format, mimeType] of [
    ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
    ['parquet', 'application/vnd.apache.parquet'],
  ]) {
    const { data } = await server.call('export_ads', { name: 'tea', format });
    const { contents } = await server.client.readResource({ uri: data.uri as string });
    expect(contents).toEqual([{ uri: data.uri, mimeType, blob: readFileSync(data.file as string, 'base64') }]);
  }
});

test('the note lists the gatherings whose ads were exported', async ({ start, folder }) => {
  const server = await start({ files: folder });
  const gathered = async (filters: object) =>
    (await server.call('gather_ads', { filters, maxAds: 100, maxCredits: 100 })).data.gathering as string;
  const [running, ended] = [await gathered({ active: true }), await gathered({ active: false })];
  const noteOf = async (sql: string) => {
    const { data } = await server.call('export_ads', { sql });
    const { contents } = await server.client.readResource({ uri: data.methods as string });
    return String(contents[0] && 'text' in contents[0] && contents[0].text);
  };
  const narrow = await noteOf(`SELECT adId FROM gathered WHERE gatheringId = '${ended}'`);
  expect(narrow).toContain(ended);
  expect(narrow).not.toContain(running);
  expect(narrow).toContain('1 other gathering of the dataset read none of these ads.');
  expect(await noteOf('SELECT count(*) FROM ads')).toContain(running);
});

test('no file is overwritten and no link is followed', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 1 });
  const first = await server.call('export_ads', { name: 'tea' });
  const before = readFileSync(first.data.file as string);
  const target = join(folder, 'target');
  writeFileSync(target, 'mine');
  symlinkSync(target, join(folder, 'exports', 'tea-2.csv'));
  const again = await server.call('export_ads', { name: 'tea' });
  expect(again.data.file).toBe(join(folder, 'exports', 'tea-3.csv'));
  expect(readFileSync(first.data.file as string)).toEqual(before);
  expect(readFileSync(target, 'utf8')).toBe('mine');
});

test('an export and its note have one number, and are called what they were written as', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 1 });
  for (const [format, stem] of [
    ['csv', 'tea'],
    ['csv', 'tea-2'],
    ['jsonl', 'tea-3'],
  ]) {
    const sql = `SELECT '${stem}' AS name`;
    const { data, text } = await server.call('export_ads', { name: 'tea', format, sql });
    expect(text).toContain(`${stem}.${format}: 1 row`);
    expect(text).toContain(`${stem}-methods.md beside it`);
    const { contents } = await server.client.readResource({ uri: data.methods as string });
    expect(contents).toMatchObject([{ text: expect.stringContaining(sql) }]);
    expect(readFileSync(join(folder, 'exports', `${stem}-methods.md`), 'utf8')).toContain(sql);
  }
});

test.for(['a link', 'a folder', 'a pipe', 'a longer file', 'nothing'] as const)(
  '%s in the place of an export is not read, and the answer says so',
  async (place, { start, folder }) => {
    const server = await start({ files: folder });
    await server.call('search_ads', { limit: 1 });
    const { data } = await server.call('export_ads', { name: 'tea' });
    const file = data.file as string;
    const target = join(folder, 'target');
    // As long as the export, so that the length alone does not give it away.
    writeFileSync(target, 'mine'.padEnd(data.bytes as number));
    if (place === 'a longer file') writeFileSync(file, ' ', { flag: 'a' });
    else rmSync(file);
    if (place === 'a link') symlinkSync(target, file);
    if (place === 'a folder') mkdirSync(file);
    if (place === 'a pipe') execFileSync('mkfifo', [file]);
    await expect(server.client.readResource({ uri: data.uri as string })).rejects.toThrow(
      `${file} is no longer the file that was written. Export it again.`,
    );
  },
);

test('a folder that cannot be written to is named with the reason', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 1 });
  writeFileSync(join(folder, 'exports'), '');
  const { text, error } = await server.call('export_ads', {});
  expect(error).toMatchObject({ kind: 'invalid_request', retryable: false });
  expect(text).toContain(`No file can be written in ${join(folder, 'exports')}: a file is in the way.`);
});

test('an export that fails leaves no file behind', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 1 });
  const { isError } = await server.call('export_ads', { sql: 'SELECT nothing FROM ads' });
  expect(isError).toBe(true);
  expect(readdirSync(join(folder, 'exports'))).toEqual([]);
});

test('nothing has the name of an export before all of it is written', async ({ start, folder }) => {
  const server = await start({ files: folder });
  await server.call('search_ads', { limit: 1 });
  const sizes = new Set<number>();
  let isOver = false;
  const sql = 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 30000) SELECT i FROM n';
  const exported = server.call('export_ads', { name: 'tea', sql }).finally(() => {
    isOver = true;
  });
  for (; !isOver; await delay(1))
    sizes.add(statSync(join(folder, 'exports', 'tea.csv'), { throwIfNoEntry: false })?.size ?? 0);
  const { data } = await exported;
  for (const size of sizes) expect([0, data.bytes]).toContain(size);
});

test('the demo writes no files', async ({ start, folder }) => {
  const server = await start({ files: folder, demo: true });
  await server.call('search_ads', { limit: 1 });
  const { data } = await server.call('export_ads', {});
  expect(data).not.toHaveProperty('file');
  expect(existsSync(join(folder, 'exports'))).toBe(false);
});
