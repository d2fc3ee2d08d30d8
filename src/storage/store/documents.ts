import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import type { Seen, Store } from '../storage.ts';
import type { Seal } from './seal.ts';

/** The change of a document: the next document and its lifetime, `null` to remove it, or nothing. */
interface Change<Doc, Result> {
  next?: Doc | null;
  ttlMs?: number;
  result: Result;
}

/** Receives a document, the time and the version. It may run again, and its last result counts. */
type DocumentChange<Doc, Result> = (doc: Doc | undefined, now: number, version: string) => Change<Doc, Result>;

interface RememberedDocument<Doc> {
  /** Empty if there was none. */
  version: string;
  doc: Doc | undefined;
  /** By the clock of the store, when it was read. */
  now: number;
}

interface Entry<Doc> extends RememberedDocument<Doc> {
  /** When the document came, by the clock of this process. */
  cameAt: number;
  request: number;
  bytes: number;
}

interface DocumentsOptions {
  store: Pick<Store, 'read' | 'swap'>;
  seal: Pick<Seal, 'open' | 'close'>;
  /**
   * A clock of this process, which tells how old a document is that was read before: by default a monotonic one. The
   * memory of one process passes the clock of its store. In whole milliseconds, because stored times must be whole.
   */
  elapsed?(): number;
  wait?(ms: number): Promise<void>;
  /** Bytes of documents that this process remembers: what a sealed byte takes once it is parsed, and the overhead of each. */
  maxRemembered?: number;
}

/** How often a document that is waited for is read again, in milliseconds. */
const lookMs = 100;
/** How long to wait for a change before checking that the process that should make it is alive, in milliseconds. */
const patienceMs = 1000;
const bytesOf = (sealed = 0) => 6 * sealed + 1000;

/**
 * Sealed documents. A change is made here, and written by compare-and-swap; if that fails, it is made again. Changes of
 * one document take turns in this process, so that only another process can make one fail.
 */
export class Documents {
  readonly #options: Required<DocumentsOptions>;
  readonly #entries: LRUCache<string, Entry<unknown>>;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #looks = new Map<string, { done: Promise<void>; wake(): void }>();
  #requests = 0;

  constructor(options: DocumentsOptions) {
    const wait = (ms: number) => setTimeout(ms, undefined, { ref: false });
    const elapsed = () => Math.round(performance.now());
    this.#options = { elapsed, wait, maxRemembered: 256 * 1024 * 1024, ...options };
    this.#entries = new LRUCache({
      maxSize: this.#options.maxRemembered,
      sizeCalculation: ({ bytes }) => bytes,
    });
  }

  /** The document as this process read or wrote it last, and how old that is. */
  remembered<Doc>(key: string): (RememberedDocument<Doc> & { ageMs: number }) | undefined {
    const entry = this.#entry<Doc>(key);
    return entry && { ...entry, ageMs: this.#options.elapsed() - entry.cameAt };
  }

  /** Changes a document. If the store does not answer, the change may still have been made, or be made later. */
  update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const began = ++this.#requests;
    return this.#inTurn(key, async () => {
      for (let current = this.#entry<Doc>(key); ; ) {
        current ??= await this.read<Doc>(key);
        const now = current.now + this.#options.elapsed() - current.cameAt;
        const { next, ttlMs = 0, result } = change(structuredClone(current.doc), now, current.version);
        if (next === undefined) {
          // A document that was requested after the call began is from the time of the call.
          if (current.request > began) return result;
          current = undefined;
          continue;
        }
        const written = await this.#swap(key, current.version, next, ttlMs);
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
  async changed(key: string, version: string, signal: AbortSignal): Promise<void> {
    const { elapsed } = this.#options;
    const end = elapsed() + patienceMs;
    while ((this.#entry(key)?.version ?? version) === version && elapsed() < end)
      await raceAbort(this.#look(key), signal);
  }

  async #swap<Doc>(key: string, expected: string, next: Doc | null, ttlMs: number) {
    const { store, seal } = this.#options;
    const version = randomUUID();
    const text = JSON.stringify(next);
    const body = next === null ? undefined : seal.close(key, text);
    // Until the store answers, it is not known which version is there.
    this.#entries.delete(key);
    const request = ++this.#requests;
    const answer = await store.swap(key, expected, { version, body, ttlMs });
    if (!answer.isDone) return { isDone: false, found: this.#keep<Doc>(key, answer, request, undefined) };
    const is = next === null ? { version: '', doc: undefined } : { version, doc: JSON.parse(text) as Doc };
    this.#remember(key, { ...is, now: answer.now, request, bytes: bytesOf(body?.length) });
    return { isDone: true, found: undefined };
  }

  async read<Doc>(key: string): Promise<Entry<Doc>> {
    // The known document may have changed when the answer comes, and the answer refers to the document that was known
    // at the request.
    const before = this.#entry<Doc>(key);
    const request = ++this.#requests;
    return this.#keep(key, await this.#options.store.read(key, before?.version), request, before);
  }

  /** @param before what the answer leaves out if it has not changed */
  #keep<Doc>(key: string, { now, found }: Seen, request: number, before: Entry<Doc> | undefined): Entry<Doc> {
    if (found === undefined)
      return this.#remember<Doc>(key, { version: '', doc: undefined, now, request, bytes: bytesOf() });
    const { version, body } = found;
    if (body === undefined) {
      if (before?.version !== version) throw new Error('the store left out a document that was not cached');
      return this.#remember(key, { ...before, now, request });
    }
    const text = this.#options.seal.open(key, body);
    const doc = text && (JSON.parse(String(text)) as Doc);
    return this.#remember(key, { version, doc, now, request, bytes: bytesOf(body.length) });
  }

  #entry<Doc>(key: string): Entry<Doc> | undefined {
    return this.#entries.get(key) as Entry<Doc> | undefined;
  }

  #remember<Doc>(key: string, document: Omit<Entry<Doc>, 'cameAt'>): Entry<Doc> {
    const remembered = { ...document, cameAt: this.#options.elapsed() };
    // Answers can overtake each other.
    const before = this.#entry(key);
    if ((before?.request ?? 0) < document.request) {
      this.#entries.set(key, remembered);
      if (before?.version !== document.version) this.#looks.get(key)?.wake();
    }
    return remembered;
  }

  #inTurn<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const done = (this.#turns.get(key) ?? Promise.resolve()).then(work);
    const turn = done
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(key) === turn) this.#turns.delete(key);
      });
    this.#turns.set(key, turn);
    return done;
  }

  /** Looks at a document a little later, for all who wait for a change of it; ends at once if this process makes one. */
  #look(key: string): Promise<void> {
    const pending = this.#looks.get(key);
    if (pending) return pending.done;
    let wake = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const look = {
      wake,
      done: Promise.race([
        woken,
        this.#options.wait(lookMs).then(async () => {
          if (this.#looks.get(key) === look) await this.read(key);
        }),
      ]).finally(() => {
        if (this.#looks.get(key) === look) this.#looks.delete(key);
      }),
    };
    this.#looks.set(key, look);
    return look.done;
  }
}
