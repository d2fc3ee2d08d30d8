import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import type { AnswerName } from '../../api/call.ts';
import { AdLibraryError } from '../../api/errors.ts';
import type { CreditLedger, FullWindow } from '../../credits/ledger.ts';
import { memoryCursors } from '../cursors.ts';
import { memoryRejectedKeys } from '../keys.ts';
import type { AnswerCache, CachedAnswer, State } from '../ports.ts';
import type { DocumentChange, Documents, Known } from '../store/documents.ts';
import { storeLedger } from '../store/ledger.ts';
import { memoryOf, TenantCache, type TenantCacheOptions } from '../tenant-cache.ts';
import { type Turns, turnsOver } from '../turns.ts';

interface MemoryDocumentsOptions {
  /** A clock that only goes on. */
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
  /** A clock that only goes on. */
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
  /** A clock that only goes on. */
  now: () => number;
}

/** Bytes of answers, for all tenants together. */
const maxAnswerBytes = 128 * 1024 * 1024;

const maxWindows = 10_000;

export function memoryState({ ttl, now }: MemoryStateOptions): State {
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now }),
    answers: memoryAnswers({ maxBytes: maxAnswerBytes, ttl, now }),
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: memoryCursors(now),
    rejectedKeys: memoryRejectedKeys(),
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups whose last removal is remembered, for reads that began before it. */
const maxDropped = 10_000;

export function memoryAnswers(options: TenantCacheOptions): AnswerCache {
  const cache = new TenantCache<CachedAnswer>(options);
  const dropped = new LRUCache<string, object>({ max: maxDropped });
  const nameOf = ({ group = '', fingerprint }: AnswerName) => group + fingerprint;
  const get = (tenantId: string, name: AnswerName) => cache.get(tenantId, nameOf(name));
  return {
    get: async (tenantId, name) => get(tenantId, name),
    begin: async (tenantId, name) => {
      const group = `${tenantId} ${name.group}`;
      const before = dropped.get(group);
      return {
        cached: get(tenantId, name),
        store: async (value) => {
          if (dropped.get(group) !== before) return;
          cache.set(tenantId, nameOf(name), { value, bytes: memoryOf(value.answer.raw) + answerBytes });
        },
      };
    },
    remove: async (tenantId, name, { order = Infinity }) => {
      if ((get(tenantId, name)?.answer.order ?? 0) <= order) cache.remove(tenantId, nameOf(name));
    },
    invalidate: async (tenantId, group) => {
      dropped.set(`${tenantId} ${group}`, {});
      cache.drop(tenantId, group);
    },
  };
}
