import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { CreditLedger } from '../../../src/credits/ledger.ts';
import { Documents } from '../../../src/state/store/documents.ts';
import { Retries } from '../../../src/state/store/parts.ts';
import type { Store } from '../../../src/state/store/store.ts';
import { storeLedger } from '../../../src/state/store/store-ledger.ts';

/** The ledger of a process of its own, with accounts of its own. */
export function openTestLedger(store: Store, prefix = randomUUID()): CreditLedger {
  const seal = {
    close: (_: string, value: string | Buffer) => Buffer.from(value),
    open: (_: string, sealed: Buffer) => sealed,
  };
  const documents = new Documents({ store, seal, elapsed: () => performance.now(), wait });
  const presence = { id: randomUUID(), isDead: () => false, epoch: '', confirm: async () => {}, lost: async () => {} };
  const keyOf = (tenantId: string) => `{${prefix}}:${tenantId}`;
  return storeLedger({ documents, presence, retries: new Retries(1e6), keyOf });
}
