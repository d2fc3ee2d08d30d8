import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** The location of a worker's code, both as TypeScript source and as a built file. */
export interface WorkerSource {
  /** The URL of the module that starts the worker. The two paths below are relative to this URL. */
  baseUrl: string;
  /** The path of the TypeScript source. It is used when the server runs without a build. */
  sourcePath: string;
  /** The path of the built JavaScript file, which is in the same folder as the bundle. */
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
    // Give the worker its own output streams. It must not write to standard output, which carries MCP messages. Nobody
    // reads these streams, because reading would keep the process alive.
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
