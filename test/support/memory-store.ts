import { randomUUID } from 'node:crypto';
import { type Item, type ItemsPart, partLimits, type Seen, type Store } from '../../src/state/ports.ts';

interface Document {
  version: string;
  body: Buffer;
  ends: number;
}

interface Collection {
  epoch: string;
  seq: number;
  /** Those that changed first come first. */
  items: Map<string, Item>;
  bytes: number;
  floor: number;
  gone: Record<string, number>;
  ends: number;
}

/** The store of one process. */
export class MemoryStore implements Store {
  readonly #now: () => number;
  readonly #documents = new Map<string, Document>();
  readonly #collections = new Map<string, Collection>();
  /** The last number that any of them gave. */
  #seq = 0;

  /** @param now in milliseconds; it only goes on */
  constructor(now: () => number) {
    this.#now = now;
  }

  async connect(): Promise<void> {}

  async read(key: string, known?: string): Promise<Seen> {
    const now = this.#now();
    const found = this.#alive(this.#documents, key);
    if (found === undefined) return { now };
    const { version, body } = found;
    return { now, found: { version, body: version === known ? undefined : body } };
  }

  async swap(...[key, expected, { version, body, ttlMs }]: Parameters<Store['swap']>) {
    const now = this.#now();
    const found = this.#alive(this.#documents, key);
    if ((found?.version ?? '') !== expected)
      return { now, found: found && { version: found.version, body: found.body }, isDone: false };
    if (body) this.#documents.set(key, { version, body, ends: now + ttlMs });
    else this.#documents.delete(key);
    return { now, isDone: true };
  }

  async items(name: string, ids: readonly string[]): Promise<Map<string, Item>> {
    const items = this.#alive(this.#collections, name)?.items;
    return new Map(
      ids.flatMap((id) => [[id, items?.get(id)] as const].filter((one): one is [string, Item] => !!one[1])),
    );
  }

  async putItems(...[name, changes, { ttlMs, maxBytes }]: Parameters<Store['putItems']>): Promise<Set<string>> {
    const now = this.#now();
    const collection =
      this.#alive(this.#collections, name) ?? emptyCollection(Math.max(Math.ceil(now * 1000), this.#seq));
    collection.ends = now + ttlMs;
    this.#collections.set(name, collection);
    const { items, gone } = collection;
    const refused = new Set<string>();
    for (const { id, seq, body } of changes) {
      const before = items.get(id);
      if ((before?.seq ?? 0) !== seq) {
        refused.add(id);
        continue;
      }
      items.delete(id);
      items.set(id, { seq: ++collection.seq, body });
      collection.bytes += body.length - (before?.body.length ?? 0);
    }
    this.#seq = Math.max(this.#seq, collection.seq);
    for (const [id, { seq, body }] of items) {
      if (collection.bytes <= maxBytes) break;
      items.delete(id);
      collection.bytes -= body.length;
      collection.floor = seq;
      const kind = id.slice(0, 1);
      gone[kind] = (gone[kind] ?? 0) + 1;
    }
    return refused;
  }

  async itemsSince(name: string, after: number): Promise<ItemsPart | undefined> {
    const collection = this.#alive(this.#collections, name);
    if (collection === undefined) return undefined;
    const { epoch, floor, gone, seq } = collection;
    const items: ItemsPart['items'] = [];
    let bytes = 0;
    for (const [id, item] of collection.items) {
      if (item.seq <= after) continue;
      items.push({ id, ...item });
      bytes += item.body.length;
      if (items.length === partLimits.items || bytes >= partLimits.bytes) break;
    }
    return { epoch, items, floor, gone: { ...gone }, isLast: (items.at(-1)?.seq ?? seq) === seq };
  }

  isTight(): boolean {
    return false;
  }

  refuses(): boolean {
    return false;
  }

  async close(): Promise<void> {}

  #alive<Value extends { ends: number }>(all: Map<string, Value>, name: string): Value | undefined {
    const found = all.get(name);
    if (found === undefined || found.ends > this.#now()) return found;
    all.delete(name);
    return undefined;
  }
}

const emptyCollection = (seq: number): Collection => ({
  ...{ epoch: randomUUID(), seq, items: new Map(), bytes: 0, floor: 0, gone: {}, ends: 0 },
});

/** Keeps values in clear. */
export const noSeal = {
  close: (_: string, value: string | Buffer) => Buffer.from(value),
  open: (_: string, sealed: Buffer) => sealed,
};
