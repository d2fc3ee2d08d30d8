import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import type { ReadResult, Store } from '../storage.ts';
import type { Encryption } from './encryption.ts';

/** The result of a function that changes a document. */
interface DocumentChangeResult<Doc, Result> {
  /** The new document. `null` removes the document, and undefined leaves it unchanged. */
  next?: Doc | null;
  /** The lifetime of the new document, in milliseconds. */
  ttlMs?: number;
  result: Result;
}

/**
 * Computes the new document from the current document, the store's time and the current version. If another process
 * changes the document meanwhile, this function is called again. Only its last result is used.
 */
type DocumentChange<Doc, Result> = (
  doc: Doc | undefined,
  storeTime: number,
  currentVersion: string,
) => DocumentChangeResult<Doc, Result>;

interface CachedDocument<Doc> {
  /** The version of the document, or `''` if the document did not exist. */
  version: string;
  doc: Doc | undefined;
  /** The time at which the document was read, by the store's clock. */
  readAt: number;
}

interface CachedEntry<Doc> extends CachedDocument<Doc> {
  /** The time at which the store's reply arrived, by the clock of this process. */
  receivedAt: number;
  /** The sequence number of the request to the store. A reply to a later request is newer. */
  requestNumber: number;
  bytes: number;
}

interface DocumentsOptions {
  store: Pick<Store, 'readDocument' | 'swapDocument'>;
  encryption: Pick<Encryption, 'encrypt' | 'decrypt'>;
  /**
   * Returns the time of this process, which is used to compute the age of cached documents. The default is a monotonic
   * clock. The time must be in whole milliseconds, because times computed from it are stored. An in-memory store passes
   * its own clock.
   */
  getProcessTime?(): number;
  wait?(delayMs: number): Promise<void>;
  /**
   * The memory limit for cached documents, in bytes. The `estimateDocumentBytes` function estimates the memory of a
   * document.
   */
  maxCachedBytes?: number;
}

/**
 * While a call waits for another process to change a document, this process reads the document again at this interval,
 * in milliseconds.
 */
const pollIntervalMs = 100;
/**
 * The maximum time to wait for a change, in milliseconds. After this time, the caller checks whether the process that
 * should make the change is still alive.
 */
const maxWaitMs = 1000;
const estimateDocumentBytes = (encryptedBytes = 0) => 6 * encryptedBytes + 1000;

/**
 * Reads and changes encrypted documents in a store, with a cache.
 *
 * A change is computed in this process and written by compare-and-swap. If the document has changed meanwhile, the
 * change is computed again. Within this process, changes of the same document run one after the other, so only other
 * processes can cause a retry.
 */
export class DocumentAccess {
  readonly #options: Required<DocumentsOptions>;
  readonly #cachedEntries: LRUCache<string, CachedEntry<unknown>>;
  readonly #pendingUpdates = new Map<string, Promise<unknown>>();
  readonly #polls = new Map<string, { completion: Promise<void>; wake(): void }>();
  #requestCount = 0;

