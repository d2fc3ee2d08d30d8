import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clearFiles } from '../../src/cli/files.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { getExportsFolder, openFolderExports } from '../../src/storage/exports.ts';
import { openFolderState } from '../../src/storage/folder.ts';
import { addAds } from '../storage/add-items.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

const newFolder = createFolderSequence();

const openState = (folder: string) =>
  openFolderState({
    ...{ folder, baseUrl: 'https://api.example.com/v2', apiKey: 'k', ttlMs: 0, now: Date.now, monotonicNow: Date.now },
    fetchUserId: async () => 'u',
    warn: () => {},
  });
const openDataset = (folder: string) => openState(folder).datasets.open({ tenantId: 't', apiKey: 'k' });

async function clear(files: string) {
  let printed = '';
  const code = await clearFiles({ ...readConfig({}), files }, (text) => {
    printed += text;
  });
  return { code, printed };
}

test('the "files clear" command deletes the stored data but no files of other programs', async () => {
  const folder = newFolder();
  await addAds(await openDataset(folder), 1, { id: 'x' }, { id: 'y' });
  await addAds(await openDataset(folder), 2, { id: 'x', headline: 'new' });
  const { userRecords } = await openDataset(folder);
  for (const kind of ['label', 'watch', 'report'] as const)
    await userRecords.update(kind, () => ({ put: [['x', 1]], result: undefined }));
  await openState(folder).openCursors('t').save('@1', { searchParams: {} });
  const damagedFile = join(folder, 'accounts', `${'0'.repeat(32)}.log`);
  await writeFile(damagedFile, 'not a dataset\n');
  const foreignFiles = [join(folder, 'export.csv'), join(folder, 'accounts', 'notes.log')];
  for (const file of foreignFiles) await writeFile(file, 'mine');
  const { code, printed } = await clear(folder);
  expect(code).toBe(0);
  expect(printed).toContain(`${folder} stores 2 datasets, and answers and spending of 1 key:\n`);
  expect(printed).toContain(
    'https://api.example.com/v2: 2 ads, no pages, no gatherings, 1 label, 1 watch, 1 report, 0.0 MB',
  );
  expect(printed).toContain('an unknown service: a dataset that cannot be read, 0.0 MB');
  expect(printed.match(/^Deleted /gm)).toHaveLength(3);
  expect([...(await readdir(join(folder, 'accounts'))), ...(await readdir(join(folder, 'keys')))]).toEqual([
    'notes.log',
  ]);
  expect(foreignFiles.every((file) => existsSync(file))).toBe(true);
  expect((await clear(folder)).printed).toBe(`${folder} stores no datasets.\n`);
  expect((await (await openDataset(folder)).readContents()).ads).toEqual([]);
});

test('the "files clear" command also deletes the stored ads of a server that is running', async () => {
  const folder = newFolder();
  const { datasets } = openState(folder);
  const openRunning = () => datasets.open({ tenantId: 't', apiKey: 'k' });
  for (let index = 0; index < 70; index++) await addAds(await openRunning(), index, { id: `${index}` });
  await (await openRunning()).userRecords.update('label', () => ({ put: [['x', 1]], result: undefined }));
  await clear(folder);
  await addAds(await openRunning(), 100, { id: 'new' });
  expect((await (await openRunning()).readContents()).labels.size).toBe(0);
  for (const dataset of [await openRunning(), await openDataset(folder)])
    expect((await dataset.readContents()).ads.map(({ id }) => id)).toEqual(['new']);
});

test('the "files clear" command keeps exported files and prints their folder', async () => {
  const folder = newFolder();
  const exports = openFolderExports({ folder: getExportsFolder(folder) }, Date.now).forTenant('a');
  for (const name of ['ads.csv', 'ads-methods.md'])
    await exports.create({ name, mimeType: 'text/csv', write: (take) => take(Buffer.from('mine')) });
  const { code, printed } = await clear(folder);
  expect(code).toBe(0);
  expect(printed).toContain(`${getExportsFolder(folder)} contains 2 exported files. Delete them yourself.\n`);
  expect(await readdir(getExportsFolder(folder))).toHaveLength(2);
});

test('the "files clear" command fails if the settings contain no data folder', async () => {
  await expect(clearFiles(readConfig({}), () => {})).rejects.toThrow(
    'AD_LIBRARY_FILES (or --files) must name the folder',
  );
});
