import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildOptions } from '../scripts/bundle.ts';

/**
 * A separate process that runs a part of a benchmark. `readyMessage` is the first message that the process sends, as
 * soon as it can do its work.
 */
export interface Child<ReadyMessage> {
  readyMessage: ReadyMessage;
  process: ChildProcess;
}

/**
 * Runs a source file of this folder, or a bundle at an absolute path, in a separate process. Rejects if the process
 * exits before it sends its first message.
 */
export async function startChild<ReadyMessage>(file: string, ...args: string[]): Promise<Child<ReadyMessage>> {
  const filePath = isAbsolute(file) ? file : fileURLToPath(new URL(file, import.meta.url));
  const child = fork(filePath, args, { execArgv: filePath === file ? [] : ['--import', 'tsx'] });
  process.once('exit', () => child.kill());
  const readyMessage = await new Promise<ReadyMessage>((resolve, reject) => {
    child.once('message', (message) => resolve(message as ReadyMessage));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}.`)));
  });
  return { readyMessage, process: child };
}

/**
 * Bundles a file of this folder with the options of the published build, and returns the path of the bundle. Without a
 * bundle, tsx would compile the file at run time, and helper code that tsx adds would slow the file down.
 * @param firstLine a line of code to insert at the beginning of the bundle
 */
export async function bundleFile(file: string, firstLine = ''): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  const outfile = join(folder, file.replace(/\.ts$/, '.mjs'));
  await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    outfile,
    banner: { js: firstLine },
    ...buildOptions,
  });
  return outfile;
}

/**
 * Bundles `sdk-server.ts`. The first line of the bundle defines `require`, because CommonJS packages in the bundle call
 * it.
 */
export const bundleSdkServer = (): Promise<string> =>
  bundleFile('sdk-server.ts', `import{createRequire}from'node:module';const require=createRequire(import.meta.url);`);
