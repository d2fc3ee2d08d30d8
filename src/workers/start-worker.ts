import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

export interface WorkerSource {
  /** The module that starts the worker: where the paths begin. */
  baseUrl: string;
  /** The worker's TypeScript, and what the build makes of it. */
  sourcePath: string;
  builtPath: string;
}

/** The build puts the worker beside the bundle. Node 20 reads TypeScript only after tsx was registered in it. */
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
    // Standard output belongs to the protocol. Nobody reads this one: reading would keep the process alive.
    stdin: false,
    stdout: true,
    stderr: true,
  });
}

function createSourceLoader(worker: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const api = new URL('dist/esm/api/index.mjs', tsx);
  return `import('${api}').then(({ register }) => (register(), import('${worker}')))`;
}
