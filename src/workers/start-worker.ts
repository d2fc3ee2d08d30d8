import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** The two locations of a worker's code: its TypeScript source, and its built JavaScript file. */
export interface WorkerSource {
  /** The URL of the module that starts the worker. The paths below are relative to it. */
  baseUrl: string;
  /** The path of the TypeScript source, which is used without a build. */
  sourcePath: string;
  /** The path of the built JavaScript file, in the same folder as the bundle. */
  builtPath: string;
}

/**
 * Starts a worker thread. If the module at `baseUrl` is built, the thread runs the built file, and otherwise the
 * source.
 */
export function startWorker({ baseUrl, sourcePath, builtPath }: WorkerSource, workerData: object): Worker {
  const runsFromSources = baseUrl.endsWith('.ts');
  return new Worker(runsFromSources ? createSourceLoader(new URL(sourcePath, baseUrl)) : new URL(builtPath, baseUrl), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    eval: runsFromSources,
    execArgv: [],
    argv: [],
    env: {},
    // Keep the worker away from standard output, which carries MCP messages. Nobody reads the worker's own streams,
    // because reading would keep the process alive.
    stdin: false,
    stdout: true,
    stderr: true,
  });
}

/** Returns JavaScript code that imports a TypeScript worker. On Node 20, a worker must first register tsx to do so. */
function createSourceLoader(workerUrl: URL): string {
  const tsxUrl = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const tsxApiUrl = new URL('dist/esm/api/index.mjs', tsxUrl);
  return `import('${tsxApiUrl}').then(({ register }) => (register(), import('${workerUrl}')))`;
}
