import { LRUCache } from 'lru-cache';
import type { CallRegister } from '../api/in-flight-calls.ts';
import type { KeptAnswer, KeptAnswers } from '../api/with-cache.ts';
import type { CreditLedger } from '../credits/credit-ledger.ts';
import type { FullWindow, FullWindows } from '../credits/with-usage-windows.ts';
import type { CursorState } from './cursor-state.ts';
import { FairStore } from './fair-store.ts';
import { type CallRegisterOptions, memoryCallRegister } from './memory-call-register.ts';
import { memoryCreditLedger } from './memory-credit-ledger.ts';
import { memoryOf } from './memory-of.ts';

/** Everything that outlives a call, for all tenants. Asynchronous, so that it can be kept outside this process. */
export interface MemoryState {
  ledger: CreditLedger;
  answers: KeptAnswers;
  windows: FullWindows;
  calls: CallRegister;
  /** The cursors of one tenant. */
  cursorsOf(tenantId: string): CursorMemory;
  /** Removes what is kept for a tenant, except their spending. */
  forget(tenantId: string): Promise<void>;
}

export interface MemoryStateOptions extends CallRegisterOptions {
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  now: () => number;
}

export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** Bytes of answers and of cursors, for all tenants together. */
const maxBytes = { answers: 128 * 1024 * 1024, cursors: 32 * 1024 * 1024 };

/** Tenants whose full usage windows are remembered. */
const maxWindows = 10_000;

/** How long a cursor may be used without its filters, in milliseconds: a day. */
const cursorTtl = 86_400_000;

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** The state of one process. */
export function memoryState({ ttl, now, ...limits }: MemoryStateOptions): MemoryState {
  const answers = new FairStore<KeptAnswer>({ maxBytes: maxBytes.answers, ttl, now });
  const cursors = new FairStore<CursorState>({ maxBytes: maxBytes.cursors, ttl: cursorTtl, now });
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now }),
    calls: memoryCallRegister(limits),
    answers: {
      get: async (tenantId, name) => answers.get(tenantId, name),
      set: async (tenantId, name, value) =>
        answers.set(tenantId, name, { value, bytes: memoryOf(value.answer.raw) + answerBytes }),
      drop: async (tenantId, start) => answers.drop(tenantId, start),
    },
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
      answers.drop(tenantId, '');
      cursors.drop(tenantId, '');
    },
  };
}
