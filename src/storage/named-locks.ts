import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';
import type { StoreAccess } from './store/access.ts';
import type { LeaseHolder } from './store/leases.ts';

/**
 * Mutual exclusion locks for tool calls, identified by name. Two calls that read the same ads take the same lock. They
 * therefore run one after the other, and the user pays for the ads only once.
 */
export interface NamedLocks {
  /**
   * Waits until no other tool call holds the lock with this name, then takes the lock. Resolves to a function that
   * releases the lock.
   * @throws AdLibraryError `busy` if the signal aborts first
   */
  acquire(lockName: string, signal: AbortSignal): Promise<() => void>;
}

interface StoredLock extends LeaseHolder {
  id: string;
}

/** How long the store remembers that a lock is taken, in milliseconds. No tool call takes this long. */
const lockTtlMs = 3_600_000;

/** Opens the locks that all processes with the same store share. If a process dies, its locks are released. */
export function openNamedLocks({ documents, leases, queue, buildKey }: StoreAccess): NamedLocks {
  return {
    acquire: async (lockName, signal) => {
      const [id, key] = [randomUUID(), buildKey(lockName, 'slot')];
      leases.open(id);
      const isTaken = (storedLock: StoredLock, now: number) =>
        storedLock.id !== id && !leases.isClosed(storedLock.id, storedLock) && !leases.isAbandoned(storedLock, now);
      const remove = (storedLock: StoredLock | undefined) => ({
        ...(storedLock?.id === id && { next: null }),
        result: undefined,
      });
      const releaseLock = () => {
        leases.close(id);
        void queue.write(() => documents.update<StoredLock, void>(key, remove));
      };
      try {
        for (;;) {
          const takenVersion = await documents.update<StoredLock, string | undefined>(
            key,
            (storedLock, now, version) => {
              if (storedLock && isTaken(storedLock, now)) return { result: version };
              return { next: { id, owner: leases.owner, takenAt: now }, ttlMs: lockTtlMs, result: undefined };
            },
          );
          if (takenVersion === undefined) return releaseLock;
          await documents.waitForChange(key, takenVersion, signal);
        }
      } catch (error) {
        releaseLock();
        if (!signal.aborted) throw error;
        throw new AdLibraryError({ kind: 'busy', storage: 'slot' });
      }
    },
  };
}
