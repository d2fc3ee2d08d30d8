import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder for this user alone, with the folders above it. One level after the other: `recursive` never ends where
 * a file system refuses folders by saying that there is none above, as `/proc` does.
 */
export async function makeFolder(path: string): Promise<void> {
  const make = () => mkdir(path, { mode: 0o700 });
  try {
    await make();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isThere = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
    if (code === 'EEXIST' && (await isThere())) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await make().catch(async (again) => {
      if (!(await isThere())) throw again;
    });
  }
}
