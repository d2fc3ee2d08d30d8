import { basename } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as startWorkers from '../../src/workers/start-worker.ts';

/** The folder to which `bundle-workers.ts` writes the bundled workers. */
export const workersFolder = fileURLToPath(new URL('../../node_modules/.bundled-workers/', import.meta.url));

/** Starts a bundled worker, as the built command does. */
export const startWorker: typeof startWorkers.startWorker = (source, workerData) => {
  const bundleUrl = pathToFileURL(`${workersFolder}bundle.js`).href;
  return startWorkers.startWorker({ ...source, builtPath: basename(source.builtPath), baseUrl: bundleUrl }, workerData);
};
