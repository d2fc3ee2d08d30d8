import type { KeptAnswer, KeptAnswers } from '../api/with-cache.ts';
import type { SeenAd, SeenAds } from '../api/with-seen-ads.ts';
import type { CreditLedger } from '../credits/credit-ledger.ts';
import { FairStore } from './fair-store.ts';
import { memoryCreditLedger } from './memory-credit-ledger.ts';

/** Everything that outlives a call, for all tenants. Asynchronous, so that it can live outside this process. */
export interface MemoryState {
  ledger: CreditLedger;
  answers: KeptAnswers;
  seen: SeenAds;
  /** Forgets what is kept for a tenant; what they spent is not forgotten. */
  forget(tenantId: string): Promise<void>;
}

export interface MemoryStateOptions {
  /** How long answers are kept, in milliseconds; 0 keeps none. */
  ttl: number;
  now: () => number;
}

/** Most bytes of kept answers, and of ads that lists showed, for all tenants together. */
const maxBytes = { answers: 128 * 1024 * 1024, seen: 32 * 1024 * 1024 };

/** Bytes that a kept answer takes: objects for each character of its JSON, and what comes with the smallest of them. */
const bytesOf = ({ answer: { size } }: KeptAnswer) => 3 * size + 3 * 1024;

/** The state of one process. */
export function memoryState({ ttl, now }: MemoryStateOptions): MemoryState {
  const answers = new FairStore<KeptAnswer>({ maxBytes: maxBytes.answers, ttl, now });
  const seen = new FairStore<SeenAd>({ maxBytes: maxBytes.seen, ttl, now });
  return {
    ledger: memoryCreditLedger({ now }),
    answers: {
      get: async (tenantId, name) => answers.get(tenantId, name),
      set: async (tenantId, name, value) => {
        if (ttl > 0) answers.set(tenantId, name, { value, bytes: bytesOf(value) });
      },
      drop: async (tenantId, start) => answers.drop(tenantId, start),
    },
    seen: {
      get: async (tenantId, id) => seen.get(tenantId, id),
      set: async (tenantId, id, value) => {
        if (ttl > 0) seen.set(tenantId, id, { value, bytes: value.bytes });
      },
    },
    forget: async (tenantId) => {
      answers.drop(tenantId, '');
      seen.drop(tenantId, '');
    },
  };
}
