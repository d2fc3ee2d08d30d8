import type { CursorMemory, CursorState, State } from './ports.ts';
import type { Shared } from './store/retries.ts';
import { sealedItems } from './store/seal.ts';
import { TenantCache } from './tenant-cache.ts';

/** How long a cursor may be used without its filters, in milliseconds: a day. */
const cursorTtl = 86_400_000;

export function memoryCursors(now: () => number): State['cursorsOf'] {
  const cursors = new TenantCache<CursorState>({ maxBytes: 32 * 1024 * 1024, ttl: cursorTtl, now });
  return (tenantId) => ({
    remember: async (cursor, value) =>
      cursors.set(tenantId, cursor, { value, bytes: 2 * JSON.stringify(value).length }),
    recall: async (cursor) => cursors.get(tenantId, cursor),
  });
}

const cursorLimits = { ttlMs: cursorTtl, maxBytes: 2 * 1024 * 1024 };

/** Each replica also remembers its own cursors: it need not read them, and has only these while the store is away. */
export function sharedCursors(shared: Shared, tenantId: string, own: CursorMemory): CursorMemory {
  const { store, seal, retries, keyOf } = shared;
  const items = sealedItems(shared, keyOf(tenantId, 'cursors'));
  const idOf = (cursor: string) => seal.name('cursor', cursor);
  return {
    remember: async (cursor, state) => {
      await own.remember(cursor, state);
      const id = idOf(cursor);
      const body = items.close(id, JSON.stringify(state));
      if (body.length > cursorLimits.maxBytes / 2 || store.isTight()) return;
      await retries.do(() => items.put(id, body, cursorLimits), { bytes: body.length });
    },
    recall: async (cursor) => {
      const known = await own.recall(cursor);
      if (known !== undefined) return known;
      const text = await items.get(idOf(cursor));
      return text ? (JSON.parse(String(text)) as CursorState) : undefined;
    },
  };
}
