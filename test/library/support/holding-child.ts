import { randomBytes } from 'node:crypto';
import { openLibrary } from '../../../src/library/open.ts';
import { claim } from '../../../src/library/owner.ts';

/** Owns the file without serving it, as an import does, and leaves a transaction open. */
const { database } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
await claim(database, randomBytes(8).toString('hex'));
const { shop, keys } = await openLibrary({ database, now: () => Date.now() });
const { key } = keys.create({ name: 'Committed' });
shop.database.transaction(() => {
  keys.create({ name: 'Never committed' });
  process.stdout.write(JSON.stringify({ key }));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
});
