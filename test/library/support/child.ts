import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs a TypeScript file of this folder in a process of its own, which writes one line of JSON when it is ready. */
export async function startChild(file: string, args: Record<string, unknown>) {
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
  const ended = once(child, 'exit');
  const ready = await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended.then(() => undefined)]);
  if (ready === undefined) throw new Error(`The child ended before it was ready: ${errors}`);
  return {
    pid: child.pid as number,
    ready: JSON.parse(String(ready[0])),
    /** As if the power of this one process went out. */
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
