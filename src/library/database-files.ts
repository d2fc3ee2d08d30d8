import { constants } from 'node:fs';
import { chown, copyFile, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * The real path of a database file, with all links resolved. Creates the file if there is none.
 * @throws Error when the file cannot be written, or has hard links (their other names cannot be found)
 */
export async function locateDatabase(path: string): Promise<string> {
  if (path === ':memory:') return path;
  try {
    await (await open(path, 'a', 0o600)).close();
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${reasonOf(error as NodeJS.ErrnoException, path)}.`);
  }
  const database = await realpath(path);
  const { nlink } = await stat(database);
  if (nlink > 1) {
    throw new Error(
      `${database} has ${nlink} names (hard links), so another process could open it under another name. Make a copy and use that.`,
    );
  }
  return database;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `there is no such folder as ${dirname(resolve(path))}`;
    case 'EISDIR':
      return 'it is a folder';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not write it';
    case 'EROFS':
      return 'its file system is read-only';
    default:
      return message;
  }
}

/** The engine's lock is a folder beside the database. */
export const clearEngineLock = (database: string): Promise<void> =>
  rm(`${database}.lock`, { recursive: true, force: true });

/**
 * Replaces the files of a database by copies. If the previous owner was suspended in the middle of a write, it finishes
 * that write, once it wakes up, in the old files, which nobody reads any more.
 */
export async function replaceFiles(database: string): Promise<void> {
  const files = [database, `${database}-wal`];
  const copies = await Promise.all(files.map(copyOf));
  for (const [at, copy] of copies.entries()) if (copy) await rename(copy, files[at] ?? '');
}

/** Writes a copy to disk. @returns its name, or undefined when there is no such file */
async function copyOf(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (!found) return undefined;
  const copy = `${file}.copy`;
  // Free where the file system can share blocks.
  await copyFile(file, copy, constants.COPYFILE_FICLONE);
  await chown(copy, found.uid, found.gid).catch(() => {});
  const opened = await open(copy, 'r+');
  await opened.sync();
  await opened.close();
  return copy;
}
