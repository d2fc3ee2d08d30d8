import { LRUCache } from 'lru-cache';

export interface TenantCacheOptions {
  /** Bytes for all tenants together, of which one has half at most. */
  maxBytes: number;
  /** How long an entry lives, in milliseconds. */
  ttl: number;
  /** In milliseconds since the epoch. */
  now: () => number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  at: number;
}

/** The overhead of an entry: its place in the cache, the entry, its name. Then the overhead of a tenant's cache. */
const entryBytes = 1024;
const tenantBytes = 4096;

/**
 * Bounded memory for each tenant, and for all: a tenant's own entries give way to its next ones, and where all are too
 * many, those of the tenant who used theirs longest ago.
 */
export class TenantCache<Value> {
  readonly #options: TenantCacheOptions;
  readonly #tenants: LRUCache<string, LRUCache<string, Entry<Value>>>;

  constructor(options: TenantCacheOptions) {
    this.#options = options;
    this.#tenants = new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: ({ calculatedSize }) => tenantBytes + calculatedSize,
    });
  }

  get bytes(): number {
    return this.#tenants.calculatedSize;
  }

  get(tenantId: string, name: string): Value | undefined {
    const entry = this.#tenants.get(tenantId)?.get(name);
    if (entry === undefined || this.#isAlive(entry)) return entry?.value;
    this.remove(tenantId, name);
    return undefined;
  }

  set(tenantId: string, name: string, { value, bytes }: { value: Value; bytes: number }): void {
    const { maxBytes, now } = this.#options;
    const sizeCalculation = (entry: Entry<Value>) => entry.bytes;
    const entries = this.#tenants.get(tenantId) ?? new LRUCache({ maxSize: Math.floor(maxBytes / 2), sizeCalculation });
    entries.set(name, { value, bytes: bytes + 2 * name.length + entryBytes, at: now() });
    this.#countBytes(tenantId, entries);
  }

  remove(tenantId: string, name: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries?.delete(name)) this.#countBytes(tenantId, entries);
  }

  drop(tenantId: string, start: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries === undefined) return;
    for (const name of [...entries.keys()]) if (name.startsWith(start)) entries.delete(name);
    this.#countBytes(tenantId, entries);
  }

  /** An entry from the future is as old as the clock was wrong. */
  #isAlive({ at }: Entry<Value>): boolean {
    return Math.abs(this.#options.now() - at) < this.#options.ttl;
  }

  #countBytes(tenantId: string, entries: LRUCache<string, Entry<Value>>): void {
    this.#tenants.delete(tenantId);
    if (entries.size > 0) this.#tenants.set(tenantId, entries);
  }
}

/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const perValue = 24;
const perContainer = 64;
const perKey = 80;
const perCharacter = 2;

/** The most memory that JSON takes once it is parsed, in bytes: `{}` takes twenty bytes for each character. */
export function memoryOf(json: unknown): number {
  let bytes = 0;
  // No recursion: an answer may be nested as deep as it is long.
  const containers: object[] = [];
  const count = (value: unknown) => {
    bytes += perValue;
    if (typeof value === 'string') bytes += perCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  count(json);
  for (let next = containers.pop(); next !== undefined; next = containers.pop()) {
    bytes += perContainer;
    if (Array.isArray(next)) next.forEach(count);
    else {
      for (const key in next) {
        bytes += perKey + perCharacter * key.length;
        count(next[key as keyof typeof next]);
      }
    }
  }
  return bytes;
}
