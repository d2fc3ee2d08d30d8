import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Child = {
  /** The first line of JSON that the process wrote. */
  ready: Record<string, string>;
  next(): Promise<Record<string, string>>;
  /** SIGKILL, so that nothing can be cleaned up. */
  kill(): Promise<void>;
  /** Its exit code and what it wrote to standard error. */
  ended: Promise<{ code: number | null; errors: string }>;
};

/** Runs a TypeScript file of this folder in its own process, which writes a line of JSON when it is ready. */
export async function startChild(file: string, args: Record<string, unknown>): Promise<Child> {
  const run =
    "const { runnerImport } = await import('vite'); await runnerImport(process.env.CHILD_FILE, { logLevel: 'error' });";
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', run], {
    env: { ...process.env, CHILD_FILE: new URL(file, import.meta.url).pathname, CHILD_ARGS: JSON.stringify(args) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr?.on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'close').then(([code]) => ({ code, errors }));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`The child ended before it was ready: ${(await ended).errors}`);
    return JSON.parse(value);
  };
  return {
    ready: await next(),
    next,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    ended,
  };
}
