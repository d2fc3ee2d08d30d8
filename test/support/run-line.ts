import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';
import type { Ran } from './process.ts';

/** Runs a line in a shell, with a folder of programs before all others. Ends a server once it is ready. */
export function runLine(line: string, { cwd, programs, env }: RunLineOptions): Promise<Ran> {
  const child = spawn('sh', ['-c', line], {
    cwd,
    env: { PATH: `${programs}${delimiter}${process.env.PATH}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
    if (/(listening|library) on http/.test(stderr) && child.pid) process.kill(-child.pid, 'SIGTERM');
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

export interface RunLineOptions {
  cwd: string;
  programs: string;
  env?: Record<string, string>;
}
