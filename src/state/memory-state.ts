import { LRUCache } from 'lru-cache';
import type { AnswerName } from '../api/call.ts';
import type { FullWindow } from '../credits/ledger.ts';
import { FairStore, type FairStoreOptions, memoryOf } from './fair-store.ts';
import { memoryCreditLedger } from './memory-credit-ledger.ts';
import type { AnswerCache, CachedAnswer, CallRegister, CursorState, RejectedKeys, State } from './state.ts';

interface CallRegisterOptions {
  /** Calls in progress, per tenant and in total. */
  maxPerTenant: number;
  maxInAll: number;
}

export interface MemoryStateOptions extends CallRegisterOptions {
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  /** A clock that only goes on. */
  now: () => number;
}

/** Bytes of answers and of cursors, for all tenants together. */
const maxBytes = { answers: 128 * 1024 * 1024, cursors: 32 * 1024 * 1024 };

/** Tenants whose full usage windows are remembered. */
const maxWindows = 10_000;

/** How long a cursor may be used without its filters, in milliseconds: a day. */
const cursorTtl = 86_400_000;

/** The state of one process. */
export function memoryState({ ttl, now, ...limits }: MemoryStateOptions): State {
  const answers = memoryAnswers({ maxBytes: maxBytes.answers, ttl, now });
  const cursors = new FairStore<CursorState>({ maxBytes: maxBytes.cursors, ttl: cursorTtl, now });
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now }),
    calls: memoryCallRegister(limits),
    answers,
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: (tenantId) => ({
      remember: async (cursor, value) =>
        cursors.set(tenantId, cursor, { value, bytes: 2 * JSON.stringify(value).length }),
      recall: async (cursor) => cursors.get(tenantId, cursor),
    }),
    rejectedKeys: memoryRejectedKeys(),
  };
}

/** Keys that were accepted, of which it is remembered whether they were rejected since. */
const maxAccepted = 200_000;

function memoryRejectedKeys(): RejectedKeys {
  const isRejected = new Map<string, boolean>();
  return {
    has: async (tenantId) => isRejected.get(tenantId) === true,
    add: async (tenantId) => {
      if (isRejected.has(tenantId)) isRejected.set(tenantId, true);
    },
    answered: (tenantId, isNamed) => {
      const before = isRejected.get(tenantId);
      isRejected.delete(tenantId);
      isRejected.set(tenantId, before === true && !isNamed);
      if (isRejected.size > maxAccepted) isRejected.delete(isRejected.keys().next().value ?? '');
    },
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups whose last removal is remembered, for reads that began before it. */
const maxDropped = 10_000;

/** The cached answers of one process. */
export function memoryAnswers(options: FairStoreOptions): AnswerCache {
  const cache = new FairStore<CachedAnswer>(options);
  const dropped = new LRUCache<string, object>({ max: maxDropped });
  const nameOf = ({ group = '', fingerprint }: AnswerName) => group + fingerprint;
  const get = (tenantId: string, name: AnswerName) => cache.get(tenantId, nameOf(name));
  return {
    get: async (tenantId, name) => get(tenantId, name),
    begin: async (tenantId, name) => {
      const groups = [`${tenantId} `, `${tenantId} ${name.group ?? ''}`];
      const before = groups.map((group) => dropped.get(group));
      return {
        cached: get(tenantId, name),
        store: async (value) => {
          if (groups.some((group, index) => dropped.get(group) !== before[index])) return;
          cache.set(tenantId, nameOf(name), { value, bytes: memoryOf(value.answer.raw) + answerBytes });
        },
      };
    },
    remove: async (tenantId, name) => cache.remove(tenantId, nameOf(name)),
    invalidate: async (tenantId, group = '') => {
      dropped.set(`${tenantId} ${group}`, {});
      cache.drop(tenantId, group);
    },
  };
}

/** The calls in progress of one process. */
export function memoryCallRegister({ maxPerTenant, maxInAll }: CallRegisterOptions): CallRegister {
  const perTenant = new Map<string, number>();
  let inAll = 0;
  return {
    begin: async (tenantId) => {
      const ofTenant = perTenant.get(tenantId) ?? 0;
      if (inAll >= maxInAll || ofTenant >= maxPerTenant) return false;
      perTenant.set(tenantId, ofTenant + 1);
      inAll++;
      return true;
    },
    end: async (tenantId) => {
      const left = (perTenant.get(tenantId) ?? 1) - 1;
      if (left === 0) perTenant.delete(tenantId);
      else perTenant.set(tenantId, left);
      inAll--;
    },
  };
}
