import { FileDatasets } from '../../../src/state/files/file-datasets.ts';
import { add } from '../add-items.ts';

/** Adds one ad after the other to a dataset in files, and says each when it is in. */
const { folder, name } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const datasets = new FileDatasets({
  folder,
  baseUrl: 'https://api.example.com',
  now: Date.now,
  elapsed: Date.now,
  userIdOf: async () => 'u',
  warn: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`),
});
for (let count = 0; ; count++) {
  const dataset = await datasets.of({ tenantId: 't', apiKey: 'k' });
  await add(dataset, count, { id: `${name}-${count}`, body: 'x'.repeat(20_000) });
  say({ id: `${name}-${count}` });
}
