import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import type { CreditLedger, FullWindow } from '../../credits/ledger.ts';
import { memoryCursors } from '../cursors.ts';
import type { AnswerCache, CachedAnswer, Claim, State } from '../ports.ts';
import type { DocumentChange, Documents, Known } from '../store/documents.ts';
import { storeLedger } from '../store/ledger.ts';
import { memoryOf, TenantCache, type TenantCacheOptions } from '../tenant-cache.ts';
import { type Turns, turnsOver } from '../turns.ts';

interface MemoryDocumentsOptions {
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** The most documents that may be lost: the oldest give way to new ones. */
  maxOthers: number;
  /** The most documents that may not be lost: further ones are refused. */
  maxLasting: number;
}

interface StoredDocument extends Known<unknown> {
  ends: number;
}

/** Documents with a lifetime of a day or longer may not be lost. */
const lastsFrom = 86_400_000;

/** Documents of one process, changed in place. */
class MemoryDocuments implements Pick<Documents, 'known' | 'update' | 'changed'> {
  readonly #options: MemoryDocumentsOptions;
  readonly #lasting = new Map<string, StoredDocument>();
  readonly #others: LRUCache<string, StoredDocument>;
  readonly #waiting = new Map<string, (() => void)[]>();
  #versions = 0;

  constructor(options: MemoryDocumentsOptions) {
    this.#options = options;
    this.#others = new LRUCache({ max: options.maxOthers });
  }

  known<Doc>(key: string): Known<Doc> & { ageMs: number } {
    const now = this.#options.now();
    const found = this.#lasting.get(key) ?? this.#others.get(key);
    const { version, doc } = found && now < found.ends ? found : { version: '', doc: undefined };
    return { version, doc: doc as Doc | undefined, now, ageMs: 0 };
  }

  async update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const { doc, now, version } = this.known<Doc>(key);
    const { next, ttlMs = 0, result } = change(doc, now, version);
    if (next === undefined) return result;
    const isLasting = next !== null && ttlMs >= lastsFrom;
    if (isLasting && !this.#lasting.has(key)) this.#makeRoom(now);
    for (const kept of [this.#lasting, this.#others]) kept.delete(key);
    const written = { version: String(++this.#versions), doc: next, now, ends: now + ttlMs };
    if (next !== null) (isLasting ? this.#lasting : this.#others).set(key, written);
    for (const wake of this.#waiting.get(key) ?? []) wake();
    this.#waiting.delete(key);
    return result;
  }

  async changed(key: string, version: string, signal: AbortSignal): Promise<void> {
    if (this.known(key).version !== version) return;
    const woken = new Promise<void>((wake) => {
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), wake]);
    });
    await raceAbort(woken, signal);
  }

  #makeRoom(now: number): void {
    const isFull = () => this.#lasting.size >= this.#options.maxLasting;
    if (isFull()) for (const [key, { ends }] of this.#lasting) if (ends <= now) this.#lasting.delete(key);
    if (isFull()) throw full();
  }
}

export const memoryTurns = (): Turns =>
  turnsOver({ documents: new MemoryDocuments({ now: () => 0, maxOthers: 10_000, maxLasting: 0 }) });

interface MemoryLedgerOptions {
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** Remembered tenants who spent nothing. Bounded, because anybody can invent keys. */
  maxUnverified?: number;
  /** Remembered tenants who spent something. Nobody can invent such tenants without paying the service. */
  maxPaying?: number;
}

/**
 * The ledger of one process. Tenants who spent something or have a call in progress stay; the others only displace each
 * other. When there is no room for another paying tenant, paid calls of new tenants are refused before they are sent.
 */
export function memoryCreditLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxUnverified = 10_000, maxPaying = 200_000 } = options;
  return storeLedger({
    documents: new MemoryDocuments({ now, maxOthers: maxUnverified, maxLasting: maxPaying }),
    keyOf: (tenantId) => tenantId,
  });
}

const full = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server cannot track the spending of any more keys.',
    sent: false,
  });

export interface MemoryStateOptions {
  /** How long answers are cached, in milliseconds. */
  ttl: number;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
}

/** Bytes of answers, for all tenants together. */
const maxAnswerBytes = 128 * 1024 * 1024;

const maxWindows = 10_000;

export function memoryState({ ttl, now, elapsed }: MemoryStateOptions): State {
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now: elapsed }),
    answers: memoryAnswers({ maxBytes: maxAnswerBytes, ttl, now }),
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: memoryCursors(now),
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups that were forgotten and are remembered, for reads that began before. */
const maxForgotten = 10_000;

export function memoryAnswers(options: TenantCacheOptions) {
  const cache = new TenantCache<CachedAnswer>(options);
  const forgotten = new LRUCache<string, number>({ max: maxForgotten });
  let forgettings = 0;
  const get = (tenantId: string, name: string) => cache.get(tenantId, name);
  const put = (tenantId: string, name: string, value: CachedAnswer) => {
    cache.set(tenantId, name, { value, bytes: memoryOf(value.answer.raw) + answerBytes });
  };
  const forget = (tenantId: string, name: string) => cache.remove(tenantId, name);
  const port: AnswerCache = {
    nameOf: async (tenantId, { group, fingerprint }) =>
      group === undefined ? fingerprint : `${group} ${forgotten.get(`${tenantId} ${group}`) ?? 0} ${fingerprint}`,
    get: async (tenantId, name) => get(tenantId, name),
    claim: async ({ tenantId }, name, { after = Number.NEGATIVE_INFINITY }) => {
      if (name === undefined) return unnamedClaim;
      const found = get(tenantId, name);
      if (found && found.at > after) return { kind: 'found', found };
      return {
        ...unnamedClaim,
        put: async (answer) => put(tenantId, name, answer),
        forget: async () => forget(tenantId, name),
      };
    },
    forgetGroup: async (tenantId, group) => {
      forgotten.set(`${tenantId} ${group}`, ++forgettings);
      cache.drop(tenantId, `${group} `);
    },
  };
  return { ...port, put, forget };
}

/** Of a call whose answer is not cached. */
const unnamedClaim: Extract<Claim, { kind: 'granted' }> = {
  kind: 'granted',
  put: async () => {},
  forget: async () => {},
  end: async () => {},
};
