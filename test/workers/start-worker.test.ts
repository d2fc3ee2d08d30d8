import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startWorker } from '../../src/workers/start-worker.ts';

test('a worker thread can start from its TypeScript source without a build', async () => {
  const from = new URL('../../src/pictures/pictures.ts', import.meta.url).href;
  const worker = startWorker({ baseUrl: from, sourcePath: './worker.ts', builtPath: './nothing.js' }, {});
  expect(await once(worker, 'message')).toHaveLength(1);
  await worker.terminate();
});
