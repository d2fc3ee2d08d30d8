import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** The location of the code of a worker. */
export interface WorkerSource {
  /** The URL of the module that starts the worker. The paths are relative to this URL. */
  baseUrl: string;
  /** The path of the TypeScript source, for runs without a build. */
  sourcePath: string;
  /** The path of the built file, which is beside the bundle. */
  builtPath: string;
}

/** Starts a worker thread: the built file if this module is built too, and the TypeScript source otherwise. */
export function startWorker(
  { baseUrl: from, sourcePath: source, builtPath: built }: WorkerSource,
  workerData: object,
): Worker {
  const runsFromSources = from.endsWith('.ts');
  return new Worker(runsFromSources ? createSourceLoader(new URL(source, from)) : new URL(built, from), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    eval: runsFromSources,
    execArgv: [],
    argv: [],
    env: {},
    // Standard output carries the messages of the MCP protocol, so the worker must not write to it. The worker gets
    // streams of its own, which nobody reads, because reading would keep the process alive.
    stdin: false,
    stdout: true,
    stderr: true,
  });
}

/** Returns code that loads a TypeScript worker. Node 20 can load TypeScript only after tsx was registered in the worker. */
function createSourceLoader(worker: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const api = new URL('dist/esm/api/index.mjs', tsx);
  return `import('${api}').then(({ register }) => (register(), import('${worker}')))`;
}
