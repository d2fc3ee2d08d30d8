import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import type { ReadResult, Store } from '../storage.ts';
import type { Encryption } from './encryption.ts';

/** The change of a document. */
interface Change<Doc, Result> {
  /** The new document; `null` to remove the document; undefined to leave it as it is. */
  next?: Doc | null;
  /** The lifetime of the new document, in milliseconds. */
  ttlMs?: number;
  result: Result;
}

/**
 * Computes the change of a document from the current document, the time of the store, and the version. The function may run
 * several times, and its last result counts.
 */
type DocumentChange<Doc, Result> = (doc: Doc | undefined, now: number, version: string) => Change<Doc, Result>;

interface CachedDocument<Doc> {
  /** The version; `''` if the document did not exist. */
  version: string;
  doc: Doc | undefined;
  /** The time of the store when the document was read. */
  now: number;
}

interface Entry<Doc> extends CachedDocument<Doc> {
  /** When the reply of the store arrived, by the clock of this process. */
  receivedAt: number;
  /** The sequence number of the request to the store. */
  requestNumber: number;
  bytes: number;
}

interface DocumentsOptions {
  store: Pick<Store, 'readDocument' | 'swapDocument'>;
  encryption: Pick<Encryption, 'encrypt' | 'decrypt'>;
  /**
   * A clock of this process, in whole milliseconds, because stored times must be whole. It measures the age of documents
   * that were read before. By default, the clock is monotonic. A store in the memory of this process passes its own clock
   * instead, which may be the wall clock.
   */
  processNow?(): number;
  wait?(ms: number): Promise<void>;
  /** The memory limit for cached documents, in bytes, as `estimateBytes` estimates them. */
  maxCachedBytes?: number;
}

/** The interval between two reads of a document while a caller waits for its change, in milliseconds. */
const pollIntervalMs = 100;
/**
 * The longest wait for a change, in milliseconds. Afterwards the caller should check whether the process that should make
 * the change is still alive.
 */
const maxWaitMs = 1000;
const estimateBytes = (encryptedBytes = 0) => 6 * encryptedBytes + 1000;

/**
 * Encrypted documents in a store, with a cache. A change is computed in this process and written by compare-and-swap. If
 * the document has changed meanwhile, the change is computed again. Changes of the same document run one after the other
 * in this process, so that only another process can cause a repetition.
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

  /** Returns the document as this process has last read or written it, and the age of this information in milliseconds. */
  getCached<Doc>(key: string): (CachedDocument<Doc> & { ageMs: number }) | undefined {
    const entry = this.#cachedEntry<Doc>(key);
    return entry && { ...entry, ageMs: this.#options.processNow() - entry.receivedAt };
  }

  /**
   * Changes a document and returns the result of the change. If the store does not answer, the promise rejects, but the
   * store may still make the change later.
   */
  update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const firstRequestNumber = ++this.#requestCount;
    return this.#runExclusively(key, async () => {
      for (let current = this.#cachedEntry<Doc>(key); ; ) {
        current ??= await this.read<Doc>(key);
        const now = current.now + this.#options.processNow() - current.receivedAt;
        const { next, ttlMs = 0, result } = change(structuredClone(current.doc), now, current.version);
        if (next === undefined) {
          // Nothing is written, so the document must not be older than this call. A cached document that was requested
          // before the call is read again.
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

  /** Replaces a document, whatever it was before. @param next returns the new document; `null` removes the document */
  write<Doc>(key: string, next: (now: number) => Doc | null, ttlMs = 0): Promise<void> {
    return this.update<Doc, void>(key, (_, now) => ({ next: next(now), ttlMs, result: undefined }));
  }

  /**
   * Waits until the document has another version, at most about a second. After this time the caller should check whether
   * the process that should change the document has died.
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
    // Until the store answers, the current version is unknown.
    this.#entries.delete(key);
    const request = ++this.#requestCount;
    const answer = await store.swapDocument(key, expected, { version, body, ttlMs });
    if (!answer.isDone) return { isDone: false, found: this.#cacheReply<Doc>(key, answer, request, undefined) };
    const written = next === null ? { version: '', doc: undefined } : { version, doc: JSON.parse(text) as Doc };
    this.#cacheEntry(key, { ...written, now: answer.now, requestNumber: request, bytes: estimateBytes(body?.length) });
    return { isDone: true, found: undefined };
  }

  /** Reads a document from the store. The store sends the body only if the version differs from the cached version. */
  async read<Doc>(key: string): Promise<Entry<Doc>> {
    // The cached document may change before the answer comes. The answer refers to the version that was cached at the time
    // of the request, so this version is kept here.
    const cachedEntry = this.#cachedEntry<Doc>(key);
    const request = ++this.#requestCount;
    return this.#cacheReply(
      key,
      await this.#options.store.readDocument(key, cachedEntry?.version),
      request,
      cachedEntry,
    );
  }

  /** Caches the reply of the store. @param before the document whose body the reply leaves out if its version is current */
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
    // Replies can overtake each other, so an older reply must not replace a newer one.
    const cachedEntry = this.#cachedEntry(key);
    if ((cachedEntry?.requestNumber ?? 0) < document.requestNumber) {
      this.#entries.set(key, remembered);
      if (cachedEntry?.version !== document.version) this.#polls.get(key)?.wake();
    }
    return remembered;
  }

  #runExclusively<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#updates.get(key) ?? Promise.resolve()).then(work);
    const turn = result
      .catch(() => {})
      .then(() => {
        if (this.#updates.get(key) === turn) this.#updates.delete(key);
      });
    this.#updates.set(key, turn);
    return result;
  }

  /**
   * Reads a document again after `pollIntervalMs`. All callers that wait for the same document share the read. Resolves
   * immediately if this process changes the document meanwhile.
   */
  #pollSoon(key: string): Promise<void> {
    const pending = this.#polls.get(key);
    if (pending) return pending.done;
    let wake = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const poll = {
      wake,
      done: Promise.race([
        woken,
        this.#options.wait(pollIntervalMs).then(async () => {
          if (this.#polls.get(key) === poll) await this.read(key);
        }),
      ]).finally(() => {
        if (this.#polls.get(key) === poll) this.#polls.delete(key);
      }),
    };
    this.#polls.set(key, poll);
    return poll.done;
  }
}
