import { LRUCache } from 'lru-cache';
import { recordKinds } from './own-records.ts';
import type { RejectedKeys } from './ports.ts';
import { ownKey } from './store/datasets.ts';
import type { Account } from './store/ledger.ts';
import { markTtlMs, type Shared } from './store/retries.ts';

/** The most accepted keys for which later rejections are remembered. */
const maxAccepted = 200_000;

export function memoryRejectedKeys(): RejectedKeys {
  const isRejected = new LRUCache<string, boolean>({ maxSize: maxAccepted, sizeCalculation: () => 1 });
  return {
    has: async (tenantId) => isRejected.get(tenantId) === true,
    add: async (tenantId) => {
      if (isRejected.has(tenantId)) isRejected.set(tenantId, true);
    },
    answered: (tenantId, isNamed) => void isRejected.set(tenantId, isRejected.get(tenantId) === true && !isNamed),
  };
}
/** How long accepted keys are remembered, and tried ones are counted, in milliseconds. */
const acceptedMs = 900_000;
const triedMs = 60_000;

/** While the store is away, the rejected keys that this process knows. */
export function sharedRejectedKeys({ documents, store, retries, keyOf }: Shared): RejectedKeys {
  /** Rejections that the store does not know of yet. */
  const pending = new Set<string>();
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'rejected');
  /** Nothing is stored for other keys, and anybody can invent them. */
  const hasSomething = async (tenantId: string): Promise<boolean> => {
    const own = recordKinds.map((kind) => ownKey(keyOf, tenantId, kind));
    const [{ doc: account }, dataset, ...rest] = await Promise.all([
      documents.read<Account>(keyOf(tenantId, 'account')),
      store.itemsSince(keyOf(tenantId, 'dataset'), Number.MAX_SAFE_INTEGER),
      ...[keyOf(tenantId, 'exports'), ...own].map((key) => documents.read(key)),
    ]);
    return (account?.paidAt ?? 0) > 0 || dataset !== undefined || rest.some(({ doc }) => doc !== undefined);
  };
  return {
    has: async (tenantId) =>
      pending.has(tenantId) ||
      documents.read(keyOfTenant(tenantId)).then(
        ({ doc }) => doc !== undefined,
        () => documents.known(keyOfTenant(tenantId))?.doc !== undefined,
      ),
    add: async (tenantId) => {
      pending.add(tenantId);
      const giveUp = () => void pending.delete(tenantId);
      const work = async () => {
        if (pending.has(tenantId) && (await hasSomething(tenantId)))
          await documents.write(keyOfTenant(tenantId), () => ({}), markTtlMs);
        giveUp();
      };
      await retries.do(work, { giveUp });
    },
    answered: (tenantId, isNamed) => {
      if (!isNamed) return;
      pending.delete(tenantId);
      documents
        .update<object, void>(keyOfTenant(tenantId), (doc) => ({ ...(doc && { next: null }), result: undefined }))
        .catch(() => {});
    },
  };
}

interface TriedKeys {
  add(address: string, more: 1 | -1): Promise<{ tried: number; msLeft: number }>;
}

export function sharedKeys({ documents, keyOf, seal }: Shared) {
  /** For how long, and for how many keys, the store is not asked again whether they were accepted. */
  const recent = new LRUCache<string, true>({ ttl: 2000, max: 10_000 });
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'accepted');
  return {
    /** The secret with which tenant ids are made. */
    tenantSecret: seal.name('tenant secret'),
    /** Keys that the service accepted lately. While the store is away, none counts as accepted. */
    keys: {
      has: async (tenantId: string) => {
        if (recent.has(tenantId)) return true;
        const isAccepted = await documents.read(keyOfTenant(tenantId)).then(
          ({ doc }) => doc !== undefined,
          () => false,
        );
        if (isAccepted) recent.set(tenantId, true);
        return isAccepted;
      },
      add: (tenantId: string) => {
        documents.write(keyOfTenant(tenantId), () => ({}), acceptedMs).catch(() => {});
      },
      remove: (tenantId: string) => {
        recent.delete(tenantId);
        documents.write(keyOfTenant(tenantId), () => null).catch(() => {});
      },
    },
    /** The connections that people signed in with a key, as sign-in stores them. */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(keyOf(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(keyOf(tenantId, 'connections'), (doc) => ({ ...change(doc), ttlMs: markTtlMs })),
    },
    /** Unknown keys that addresses tried. While the store is away, each replica counts its own. */
    tried: (own: TriedKeys): TriedKeys => ({
      add: (address, more) => {
        type Tried = { tried: number; ends: number };
        return documents
          .update<Tried, { tried: number; msLeft: number }>(keyOf(`address ${address}`, 'tried'), (doc, now) => {
            const before = doc && doc.ends > now ? doc : { tried: 0, ends: now + triedMs };
            const next = { ...before, tried: Math.max(0, before.tried + more) };
            const msLeft = next.ends - now;
            return { next, ttlMs: msLeft, result: { tried: next.tried, msLeft } };
          })
          .catch(() => own.add(address, more));
      },
    }),
  };
}
