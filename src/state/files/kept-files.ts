import { randomUUID } from 'node:crypto';
import { lstat, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { idKey } from '../dataset.ts';
import { recordOfLine } from '../record-lines.ts';
import { datasetsFolder } from './file-datasets.ts';
import { isOurs, SegmentFolder, unless } from './segment-folder.ts';

/** A dataset that lies in files. */
export interface KeptDataset {
  path: string;
  baseUrl: string | undefined;
  ads: number;
  pages: number;
  gatherings: number;
  bytes: number;
}

/** Also one whose removal was interrupted. */
const DATASET = /^[\da-f]{32}(?:\.removed-[\da-f-]{36})?$/;

/** What the folder keeps. */
export async function keptDatasets(files: string): Promise<KeptDataset[]> {
  const root = datasetsFolder(files);
  const entries = await readdir(root, { withFileTypes: true }).catch(unless('ENOENT'));
  const folders = (entries ?? []).filter((entry) => entry.isDirectory() && DATASET.test(entry.name));
  const kept = [];
  for (const { name } of folders.sort((left, right) => (left.name < right.name ? -1 : 1)))
    kept.push(await keptDataset(join(root, name)));
  return kept;
}

async function keptDataset(path: string): Promise<KeptDataset> {
  const folder = new SegmentFolder({ path, baseUrl: '', now: () => 0 });
  const ids = { ads: new Set<string>(), pages: new Set<string>(), gathering: new Set<string>() };
  for (const name of await folder.names())
    for (const line of (await folder.read(name).catch(() => undefined)) ?? []) {
      const record = recordOfLine(line);
      if (record) ids[record.kind].add(record.kind === 'ads' ? idKey(record.id) : record.id);
    }
  let bytes = 0;
  for (const name of await readdir(path)) bytes += (await lstat(join(path, name))).size;
  const mark = await folder.mark();
  return {
    path,
    baseUrl: mark && URL.canParse(mark.baseUrl) ? new URL(mark.baseUrl).href : undefined,
    ads: ids.ads.size,
    pages: ids.pages.size,
    gatherings: ids.gathering.size,
    bytes,
  };
}

/**
 * Deletes a dataset. A server that uses it starts an empty one. Files that this program did not write stay.
 * @returns whether anything stayed
 */
export async function removeDataset(path: string): Promise<boolean> {
  // At once, so that no server takes a half-empty folder for its dataset.
  const removed = path.includes('.removed-') ? path : `${path}.removed-${randomUUID()}`;
  if (removed !== path) await rename(path, removed);
  for (const name of (await readdir(removed)).filter(isOurs)) await rm(join(removed, name));
  const left = await readdir(removed);
  if (left.length === 0) await rmdir(removed);
  else await rename(removed, path).catch(unless('EEXIST'));
  return left.length > 0;
}
