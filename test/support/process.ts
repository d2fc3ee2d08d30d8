import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { waitFor, waitInBackground } from './deadline.ts';

/** How long a started command may take to print an expected text, in milliseconds. */
const startLimitMs = 40_000;

const mainFile = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Returns a Node.js flag that runs a script before the command. */
export const buildImportFlag = (script: string) => `--import=data:text/javascript,${encodeURIComponent(script)}`;

/**
 * Flags that disable the optimizing WebAssembly compiler in tests, because a short process gains less from optimized
 * code than the compiler costs. Benchmarks keep the compiler.
 */
export const baselineCompilerFlags = process.env.VITEST
  ? [buildImportFlag("import('node:v8').then((v8) => v8.setFlagsFromString('--liftoff-only'))")]
  : [];

/** Returns the built command with these arguments: `node dist/main.js …`. */
export const buildCommandLine = (args: string[] = []) => ({
  command: process.execPath,
  args: [...baselineCompilerFlags, mainFile, ...args],
});

/** Environment variables without a writable home folder, so that tests never export into the developer's home folder. */
export const unwritableHome = { HOME: '/nowhere', TMPDIR: '/nowhere' };

/** The exit code and the output of a process that has ended. */
export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * A flag that ends the started process if the test run is killed, which closes the IPC channel. Worker threads have no
 * such channel.
 */
const endWithParentFlag = buildImportFlag(
  `if (process.channel) { process.once('disconnect', () => process.exit(1)); process.channel.unref(); }`,
);

/**
 * Starts the built command.
 * @param wrapper another command that runs the built command, such as a tracer
 */
export function startCommand(args: string[] = [], env: Record<string, string> = {}, wrapper: string[] = []) {
  const { command: node, args: allArgs } = buildCommandLine(args);
  const [file = '', ...wrappedArgs] = [...wrapper, node, endWithParentFlag, ...allArgs];
  const child = spawn(file, wrappedArgs, {
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
  const end = new Promise<CommandResult>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  /** Resolves with the first match in standard error. Rejects if the process ends first or the limit passes. */
  const waitForStderr = (pattern: RegExp) => {
    const match = new Promise<RegExpExecArray>((resolve, reject) => {
      const searchStderr = () => {
        const result = pattern.exec(stderr);
        if (result) resolve(result);
      };
      child.stderr?.on('data', searchStderr);
      searchStderr();
      void end.then(({ code }) =>
        reject(new Error(`The process ended with exit code ${code} before it wrote ${pattern}: ${stderr}`)),
      );
    });
    return waitFor(match, `${pattern} on standard error`, startLimitMs);
  };
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    waitForStderr,
    /** Resolves when the process has ended. Rejects after a minute. */
    get ended() {
      return waitInBackground(end, `the command "${args.join(' ')}" to end`);
    },
  };
}

/** Runs the built command to its end. */
export function runCommand(
  args: string[],
  options: { env?: Record<string, string>; input?: string } = {},
): Promise<CommandResult> {
  const command = startCommand(args, options.env);
  command.child.stdin?.end(options.input ?? '');
  return command.ended;
}

/** A running `http` command. */
export type HttpCommand = Awaited<ReturnType<typeof startHttpCommand>>;

/** Starts the built `http` command on a free port of the loopback interface. */
export async function startHttpCommand(args: string[] = [], env: Record<string, string> = {}) {
  const command = startCommand(['http', '--port', '0', ...args], env);
  const [, url = ''] = await command.waitForStderr(/^ad-library-mcp: listening on (\S+)$/m);
  const { origin, port } = new URL(url);
  return {
    url,
    origin,
    port: Number(port),
    process: command,
    close: () => {
      command.child.kill('SIGTERM');
      return command.ended;
    },
  };
}
