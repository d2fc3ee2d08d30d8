import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildOptions } from '../scripts/bundle.ts';

/** A part of a benchmark in a process of its own, and its message when it was ready. */
export interface Child<Ready> {
  ready: Ready;
  process: ChildProcess;
}

/** Starts a file of this folder, or a bundle; rejects when it ends without a word. */
export async function startChild<Ready>(file: string, ...given: string[]): Promise<Child<Ready>> {
  const path = isAbsolute(file) ? file : fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, given, { execArgv: path === file ? [] : ['--import', 'tsx'] });
  process.once('exit', () => child.kill());
  const ready = await new Promise<Ready>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Ready));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}.`)));
  });
  return { ready, process: child };
}

/**
 * A file of this folder as one file, as the server is handed out: what is compiled while it runs gives each closure its
 * name anew, and takes longer. Returns its path.
 * @param code comes first
 */
export async function bundled(file: string, code = ''): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  const outfile = join(folder, file.replace(/\.ts$/, '.mjs'));
  await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    outfile,
    banner: { js: code },
    ...buildOptions,
  });
  return outfile;
}

/** `sdk-server.ts` with what its CommonJS packages expect to find. */
export const bundledSdkServer = (): Promise<string> =>
  bundled('sdk-server.ts', `import{createRequire}from'node:module';const require=createRequire(import.meta.url);`);
