import { LRUCache } from 'lru-cache';
import type { CursorState, Cursors } from './cursor.ts';

/** Most characters remembered behind the cursors of all tenants together. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** What an entry takes however short it is. */
const ENTRY_CHARACTERS = 500;

export interface CursorMemory {
  of(tenantId: string): Pick<Cursors, 'remember' | 'recall'>;
  /** Characters held. */
  readonly size: number;
}

/**
 * What is behind cursors, by tenant. When there is no room left, the tenant who holds most gives up its oldest: nobody
 * loses anything to a neighbour as long as they hold less than a fair share.
 */
export function createCursorMemory(maxCharacters = MAX_CHARACTERS): CursorMemory {
  const tenants = new Map<string, LRUCache<string, CursorState>>();
  let characters = 0;

  const remember = (tenantId: string, cursor: string, state: CursorState) => {
    const size = JSON.stringify(state).length + cursor.length + ENTRY_CHARACTERS;
    if (size > maxCharacters) return;
    const states = tenants.get(tenantId) ?? new LRUCache<string, CursorState>({ maxSize: maxCharacters });
    tenants.set(tenantId, states);
    characters -= states.calculatedSize;
    states.set(cursor, state, { size });
    characters += states.calculatedSize;
    while (characters > maxCharacters) dropOldest();
  };

  const dropOldest = () => {
    const [tenantId, states] = [...tenants].reduce((a, b) => (b[1].calculatedSize > a[1].calculatedSize ? b : a));
    characters -= states.calculatedSize;
    states.pop();
    characters += states.calculatedSize;
    if (states.size === 0) tenants.delete(tenantId);
  };

  return {
    of: (tenantId) => ({
      recall: (cursor) => tenants.get(tenantId)?.get(cursor),
      remember: (cursor, state) => remember(tenantId, cursor, state),
    }),
    get size() {
      return characters;
    },
  };
}
