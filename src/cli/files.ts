import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import { exportsFolder } from '../state/exports.ts';
import { creditsFolder } from '../state/files/daily-ledger.ts';
import { removeAccount, type StoredAccount, storedAccounts } from '../state/files/file-datasets.ts';
import { unless } from '../state/files/folder.ts';

/** Deletes the datasets in files, after listing them. Exports stay. Returns the exit code. */
export async function clearFiles({ files }: Config, print: (text: string) => void): Promise<number> {
  if (files === undefined)
    throw new SettingsError([`${settings.files.variable} (or ${settings.files.flag}) must name the folder to clear`]);
  const folder = resolve(files);
  const kept = await storedAccounts(folder);
  print(`${folder} keeps ${counted(kept.length, 'dataset')}${kept.length > 0 ? ':' : '.'}\n`);
  for (const dataset of kept) print(`  ${datasetText(dataset)}\n`);
  for (const { path } of kept)
    print((await removeAccount(path)) ? `Deleted all but files of other programs in ${path}\n` : `Deleted ${path}\n`);
  const credits = creditsFolder(folder);
  for (const name of (await readdir(credits).catch(unless('ENOENT'))) ?? []) {
    if (!/^[\da-f]{32}\.json$/.test(name)) continue;
    await rm(join(credits, name), { force: true });
    print(`Deleted ${join(credits, name)}: what calls with one key spent on their last day\n`);
  }
  const exports = exportsFolder(folder);
  const exported = (await readdir(exports).catch(unless('ENOENT'))) ?? [];
  if (exported.length > 0)
    print(`${exports} keeps ${counted(exported.length, 'exported file')}: delete them yourself.\n`);
  return 0;
}

function datasetText({ baseUrl, ads, pages, gatherings, labels, watches, bytes }: StoredAccount): string {
  const parts = [counted(ads, 'ad'), counted(pages, 'page'), counted(gatherings, 'gathering')];
  if (labels > 0) parts.push(counted(labels, 'label'));
  if (watches > 0) parts.push(counted(watches, 'watch', 'watches'));
  parts.push(size(bytes));
  return `${baseUrl ?? 'an unknown service'}: ${parts.join(', ')}`;
}

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count === 0 ? 'no' : count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

const size = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
