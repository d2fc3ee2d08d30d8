import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { waitFor } from './deadline.ts';

/** How long a started command may take to write an expected text, in milliseconds. */
const startLimitMs = 40_000;

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export const importFlag = (script: string) => `--import=data:text/javascript,${encodeURIComponent(script)}`;

/** Engines that run for moments take half of their time to compile again what is hot in them. Benchmarks let them. */
export const baselineCompilerFlags = process.env.VITEST
  ? [importFlag("import('node:v8').then((v8) => v8.setFlagsFromString('--liftoff-only'))")]
  : [];

/** The built command, as people run it: `node dist/main.js …`, with nothing of this process's settings. */
export const commandLine = (args: string[] = []) => ({
  command: process.execPath,
  args: [...baselineCompilerFlags, main, ...args],
});

/** Without a place for files, exports of tests stay out of the home folder of the person who runs them. */
export const unwritableHome = { HOME: '/nowhere', TMPDIR: '/nowhere' };

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Ends a process whose test run was killed: until then it holds a channel to that. Workers of it have none. */
const endsWithParent = importFlag(
  `if (process.channel) { process.once('disconnect', () => process.exit(1)); process.channel.unref(); }`,
);

/** @param within another command, that runs this one */
export function startCommand(args: string[] = [], env: Record<string, string> = {}, within: string[] = []) {
  const { command: node, args: all } = commandLine(args);
  const [file = '', ...words] = [...within, node, endsWithParent, ...all];
  const child = spawn(file, words, {
    env: { PATH: process.env.PATH ?? '', ...unwritableHome, ...env },
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
  const ended = new Promise<CommandResult>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  );
  /** Resolves with the first match in standard error; rejects if the process ends first or the text does not come. */
  const waitForStderr = (pattern: RegExp) => {
    const match = new Promise<RegExpExecArray>((resolve, reject) => {
      const searchStderr = () => {
        const result = pattern.exec(stderr);
        if (result) resolve(result);
      };
      child.stderr?.on('data', searchStderr);
      searchStderr();
      void ended.then(({ code }) =>
        reject(new Error(`The process ended with exit code ${code} before it wrote ${pattern}: ${stderr}`)),
      );
    });
    return waitFor(match, `${pattern} on standard error`, startLimitMs);
  };
  return { child, stdout: () => stdout, stderr: () => stderr, says: waitForStderr, ended };
}

export function runCommand(
  args: string[],
  options: { env?: Record<string, string>; input?: string } = {},
): Promise<CommandResult> {
  const { child, ended } = startCommand(args, options.env);
  child.stdin?.end(options.input ?? '');
  return ended;
}

export type HttpCommand = Awaited<ReturnType<typeof startHttpCommand>>;

/** The built command serving HTTP on a free port of loopback. */
export async function startHttpCommand(args: string[] = [], env: Record<string, string> = {}) {
  const running = startCommand(['http', '--port', '0', ...args], env);
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
