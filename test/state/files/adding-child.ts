import { FileDatasets } from '../../../src/state/files/file-datasets.ts';
import { add } from '../add-items.ts';

/** Adds one ad after the other to a dataset in files, each beside a large one that comes again, and says when it is in. */
const { folder, name, baseUrl } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const warnings: string[] = [];
const datasets = new FileDatasets({
  folder,
  baseUrl,
  now: Date.now,
  elapsed: Date.now,
  userIdOf: async () => 'u',
  warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
});
for (let count = 0; ; count++) {
  const dataset = await datasets.of({ tenantId: 't', apiKey: 'k' });
  await add(dataset, count, { id: `${name}-${count}` }, { id: 'large', body: 'x'.repeat(40_000) });
  await dataset.own.update('label', () => ({ put: [[`${name}-${count}`, count]], result: undefined })).catch(() => {});
  say({ id: `${name}-${count}`, warnings: warnings.splice(0) });
}
