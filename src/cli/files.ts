import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import { deleteStoreFile, ignoreErrorCodes } from '../storage/drivers/file.ts';
import { getExportsFolder } from '../storage/exports.ts';
import { listStoredFiles, type StoredFile } from '../storage/folder.ts';

/** Prints what is stored in the data folder, then deletes this data. Exported files stay. Returns the exit code. */
export async function clearFiles({ files }: Config, printText: (text: string) => void): Promise<number> {
  if (files === undefined)
    throw new SettingsError([`${settings.files.variable} (or ${settings.files.flag}) must name the folder to clear`]);
  const folder = resolve(files);
  const { accounts: accountFiles, keys: keyFiles } = await listStoredFiles(folder);
  const storedFiles = [...accountFiles, ...keyFiles];
  const descriptions = [formatCount(accountFiles.length, 'dataset')];
  if (keyFiles.length > 0) descriptions.push(`answers and spending of ${formatCount(keyFiles.length, 'key')}`);
  printText(`${folder} stores ${descriptions.join(', and ')}${storedFiles.length > 0 ? ':' : '.'}\n`);
  for (const file of accountFiles)
    printText(`  ${formatService(file)}: ${formatContents(file)}, ${formatSize(file)}\n`);
  for (const file of keyFiles)
    printText(`  ${formatService(file)}: cached answers, cursors and spending of a key, ${formatSize(file)}\n`);
  for (const { path } of storedFiles) {
    await deleteStoreFile(path);
    printText(`Deleted ${path}\n`);
  }
  const exportsFolder = getExportsFolder(folder);
  const exportedFiles = (await readdir(exportsFolder).catch(ignoreErrorCodes('ENOENT'))) ?? [];
  if (exportedFiles.length > 0)
    printText(
      `${exportsFolder} contains ${formatCount(exportedFiles.length, 'exported file')}. Delete them yourself.\n`,
    );
  return 0;
}

const formatService = ({ baseUrl = '' }: StoredFile): string =>
  URL.canParse(baseUrl) ? new URL(baseUrl).href : 'an unknown service';

function formatContents({ contents }: StoredFile): string {
  if (contents === undefined) return 'a dataset that cannot be read';
  const { ads, pages, gatherings, labels, watches, reports } = contents;
  const descriptions = [formatCount(ads, 'ad'), formatCount(pages, 'page'), formatCount(gatherings, 'gathering')];
  if (labels > 0) descriptions.push(formatCount(labels, 'label'));
  if (watches > 0) descriptions.push(formatCount(watches, 'watch', 'watches'));
  if (reports > 0) descriptions.push(formatCount(reports, 'report'));
  return descriptions.join(', ');
}

const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count === 0 ? 'no' : count.toLocaleString('en-US')} ${count === 1 ? singular : plural}`;

const formatSize = ({ bytes }: StoredFile): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
