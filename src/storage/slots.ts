import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';
import type { StoreAccess } from './store/access.ts';
import type { LeaseHolder } from './store/leases.ts';

/**
 * Named locks for tool calls. Only one call at a time holds the slot with a given name. Two calls that read the same
 * ads therefore run one after the other, and the user pays for the ads only once.
 */
export interface Slots {
  /**
   * Waits until no other tool call holds the slot with this name, then takes the slot. Resolves to a function that
   * releases the slot.
   * @throws AdLibraryError `busy` if the signal aborts first
   */
  acquire(slotName: string, signal: AbortSignal): Promise<() => void>;
}

interface StoredSlot extends LeaseHolder {
  id: string;
}

/** How long the store remembers that a slot (a named lock) is taken, in milliseconds. No tool call takes this long. */
const slotTtlMs = 3_600_000;

/**
 * Opens the slots (named locks) that all processes with the same store share. If a process dies, its slots are
 * released.
 */
export function openSlots({ documents, leases, queue, buildKey }: StoreAccess): Slots {
  return {
    acquire: async (slotName, signal) => {
      const [id, key] = [randomUUID(), buildKey(slotName, 'slot')];
      leases.open(id);
      const isTaken = (slot: StoredSlot, now: number) =>
        slot.id !== id && !leases.isClosed(slot.id, slot) && !leases.isAbandoned(slot, now);
      const remove = (slot: StoredSlot | undefined) => ({ ...(slot?.id === id && { next: null }), result: undefined });
      const releaseSlot = () => {
        leases.close(id);
        void queue.write(() => documents.update<StoredSlot, void>(key, remove));
      };
      try {
        for (;;) {
          const takenVersion = await documents.update<StoredSlot, string | undefined>(key, (slot, now, version) => {
            if (slot && isTaken(slot, now)) return { result: version };
            return { next: { id, owner: leases.owner, takenAt: now }, ttlMs: slotTtlMs, result: undefined };
          });
          if (takenVersion === undefined) return releaseSlot;
          await documents.waitForChange(key, takenVersion, signal);
        }
      } catch (error) {
        releaseSlot();
        if (!signal.aborted) throw error;
        throw new AdLibraryError({ kind: 'busy', storage: 'slot' });
      }
    },
  };
}
