import { dayMs } from '../views/durations.ts';
import type { CursorState, CursorStore } from './call-state.ts';
import type { StoreAccess } from './store/access.ts';
import { openEncryptedItems } from './store/encryption.ts';

/**
 * The lifetime of a stored page cursor, and the maximum size of all stored cursors of a tenant. During this lifetime, a
 * tool call can request the next page of a search without repeating the filters.
 */
const cursorLimits = { ttlMs: dayMs, maxBytes: 2 * 1024 * 1024 };

/** Returns a function that gives access to the stored page cursors of a tenant (API key). */
export const openCursors =
  (access: StoreAccess) =>
  (tenantId: string): CursorStore => {
    const encryptedCursors = openEncryptedItems(access, access.buildKey(tenantId, 'cursors'));
    const hashCursor = (cursor: string) => access.encryption.hashName('cursor', cursor);
    return {
      save: async (cursor, state) => {
        const id = hashCursor(cursor);
        const encryptedState = encryptedCursors.encrypt(id, JSON.stringify(state));
        if (encryptedState.length > cursorLimits.maxBytes / 2 || access.store.isNearlyFull()) return;
        await access.queue.write(() => encryptedCursors.putItem(id, encryptedState, cursorLimits), {
          bytes: encryptedState.length,
        });
      },
      load: async (cursor) => {
        const stateJson = await encryptedCursors.getItem(hashCursor(cursor));
        return stateJson && (JSON.parse(String(stateJson)) as CursorState);
      },
    };
  };
