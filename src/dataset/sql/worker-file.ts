import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { WorkerOptions } from 'node:worker_threads';

/** What a worker is started from. */
export interface WorkerFile {
  file: URL | string;
  options: Pick<WorkerOptions, 'eval' | 'execArgv'>;
}

/**
 * The build puts the worker beside the bundle. Run from sources it is TypeScript, which Node 20 reads only after tsx was
 * registered in the worker itself.
 */
export const workerFile: WorkerFile = import.meta.url.endsWith('.ts')
  ? { file: fromSources(new URL('./worker.ts', import.meta.url)), options: { eval: true, execArgv: [] } }
  : { file: new URL('./sql-worker.js', import.meta.url), options: { execArgv: [] } };

function fromSources(worker: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const api = new URL('dist/esm/api/index.mjs', tsx);
  return `import('${api}').then(({ register }) => (register(), import('${worker}')))`;
}
