import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** Where the code of a worker is located. */
export interface WorkerSource {
  /** URL of the module that starts the worker. The two paths below are relative to this URL. */
  baseUrl: string;
  /** Path of the TypeScript source. Used when the server runs without a build. */
  sourcePath: string;
  /** Path of the built file, which is in the same folder as the bundle. */
  builtPath: string;
}

/** Starts a worker thread. Runs the built file if this module itself is built, and the TypeScript source otherwise. */
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
    // Standard output carries MCP messages, so the worker must not write to it. These options give the worker its own
    // streams. Nobody reads them, because reading would keep the process alive.
    stdin: false,
    stdout: true,
    stderr: true,
  });
}

/**
 * Returns JavaScript that imports a TypeScript worker. On Node 20, a worker can import TypeScript only after it has
 * registered tsx.
 */
function createSourceLoader(worker: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const api = new URL('dist/esm/api/index.mjs', tsx);
  return `import('${api}').then(({ register }) => (register(), import('${worker}')))`;
}
