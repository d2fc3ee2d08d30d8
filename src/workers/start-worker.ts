import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** The two locations of the code of a worker: its TypeScript source and its built JavaScript file. */
export interface WorkerSource {
  /** The URL of the module that starts the worker. `sourcePath` and `builtPath` are relative to this URL. */
  baseUrl: string;
  /** The path of the TypeScript source. The worker runs the source if the project is not built. */
  sourcePath: string;
  /** The path of the built JavaScript file, which is in the same folder as the bundle of the main thread. */
  builtPath: string;
}

/**
 * Starts a worker thread. The thread runs the built JavaScript file if the module at `baseUrl` is built. Otherwise, the
 * thread runs the TypeScript source.
 */
export function startWorker({ baseUrl, sourcePath, builtPath }: WorkerSource, workerData: object): Worker {
  const isRunningFromSource = baseUrl.endsWith('.ts');
  return new Worker(
    isRunningFromSource ? createSourceLoader(new URL(sourcePath, baseUrl)) : new URL(builtPath, baseUrl),
    {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      eval: isRunningFromSource,
      execArgv: [],
      argv: [],
      env: {},
      // Separate the worker from the standard streams of the process, because standard output carries MCP messages. No
      // code reads the output of the worker, because reading would keep the process alive.
      stdin: false,
      stdout: true,
      stderr: true,
    },
  );
}

/**
 * Returns JavaScript code that imports the TypeScript source of a worker. On Node 20, the worker must first register
 * tsx, which loads TypeScript.
 */
function createSourceLoader(workerUrl: URL): string {
  const tsxUrl = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const tsxApiUrl = new URL('dist/esm/api/index.mjs', tsxUrl);
  return `import('${tsxApiUrl}').then(({ register }) => (register(), import('${workerUrl}')))`;
}
