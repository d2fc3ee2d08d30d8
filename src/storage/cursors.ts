import { dayMs } from '../views/durations.ts';
import type { CursorMemory, CursorState } from './call-state.ts';
import type { StoreAccess } from './store/access.ts';
import { openEncryptedItems } from './store/encryption.ts';

/** A caller can use a cursor without its filters for a day. */
const cursorLimits = { ttlMs: dayMs, maxBytes: 2 * 1024 * 1024 };

/** Returns a function that opens the cursors of a tenant in a store. */
export const openCursors =
  (shared: StoreAccess) =>
  (tenantId: string): CursorMemory => {
    const items = openEncryptedItems(shared, shared.keyOf(tenantId, 'cursors'));
    const idOf = (cursor: string) => shared.encryption.hashName('cursor', cursor);
    return {
      remember: async (cursor, state) => {
        const id = idOf(cursor);
        const body = items.encrypt(id, JSON.stringify(state));
        if (body.length > cursorLimits.maxBytes / 2 || shared.store.isNearlyFull()) return;
        await shared.queue.write(() => items.put(id, body, cursorLimits), { bytes: body.length });
      },
      recall: async (cursor) => {
        const text = await items.get(idOf(cursor));
        return text && (JSON.parse(String(text)) as CursorState);
      },
    };
  };
