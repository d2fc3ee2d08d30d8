import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { type ExportedFile, type Exports, exportTtl, type NewFile, uriMaker } from './exports.ts';

const maxBytes = 1024 * 1024 * 1024;
/** Files that can be read as resources; older ones lie in the folder all the same. */
const maxListed = 50;
/** Files of one name: `ads.csv`, `ads-2.csv` … */
const maxOfOneName = 10_000;

/** Where exports lie in the folder that a person chose. */
export const exportsFolder = (files: string): string => join(files, 'exports');

/** Writes files into a folder that only its owner can read. None is overwritten, and none is ever removed. */
export function folderExports(folder: string, now: () => number): Exports {
  const files = new Map<string, ExportedFile>();
  const uriOf = uriMaker();
  const readable = () => [...files.values()].filter(({ at }) => now() - at < exportTtl);
  return {
    maxBytes,
    async create({ mimeType, ...newFile }) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const { path, bytes } = await writeNew(folder, newFile);
      const name = basename(path);
      const at = now();
      const file = { uri: uriOf(name, at), name, mimeType, bytes, at, path, content: () => readFile(path) };
      files.set(file.uri, file);
      for (const uri of files.keys()) if (files.size > maxListed) files.delete(uri);
      return file;
    },
    list: async () => readable().reverse(),
    find: async (uri) => readable().find((file) => file.uri === uri),
  };
}

type Named = Pick<NewFile, 'name' | 'besideEnding'>;

async function writeNew(folder: string, { write, ...named }: Named & Pick<NewFile, 'write'>) {
  const { handle, path } = await openNew(folder, named);
  let bytes = 0;
  try {
    await write(async (part) => {
      await handle.writeFile(part);
      bytes += part.length;
    });
    await handle.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  return { path, bytes };
}

/** Opens a file that was not there before, so that a link in its place is not followed. */
async function openNew(folder: string, { name, besideEnding }: Named) {
  const extension = extname(name);
  const stem = name.slice(0, -extension.length);
  for (let number = 1; ; number++) {
    const numbered = join(folder, number === 1 ? stem : `${stem}-${number}`);
    const path = `${numbered}${extension}`;
    try {
      if (besideEnding && existsSync(`${numbered}${besideEnding}`) && number < maxOfOneName) continue;
      return { handle: await open(path, 'wx', 0o600), path };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number >= maxOfOneName) throw error;
    }
  }
}
