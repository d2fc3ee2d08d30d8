import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import type { ReadResult, Store } from '../storage.ts';
import type { Encryption } from './encryption.ts';

/** The change of a document: the next document and its lifetime, `null` to remove it, or nothing. */
interface Change<Doc, Result> {
  next?: Doc | null;
  ttlMs?: number;
  result: Result;
}

/** Receives a document, the time and the version. It may run again, and its last result counts. */
type DocumentChange<Doc, Result> = (doc: Doc | undefined, now: number, version: string) => Change<Doc, Result>;

interface CachedDocument<Doc> {
  /** Empty if there was none. */
  version: string;
  doc: Doc | undefined;
  /** By the clock of the store, when it was read. */
  now: number;
}

interface Entry<Doc> extends CachedDocument<Doc> {
  /** When the document came, by the clock of this process. */
  receivedAt: number;
  requestNumber: number;
  bytes: number;
}

interface DocumentsOptions {
  store: Pick<Store, 'readDocument' | 'swapDocument'>;
  encryption: Pick<Encryption, 'encrypt' | 'decrypt'>;
  /**
   * A clock of this process, which tells how old a document is that was read before: by default a monotonic one. The
   * memory of one process passes the clock of its store. In whole milliseconds, because stored times must be whole.
   */
  processNow?(): number;
  wait?(ms: number): Promise<void>;
  /** Bytes of documents that this process remembers: what a sealed byte takes once it is parsed, and the overhead of each. */
  maxCachedBytes?: number;
}

/** How often a document that is waited for is read again, in milliseconds. */
const pollIntervalMs = 100;
/** How long to wait for a change before checking that the process that should make it is alive, in milliseconds. */
const maxWaitMs = 1000;
const estimateBytes = (sealed = 0) => 6 * sealed + 1000;

/**
 * Sealed documents. A change is made here, and written by compare-and-swap; if that fails, it is made again. Changes of
 * one document take turns in this process, so that only another process can make one fail.
 */
export class Documents {
  readonly #options: Required<DocumentsOptions>;
  readonly #entries: LRUCache<string, Entry<unknown>>;
  readonly #updates = new Map<string, Promise<unknown>>();
  readonly #polls = new Map<string, { done: Promise<void>; wake(): void }>();
  #requestCount = 0;

