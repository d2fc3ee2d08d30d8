import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';
import type { StoreAccess } from './store/access.ts';

/** Lets calls with the same turn run one after the other. */
export interface Turns {
  /** Resolves when the turn is free, to a function that ends it. Rejects with `busy` if the signal aborts first. */
  acquire(name: string, signal: AbortSignal): Promise<() => void>;
}

interface Turn {
  id: string;
  owner: string;
  at: number;
}

/** How long a turn lasts at most, in milliseconds. */
const turnMs = 3_600_000;

/** The turn of a process that dies is free. */
export function turnsOver({ documents, leases, queue, keyOf }: StoreAccess): Turns {
  return {
    acquire: async (name, signal) => {
      const [id, key] = [randomUUID(), keyOf(name, 'turn')];
      leases.open(id);
      const remove = (doc: Turn | undefined) => ({ ...(doc?.id === id && { next: null }), result: undefined });
      const end = () => {
        leases.close(id);
        void queue.write(() => documents.update<Turn, void>(key, remove));
      };
      try {
        for (;;) {
          const other = await documents.update<Turn, string | undefined>(key, (doc, now, version) => {
            const isTaken = doc && doc.id !== id && !leases.isClosed(doc.id, doc) && !leases.isAbandoned(doc, now);
            if (isTaken) return { result: version };
            return { next: { id, owner: leases.owner, at: now }, ttlMs: turnMs, result: undefined };
          });
          if (other === undefined) return end;
          await documents.changed(key, other, signal);
        }
      } catch (error) {
        end();
        if (!signal.aborted) throw error;
        throw new AdLibraryError({ kind: 'busy', storage: 'slot' });
      }
    },
  };
}