  constructor(options: DocumentsOptions) {
    const wait = (delayMs: number) => delay(delayMs, undefined, { ref: false });
    const getProcessTime = () => Math.round(performance.now());
    this.#options = { getProcessTime, wait, maxCachedBytes: 256 * 1024 * 1024, ...options };
    this.#cachedEntries = new LRUCache({
      maxSize: this.#options.maxCachedBytes,
      sizeCalculation: ({ bytes }) => bytes,
    });
  }

  /**
   * Returns the document that this process last read or wrote, and the age of the cached document in milliseconds. Does
   * not read the store.
   */
  getCached<Doc>(key: string): (CachedDocument<Doc> & { ageMs: number }) | undefined {
    const entry = this.#getCachedEntry<Doc>(key);
    return entry && { ...entry, ageMs: this.#options.getProcessTime() - entry.receivedAt };
  }

  /**
   * Changes a document and returns the `result` of the change. Rejects if the store does not reply, but the store may
   * still make the change later.
   */
  update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const firstRequestNumber = ++this.#requestCount;
    return this.#runExclusively(key, async () => {
      for (let currentEntry = this.#getCachedEntry<Doc>(key); ; ) {
        currentEntry ??= await this.read<Doc>(key);
        const now = currentEntry.readAt + this.#options.getProcessTime() - currentEntry.receivedAt;
        const { next, ttlMs = 0, result } = change(structuredClone(currentEntry.doc), now, currentEntry.version);
        if (next === undefined) {
          // If nothing is written, the store cannot detect that the cached document is outdated. Therefore, read the
          // document again, unless it was read during this call.
          if (currentEntry.requestNumber > firstRequestNumber) return result;
          currentEntry = undefined;
          continue;
        }
        const writeResult = await this.#writeIfUnchanged(key, currentEntry.version, next, ttlMs);
        if (writeResult.isDone) return result;
        currentEntry = writeResult.currentEntry;
      }
    });
  }

  /**
   * Replaces a document, regardless of its current content.
   * @param createDocument returns the new document, or `null` to remove the document
   */
  write<Doc>(key: string, createDocument: (now: number) => Doc | null, ttlMs = 0): Promise<void> {
    return this.update<Doc, void>(key, (_, now) => ({ next: createDocument(now), ttlMs, result: undefined }));
  }

  /**
   * Waits until the document no longer has `previousVersion`, but at most about one second. After that time, the caller
   * should check whether the process that should make the change has died.
   */
  async waitForChange(key: string, previousVersion: string, signal: AbortSignal): Promise<void> {
    const { getProcessTime } = this.#options;
    const waitDeadline = getProcessTime() + maxWaitMs;
    while (
      (this.#getCachedEntry(key)?.version ?? previousVersion) === previousVersion &&
      getProcessTime() < waitDeadline
    )
      await raceAbort(this.#pollSoon(key), signal);
  }

  async #writeIfUnchanged<Doc>(key: string, expectedVersion: string, nextDocument: Doc | null, ttlMs: number) {
    const { store, encryption } = this.#options;
    const newVersion = randomUUID();
    const text = JSON.stringify(nextDocument);
    const body = nextDocument === null ? undefined : encryption.encrypt(key, text);
    // Remove the document from the cache, because its version is unknown until the store replies.
    this.#cachedEntries.delete(key);
    const requestNumber = ++this.#requestCount;
    const swapResult = await store.swapDocument(key, expectedVersion, { version: newVersion, body, ttlMs });
    if (!swapResult.isDone)
      return { isDone: false, currentEntry: this.#cacheReply<Doc>(key, swapResult, requestNumber, undefined) };
    const writtenDocument =
      nextDocument === null ? { version: '', doc: undefined } : { version: newVersion, doc: JSON.parse(text) as Doc };
    this.#putIntoCache(key, {
      ...writtenDocument,
      readAt: swapResult.now,
      requestNumber,
      bytes: estimateDocumentBytes(body?.length),
    });
    return { isDone: true, currentEntry: undefined };
  }

  /** Reads a document from the store. The store omits the body if this process has cached the current version. */
  async read<Doc>(key: string): Promise<CachedEntry<Doc>> {
    // Keep a reference to the cached document, because the cache may change before the store replies. If the store
    // confirms the version of this document, its reply has no body.
    const cachedEntry = this.#getCachedEntry<Doc>(key);
    const requestNumber = ++this.#requestCount;
    return this.#cacheReply(
      key,
      await this.#options.store.readDocument(key, cachedEntry?.version),
      requestNumber,
      cachedEntry,
    );
  }

  /**
   * Puts the document from a reply of the store into the cache, and returns the new cache entry.
   * @param previousEntry the cached document at the time of the request, which is used if the reply has no body
   */
  #cacheReply<Doc>(
    key: string,
    { now: readAt, document }: ReadResult,
    requestNumber: number,
    previousEntry: CachedEntry<Doc> | undefined,
  ): CachedEntry<Doc> {
    if (document === undefined)
      return this.#putIntoCache<Doc>(key, {
        version: '',
        doc: undefined,
        readAt,
        requestNumber,
        bytes: estimateDocumentBytes(),
      });
    const { version, body } = document;
    if (body === undefined) {
      if (previousEntry?.version !== version) throw new Error('the store left out a document that was not cached');
      return this.#putIntoCache(key, { ...previousEntry, readAt, requestNumber });
    }
    const text = this.#options.encryption.decrypt(key, body);
    const doc = text && (JSON.parse(String(text)) as Doc);
    return this.#putIntoCache(key, {
      version,
      doc,
      readAt,
      requestNumber,
      bytes: estimateDocumentBytes(body.length),
    });
  }

  #getCachedEntry<Doc>(key: string): CachedEntry<Doc> | undefined {
    return this.#cachedEntries.get(key) as CachedEntry<Doc> | undefined;
  }

  #putIntoCache<Doc>(key: string, document: Omit<CachedEntry<Doc>, 'receivedAt'>): CachedEntry<Doc> {
    const newEntry = { ...document, receivedAt: this.#options.getProcessTime() };
    // Replies can arrive out of order, so do not replace a newer reply with an older reply.
    const cachedEntry = this.#getCachedEntry(key);
    if ((cachedEntry?.requestNumber ?? 0) < document.requestNumber) {
      this.#cachedEntries.set(key, newEntry);
      if (cachedEntry?.version !== document.version) this.#polls.get(key)?.wake();
    }
    return newEntry;
  }

  #runExclusively<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#pendingUpdates.get(key) ?? Promise.resolve()).then(work);
    const settledUpdate = result
      .catch(() => {})
      .then(() => {
        if (this.#pendingUpdates.get(key) === settledUpdate) this.#pendingUpdates.delete(key);
      });
    this.#pendingUpdates.set(key, settledUpdate);
    return result;
  }

  /**
   * Reads a document again after `pollIntervalMs`. All callers that wait for this document share the read. Resolves
   * earlier if this process changes the document.
   */
  #pollSoon(key: string): Promise<void> {
    const pendingPoll = this.#polls.get(key);
    if (pendingPoll) return pendingPoll.completion;
    let wake = () => {};
    const awakened = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const poll = {
      wake,
      completion: Promise.race([
        awakened,
        this.#options.wait(pollIntervalMs).then(async () => {
          if (this.#polls.get(key) === poll) await this.read(key);
        }),
      ]).finally(() => {
        if (this.#polls.get(key) === poll) this.#polls.delete(key);
      }),
    };
    this.#polls.set(key, poll);
    return poll.completion;
  }
}
