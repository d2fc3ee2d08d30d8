import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import { deleteStoreFile, ignoreErrorCodes } from '../storage/drivers/file.ts';
import { getExportsFolder } from '../storage/exports.ts';
import { listStoredFiles, type StoredFile } from '../storage/folder.ts';

/** Deletes what a folder keeps, after listing it. Exports stay. Returns the exit code. */
export async function clearFiles({ files }: Config, print: (text: string) => void): Promise<number> {
  if (files === undefined)
    throw new SettingsError([`${settings.files.variable} (or ${settings.files.flag}) must name the folder to clear`]);
  const folder = resolve(files);
  const { accounts, keys } = await listStoredFiles(folder);
  const kept = [...accounts, ...keys];
  const parts = [countText(accounts.length, 'dataset')];
  if (keys.length > 0) parts.push(`answers and spending of ${countText(keys.length, 'key')}`);
  print(`${folder} keeps ${parts.join(', and ')}${kept.length > 0 ? ':' : '.'}\n`);
  for (const account of accounts) print(`  ${serviceOf(account)}: ${contentsOf(account)}, ${size(account)}\n`);
  for (const key of keys) print(`  ${serviceOf(key)}: cached answers, cursors and spending of a key, ${size(key)}\n`);
  for (const { path } of kept) {
    await deleteStoreFile(path);
    print(`Deleted ${path}\n`);
  }
  const exports = getExportsFolder(folder);
  const exported = (await readdir(exports).catch(ignoreErrorCodes('ENOENT'))) ?? [];
  if (exported.length > 0)
    print(`${exports} keeps ${countText(exported.length, 'exported file')}: delete them yourself.\n`);
  return 0;
}

const serviceOf = ({ baseUrl = '' }: StoredFile): string =>
  URL.canParse(baseUrl) ? new URL(baseUrl).href : 'an unknown service';

function contentsOf({ contents }: StoredFile): string {
  if (contents === undefined) return 'a dataset that cannot be read';
  const { ads, pages, gatherings, labels, watches, reports } = contents;
  const parts = [countText(ads, 'ad'), countText(pages, 'page'), countText(gatherings, 'gathering')];
  if (labels > 0) parts.push(countText(labels, 'label'));
  if (watches > 0) parts.push(countText(watches, 'watch', 'watches'));
  if (reports > 0) parts.push(countText(reports, 'report'));
  return parts.join(', ');
}

const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count === 0 ? 'no' : count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

const size = ({ bytes }: StoredFile): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
