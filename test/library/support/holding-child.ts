import { lockDatabase } from '../../../src/library/database/lock.ts';
import { openLibrary } from '../../../src/library/open.ts';

/** Owns the file without serving it, like an import, and stops inside a transaction, too busy to renew its note. */
const { database, timing } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const { check } = await lockDatabase(database, { timing });
const { context, keys } = await openLibrary({ database, now: () => Date.now(), checkLock: check });
keys.create({ name: 'Committed' });
say({});
context.database.transaction(() => {
  keys.create({ name: 'Never committed' });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
});
