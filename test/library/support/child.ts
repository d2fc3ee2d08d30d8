import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Child = {
  pid: number;
  /** The next line of JSON that the process writes; the first one has come by the time it is handed out. */
  ready: Record<string, string>;
  next(): Promise<Record<string, string>>;
  signal(name: NodeJS.Signals): void;
  /** As if the power of this one process went out. */
  kill(): Promise<void>;
  /** Its exit code and what it wrote to standard error. */
  ended: Promise<{ code: number | null; errors: string }>;
};

/** Runs a TypeScript file of this folder in a process of its own, which writes a line of JSON when it is ready. */
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
    pid: child.pid ?? 0,
    ready: await next(),
    next,
    signal: (name) => child.kill(name),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    ended,
  };
}
