import { LRUCache } from 'lru-cache';
import type { CursorState, Cursors } from './cursor.ts';

/** Most characters remembered behind the cursors of all tenants together. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** What an entry takes however short it is. */
const ENTRY_CHARACTERS = 500;

export type CursorMemory = (tenantId: string) => Pick<Cursors, 'remember' | 'recall'>;

/**
 * What is behind cursors, by tenant. When there is no room left, the tenant who holds most gives up its oldest: nobody
 * loses anything to a neighbour as long as they hold less than a fair share.
 */
export function createCursorMemory(maxCharacters = MAX_CHARACTERS): CursorMemory {
  const tenants = new Map<string, LRUCache<string, CursorState>>();
  let characters = 0;

  const statesOf = (tenantId: string) => {
    const known = tenants.get(tenantId);
    if (known) return known;
    const states = new LRUCache<string, CursorState>({
      maxSize: maxCharacters,
      dispose: (state, cursor) => {
        characters -= sizeOf(state, cursor);
      },
    });
    tenants.set(tenantId, states);
    return states;
  };

  const makeRoom = () => {
    while (characters > maxCharacters) {
      const [tenantId, states] = [...tenants].reduce((a, b) => (b[1].calculatedSize > a[1].calculatedSize ? b : a));
      states.pop();
      if (states.size === 0) tenants.delete(tenantId);
    }
  };

  return (tenantId) => ({
    recall: (cursor) => tenants.get(tenantId)?.get(cursor),
    remember: (cursor, state) => {
      const size = sizeOf(state, cursor);
      if (size > maxCharacters) return;
      characters += size;
      statesOf(tenantId).set(cursor, state, { size });
      makeRoom();
    },
  });
}

const sizeOf = (state: CursorState, cursor: string) => JSON.stringify(state).length + cursor.length + ENTRY_CHARACTERS;
