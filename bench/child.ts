import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A part of a benchmark in a process of its own, and what it said when it was ready. */
export interface Child<Told> {
  told: Told;
  process: ChildProcess;
}

/** Starts a file of this folder; rejects when it ends without a word. */
export async function startChild<Told>(file: string, ...given: string[]): Promise<Child<Told>> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const process = fork(path, given, { execArgv: ['--import', 'tsx'] });
  const told = await new Promise<Told>((resolve, reject) => {
    process.once('message', (message) => resolve(message as Told));
    process.once('exit', (code) => reject(new Error(`${file} ended with ${code}.`)));
  });
  return { told, process };
}
