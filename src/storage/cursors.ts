import { dayMs } from '../views/durations.ts';
import type { CursorMemory, CursorState } from './call-state.ts';
import type { StoreAccess } from './store/access.ts';
import { sealedItems } from './store/seal.ts';

/** A cursor may be used without its filters for a day. */
const limits = { ttlMs: dayMs, maxBytes: 2 * 1024 * 1024 };

export const cursorsOver =
  (shared: StoreAccess) =>
  (tenantId: string): CursorMemory => {
    const items = sealedItems(shared, shared.keyOf(tenantId, 'cursors'));
    const idOf = (cursor: string) => shared.seal.name('cursor', cursor);
    return {
      remember: async (cursor, state) => {
        const id = idOf(cursor);
        const body = items.close(id, JSON.stringify(state));
        if (body.length > limits.maxBytes / 2 || shared.store.isNearlyFull()) return;
        await shared.queue.write(() => items.put(id, body, limits), { bytes: body.length });
      },
      recall: async (cursor) => {
        const text = await items.get(idOf(cursor));
        return text && (JSON.parse(String(text)) as CursorState);
      },
    };
  };
