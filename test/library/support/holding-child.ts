import { takeLease } from '../../../src/library/lease.ts';
import { openLibrary } from '../../../src/library/open.ts';

/**
 * Owns the file without serving it, like an import, and stops inside a transaction: suspended, or (`suspended: false`)
 * too busy to renew its lease.
 */
const { database, timing, suspended = false } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const { check } = await takeLease(database, { token: `token of ${process.pid}`, timing });
const { context, keys } = await openLibrary({ database, now: () => Date.now(), checkLease: check });
keys.create({ name: 'Committed' });
say({});
try {
  context.database.transaction(() => {
    keys.create({ name: 'Never committed' });
    if (suspended) process.kill(process.pid, 'SIGSTOP');
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  });
  say({ wrote: true });
} catch (error) {
  say({ refused: (error as Error).message });
}
process.exit();
