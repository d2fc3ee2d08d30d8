import { hash } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { holdLock } from '../../lock.ts';
import { memoryTurns } from '../drivers/memory.ts';
import { type Turns, tooBusy } from '../turns.ts';

/** Turns over all processes that use a folder. @param files the folder that a person chose */
export function fileTurns(files: string): Turns {
  // Also where nothing can be written; and only one call of this process has to look.
  const own = memoryTurns();
  return {
    take: async (name, signal) => {
      const endOwn = await own.take(name, signal);
      const path = join(files, 'turns', hash('sha256', name).slice(0, 32));
      const lock = await makeFolder(dirname(path))
        .then(() => holdLock(path, signal))
        .catch(() => undefined);
      const endBoth = () => {
        lock?.release();
        endOwn();
      };
      if (!signal.aborted) return endBoth;
      endBoth();
      throw tooBusy();
    },
  };
}

/**
 * Makes a folder for this user alone, with the folders above it. One level after the other: `recursive` never ends where
 * a file system refuses folders by saying that there is none above, as `/proc` does.
 */
export async function makeFolder(path: string): Promise<void> {
  const isThere = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (await isThere()) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await isThere())) throw error;
  });
}

/** A handler for errors that are expected. */
export const unless =
  (...codes: readonly string[]) =>
  (error: NodeJS.ErrnoException): undefined => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
