import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A part of a benchmark in a process of its own, and its message when it was ready. */
export interface Child<Ready> {
  ready: Ready;
  process: ChildProcess;
}

/** Starts a file of this folder; rejects when it ends without a word. */
export async function startChild<Ready>(file: string, ...given: string[]): Promise<Child<Ready>> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, given, { execArgv: ['--import', 'tsx'] });
  process.once('exit', () => child.kill());
  const ready = await new Promise<Ready>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Ready));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}.`)));
  });
  return { ready, process: child };
}
