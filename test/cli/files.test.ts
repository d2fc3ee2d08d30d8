import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { clearFiles } from '../../src/cli/files.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { exportsFolder, processExports } from '../../src/state/exports.ts';
import { FileDatasets } from '../../src/state/files/file-datasets.ts';
import { add } from '../state/add-items.ts';
import { baseUrl, olderAd, olderFolder, writeOlder } from '../state/files/older-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = temporaryFolder();
let folders = 0;
const newFolder = () => join(root, `${++folders}`);

const datasetIn = (folder: string, userId = 'u') =>
  new FileDatasets({
    folder,
    baseUrl,
    now: Date.now,
    elapsed: Date.now,
    userIdOf: async () => userId,
    warn: () => {},
  });
const caller = { tenantId: 't', apiKey: 'k' };

async function clear(files: string) {
  let printed = '';
  const code = await clearFiles({ ...readConfig({}), files }, (text) => {
    printed += text;
  });
  return { code, printed };
}

test('says what is kept, and deletes it', async () => {
  const folder = newFolder();
  await add(await datasetIn(folder).of(caller), 1, { id: 'x' }, { id: 'y' });
  await add(await datasetIn(folder).of(caller), 2, { id: 'x', headline: 'new' });
  const { own } = await datasetIn(folder).of(caller);
  for (const kind of ['label', 'watch'] as const)
    await own.update(kind, () => ({ put: [['x', 1]], result: undefined }));
  await writeOlder(olderFolder(folder, 'other'), [olderAd(2, { id: 'z' })]);
  const { code, printed } = await clear(folder);
  expect(code).toBe(0);
  expect(printed).toContain(`${folder} keeps 2 datasets:\n`);
  expect(printed).toContain('https://api.example.com/v2: 2 ads, no pages, no gatherings, 1 label, 1 watch, 0.0 MB');
  expect(printed.match(/^Deleted /gm)).toHaveLength(2);
  expect([...(await readdir(join(folder, 'accounts'))), ...(await readdir(join(folder, 'datasets')))]).toEqual([]);
  expect((await clear(folder)).printed).toBe(`${folder} keeps no datasets.\n`);
  expect((await (await datasetIn(folder).of(caller)).contents()).ads).toEqual([]);
});

test('leaves files of others where they are', async () => {
  const folder = newFolder();
  await add(await datasetIn(folder).of(caller), 1, { id: 'x' });
  const [older = ''] = await writeOlder(olderFolder(folder, 'other'), [olderAd(2, { id: 'z' })]);
  const theirs = [
    join(folder, 'export.csv'),
    join(folder, 'accounts', 'notes.jsonl'),
    join(dirname(older), 'notes.jsonl'),
  ];
  for (const file of theirs) await writeFile(file, 'mine');
  expect((await clear(folder)).printed).toContain('Deleted all but files of other programs');
  expect(theirs.every((file) => existsSync(file))).toBe(true);
  expect(await readdir(dirname(older))).toEqual(['notes.jsonl']);
});

test('empties the dataset of a server that is running, which goes on', async () => {
  const folder = newFolder();
  const running = datasetIn(folder);
  for (let at = 0; at < 70; at++) await add(await running.of(caller), at, { id: `${at}` });
  await (await running.of(caller)).own.update('label', () => ({ put: [['x', 1]], result: undefined }));
  await clear(folder);
  await add(await running.of(caller), 100, { id: 'new' });
  expect((await (await running.of(caller)).contents()).labels.size).toBe(0);
  for (const datasets of [running, datasetIn(folder)])
    expect((await (await datasets.of(caller)).contents()).ads.map(({ id }) => id)).toEqual(['new']);
});

test('leaves exported files, and says where they are', async () => {
  const folder = newFolder();
  const exports = processExports({ folder: exportsFolder(folder), now: Date.now }).of('a');
  for (const name of ['ads.csv', 'ads-methods.md'])
    await exports.create({ name, mimeType: 'text/csv', write: (take) => take(Buffer.from('mine')) });
  const { code, printed } = await clear(folder);
  expect(code).toBe(0);
  expect(printed).toContain(`${exportsFolder(folder)} keeps 2 exported files: delete them yourself.\n`);
  expect(await readdir(exportsFolder(folder))).toHaveLength(2);
});

test('needs a folder', async () => {
  await expect(clearFiles(readConfig({}), () => {})).rejects.toThrow(
    'AD_LIBRARY_FILES (or --files) must name the folder',
  );
});
