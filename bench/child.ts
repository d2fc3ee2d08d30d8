import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildOptions } from '../scripts/bundle.ts';

/** A part of a benchmark that runs in a process of its own, with the message that it sent when it was ready. */
export interface Child<Ready> {
  ready: Ready;
  process: ChildProcess;
}

/** Starts a file of this folder or a bundle in a process of its own. Rejects if the process ends before it is ready. */
export async function startChild<Ready>(file: string, ...args: string[]): Promise<Child<Ready>> {
  const path = isAbsolute(file) ? file : fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, args, { execArgv: path === file ? [] : ['--import', 'tsx'] });
  process.once('exit', () => child.kill());
  const ready = await new Promise<Ready>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Ready));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}.`)));
  });
  return { ready, process: child };
}

/**
 * Bundles a file of this folder with the options of the server's build. Code that tsx compiles at run time is slower,
 * because it names each closure again. Returns the path of the bundle.
 * @param code a line at the beginning of the bundle
 */
export async function bundleFile(file: string, code = ''): Promise<string> {
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

/** Bundles `sdk-server.ts` with the variable that its CommonJS packages expect. */
export const bundleSdkServer = (): Promise<string> =>
  bundleFile('sdk-server.ts', `import{createRequire}from'node:module';const require=createRequire(import.meta.url);`);
