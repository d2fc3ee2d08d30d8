import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

export interface WorkerSource {
  /** The module that starts the worker: where the paths begin. */
  from: string;
  /** The worker's TypeScript, and what the build makes of it. */
  source: string;
  built: string;
}

export interface WorkerEvents<Message> extends Pick<WorkerOptions, 'workerData' | 'resourceLimits'> {
  onMessage(message: Message): void;
  /** May be called twice. @param cause if it failed */
  onEnd(cause?: unknown): void;
}

/**
 * Starts a thread without an environment, arguments and standard output, which does not keep the process alive.
 *
 * The build puts the worker beside the bundle. Run from sources it is TypeScript, which Node 20 reads only after tsx was
 * registered in the worker itself.
 */
export function startWorker<Message>(
  { from, source, built }: WorkerSource,
  { onMessage, onEnd, ...options }: WorkerEvents<Message>,
): Worker {
  const isSource = from.endsWith('.ts');
  const worker = new Worker(isSource ? fromSources(new URL(source, from)) : new URL(built, from), {
    ...options,
    eval: isSource,
    execArgv: [],
    argv: [],
    env: {},
    // Standard output belongs to the protocol. Nobody reads this one: reading would keep the process alive.
    stdin: false,
    stdout: true,
    stderr: true,
  });
  worker.on('message', onMessage);
  worker.on('error', onEnd);
  worker.on('exit', () => onEnd());
  // Only now: whoever listens keeps the process alive.
  worker.unref();
  return worker;
}

function fromSources(worker: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const api = new URL('dist/esm/api/index.mjs', tsx);
  return `import('${api}').then(({ register }) => (register(), import('${worker}')))`;
}
