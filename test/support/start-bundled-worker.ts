import { basename } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as startWorkers from '../../src/workers/start-worker.ts';

/** Where `bundle-workers.ts` puts them. */
export const workers = fileURLToPath(new URL('../../node_modules/.bundled-workers/', import.meta.url));

/** Starts a worker of the sources as the built command starts its own. */
export const startWorker: typeof startWorkers.startWorker = (source, workerData) => {
  const from = pathToFileURL(`${workers}bundle.js`).href;
  return startWorkers.startWorker({ ...source, builtPath: basename(source.builtPath), baseUrl: from }, workerData);
};
