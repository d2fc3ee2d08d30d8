import type { Documents } from './documents.ts';
import type { GuardedStore } from './guarded-store.ts';
import type { Presence } from './presence.ts';
import type { Retries } from './retries.ts';
import type { Seal } from './seal.ts';
import type { ItemLimits } from './store.ts';

/** What all that is shared is made of. */
export interface Shared {
  store: GuardedStore;
  seal: Seal;
  documents: Documents;
  presence: Presence;
  retries: Retries;
  /** The name of a document or collection. All of a tenant have the same hash tag. */
  keyOf(tenantId: string, kind: string, ...parts: readonly string[]): string;
  /** Differs before and after a removal of the answers of a group, or of all. */
  stampOf(tenantId: string, group?: string): Promise<string>;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** Where all keys together take nearly all the room, each has an eighth of it. */
export const roomIn = (store: Pick<GuardedStore, 'isTight'>, limits: ItemLimits): ItemLimits =>
  store.isTight() ? { ...limits, maxBytes: limits.maxBytes / 8 } : limits;
