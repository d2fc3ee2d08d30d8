import { randomBytes } from 'node:crypto';
import { openFolderState } from '../../src/storage/folder.ts';
import { addAds } from './add-items.ts';

/**
 * Adds ads to a dataset in a folder, one after the other, each together with a new version of a large ad. Prints a line of
 * JSON after each ad.
 */
const { folder, name, baseUrl } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const printJson = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const warnings: string[] = [];
const { datasets, locks } = openFolderState({
  ...{ folder, baseUrl, apiKey: 'k', ttlMs: 0, now: Date.now, monotonicNow: Date.now },
  fetchUserId: async () => 'u',
  warn: (message) => warnings.push(message),
});
await locks.acquire(name, new AbortController().signal);
for (let count = 0; ; count++) {
  const dataset = await datasets.open({ tenantId: 't', apiKey: 'k' });
  const failed = (error: unknown) => void warnings.push(String(error));
  await addAds(
    dataset,
    count,
    { id: `${name}-${count}` },
    { id: 'large', body: randomBytes(30_000).toString('hex') },
  ).catch(failed);
  await dataset.userRecords
    .update('label', () => ({ put: [[`${name}-${count}`, count]], result: undefined }))
    .catch(failed);
  printJson({ id: `${name}-${count}`, warnings: warnings.splice(0) });
}
