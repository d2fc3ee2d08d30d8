import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export const imported = (script: string) => `--import=data:text/javascript,${encodeURIComponent(script)}`;

/** Engines that run for moments take half of their time to compile again what is hot in them. Benchmarks let them. */
export const compiledOnce = process.env.VITEST
  ? [imported("import('node:v8').then((v8) => v8.setFlagsFromString('--liftoff-only'))")]
  : [];

/** The built command, as people run it: `node dist/main.js …`, with nothing of this process's settings. */
export const command = (args: string[] = []) => ({ command: process.execPath, args: [...compiledOnce, main, ...args] });

/** Without a place for files, exports of tests stay out of the home folder of the person who runs them. */
export const noPlace = { HOME: '/nowhere', TMPDIR: '/nowhere' };

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Ends a process whose test run was killed: until then it holds a channel to that. Workers of it have none. */
const endsWithParent = imported(
  `if (process.channel) { process.once('disconnect', () => process.exit(1)); process.channel.unref(); }`,
);

/** @param within another command, that runs this one */
export function start(args: string[] = [], env: Record<string, string> = {}, within: string[] = []) {
  const { command: node, args: all } = command(args);
  const [file = '', ...words] = [...within, node, endsWithParent, ...all];
  const child = spawn(file, words, {
    env: { PATH: process.env.PATH ?? '', ...noPlace, ...env },
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  /** Resolves with the first part of standard error that fits; rejects when the process ends before. */
  const says = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(stderr);
        if (found) resolve(found);
      };
      child.stderr?.on('data', look);
      look();
      void ended.then(({ code }) => reject(new Error(`ended with ${code} before it said ${pattern}: ${stderr}`)));
    });
  return { child, stdout: () => stdout, stderr: () => stderr, says, ended };
}

export function run(args: string[], options: { env?: Record<string, string>; input?: string } = {}): Promise<Ran> {
  const { child, ended } = start(args, options.env);
  child.stdin?.end(options.input ?? '');
  return ended;
}

export type Served = Awaited<ReturnType<typeof serveHttp>>;

/** The built command serving HTTP on a free port of loopback. */
export async function serveHttp(args: string[] = [], env: Record<string, string> = {}) {
  const running = start(['http', '--port', '0', ...args], env);
  const [, url = ''] = await running.says(/^ad-library-mcp: listening on (\S+)$/m);
  const { origin, port } = new URL(url);
  return {
    url,
    origin,
    port: Number(port),
    process: running,
    close: () => {
      running.child.kill('SIGTERM');
      return running.ended;
    },
  };
}