  constructor(options: DocumentsOptions) {
    const wait = (ms: number) => setTimeout(ms, undefined, { ref: false });
    const processNow = () => Math.round(performance.now());
    this.#options = { processNow, wait, maxCachedBytes: 256 * 1024 * 1024, ...options };
    this.#entries = new LRUCache({
      maxSize: this.#options.maxCachedBytes,
      sizeCalculation: ({ bytes }) => bytes,
    });
  }

  /** The document as this process read or wrote it last, and how old that is. */
  getCached<Doc>(key: string): (CachedDocument<Doc> & { ageMs: number }) | undefined {
    const entry = this.#cachedEntry<Doc>(key);
    return entry && { ...entry, ageMs: this.#options.processNow() - entry.receivedAt };
  }

  /** Changes a document. If the store does not answer, the change may still have been made, or be made later. */
  update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const firstRequestNumber = ++this.#requestCount;
    return this.#runExclusively(key, async () => {
      for (let current = this.#cachedEntry<Doc>(key); ; ) {
        current ??= await this.read<Doc>(key);
        const now = current.now + this.#options.processNow() - current.receivedAt;
        const { next, ttlMs = 0, result } = change(structuredClone(current.doc), now, current.version);
        if (next === undefined) {
          // A document that was requested after the call began is from the time of the call.
          if (current.requestNumber > firstRequestNumber) return result;
          current = undefined;
          continue;
        }
        const written = await this.#writeIfUnchanged(key, current.version, next, ttlMs);
        if (written.isDone) return result;
        current = written.found;
      }
    });
  }

  /** Writes a document that does not depend on the one before; `null` removes it. */
  write<Doc>(key: string, next: (now: number) => Doc | null, ttlMs = 0): Promise<void> {
    return this.update<Doc, void>(key, (_, now) => ({ next: next(now), ttlMs, result: undefined }));
  }

  /**
   * Resolves when the document has another version, or after a second: the process that should change it may have died.
   */
  async waitForChange(key: string, version: string, signal: AbortSignal): Promise<void> {
    const { processNow } = this.#options;
    const end = processNow() + maxWaitMs;
    while ((this.#cachedEntry(key)?.version ?? version) === version && processNow() < end)
      await raceAbort(this.#pollSoon(key), signal);
  }

  async #writeIfUnchanged<Doc>(key: string, expected: string, next: Doc | null, ttlMs: number) {
    const { store, encryption } = this.#options;
    const version = randomUUID();
    const text = JSON.stringify(next);
    const body = next === null ? undefined : encryption.encrypt(key, text);
    // Until the store answers, it is not known which version is there.
    this.#entries.delete(key);
    const request = ++this.#requestCount;
    const answer = await store.swapDocument(key, expected, { version, body, ttlMs });
    if (!answer.isDone) return { isDone: false, found: this.#cacheReply<Doc>(key, answer, request, undefined) };
    const written = next === null ? { version: '', doc: undefined } : { version, doc: JSON.parse(text) as Doc };
    this.#cacheEntry(key, { ...written, now: answer.now, requestNumber: request, bytes: estimateBytes(body?.length) });
    return { isDone: true, found: undefined };
  }

  async read<Doc>(key: string): Promise<Entry<Doc>> {
    // The known document may have changed when the answer comes, and the answer refers to the document that was known
    // at the request.
    const before = this.#cachedEntry<Doc>(key);
    const request = ++this.#requestCount;
    return this.#cacheReply(key, await this.#options.store.readDocument(key, before?.version), request, before);
  }

  /** @param before what the answer leaves out if it has not changed */
  #cacheReply<Doc>(
    key: string,
    { now, document }: ReadResult,
    request: number,
    before: Entry<Doc> | undefined,
  ): Entry<Doc> {
    if (document === undefined)
      return this.#cacheEntry<Doc>(key, {
        version: '',
        doc: undefined,
        now,
        requestNumber: request,
        bytes: estimateBytes(),
      });
    const { version, body } = document;
    if (body === undefined) {
      if (before?.version !== version) throw new Error('the store left out a document that was not cached');
      return this.#cacheEntry(key, { ...before, now, requestNumber: request });
    }
    const text = this.#options.encryption.decrypt(key, body);
    const doc = text && (JSON.parse(String(text)) as Doc);
    return this.#cacheEntry(key, { version, doc, now, requestNumber: request, bytes: estimateBytes(body.length) });
  }

  #cachedEntry<Doc>(key: string): Entry<Doc> | undefined {
    return this.#entries.get(key) as Entry<Doc> | undefined;
  }

  #cacheEntry<Doc>(key: string, document: Omit<Entry<Doc>, 'receivedAt'>): Entry<Doc> {
    const remembered = { ...document, receivedAt: this.#options.processNow() };
    // Answers can overtake each other.
    const before = this.#cachedEntry(key);
    if ((before?.requestNumber ?? 0) < document.requestNumber) {
      this.#entries.set(key, remembered);
      if (before?.version !== document.version) this.#polls.get(key)?.wake();
    }
    return remembered;
  }

  #runExclusively<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const done = (this.#updates.get(key) ?? Promise.resolve()).then(work);
    const turn = done
      .catch(() => {})
      .then(() => {
        if (this.#updates.get(key) === turn) this.#updates.delete(key);
      });
    this.#updates.set(key, turn);
    return done;
  }

  /** Looks at a document a little later, for all who wait for a change of it; ends at once if this process makes one. */
  #pollSoon(key: string): Promise<void> {
    const pending = this.#polls.get(key);
    if (pending) return pending.done;
    let wake = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const look = {
      wake,
      done: Promise.race([
        woken,
        this.#options.wait(pollIntervalMs).then(async () => {
          if (this.#polls.get(key) === look) await this.read(key);
        }),
      ]).finally(() => {
        if (this.#polls.get(key) === look) this.#polls.delete(key);
      }),
    };
    this.#polls.set(key, look);
    return look.done;
  }
}
