import { LRUCache } from 'lru-cache';
import type { FullWindow } from '../credits/with-usage-windows.ts';
import type { CursorState } from './cursor-state.ts';
import { FairStore } from './fair-store.ts';
import { memoryAnswers } from './memory-answers.ts';
import { type CallRegisterOptions, memoryCallRegister } from './memory-call-register.ts';
import { memoryCreditLedger } from './memory-credit-ledger.ts';
import type { State } from './state.ts';

export interface MemoryStateOptions extends CallRegisterOptions {
  /** How long answers are kept, in milliseconds. */
  ttl: number;
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
    forget: async (tenantId) => {
      await answers.drop(tenantId);
      cursors.drop(tenantId, '');
    },
  };
}
