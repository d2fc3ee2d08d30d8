import { LRUCache } from 'lru-cache';

export interface TenantCacheOptions {
  /** Bytes for all tenants together, of which one has half at most. */
  maxBytes: number;
  /** How long an entry lives, in milliseconds. */
  ttlMs: number;
  /** In milliseconds since the epoch. */
  now: () => number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  storedAt: number;
}

/** The overhead of an entry: its place in the cache, the entry, its name. Then the overhead of a tenant's cache. */
const entryOverheadBytes = 1024;
const tenantOverheadBytes = 4096;

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
      sizeCalculation: ({ calculatedSize }) => tenantOverheadBytes + calculatedSize,
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
    entries.set(name, { value, bytes: bytes + 2 * name.length + entryOverheadBytes, storedAt: now() });
    this.#countBytes(tenantId, entries);
  }

  remove(tenantId: string, name: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries?.delete(name)) this.#countBytes(tenantId, entries);
  }

  removeByPrefix(tenantId: string, prefix: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries === undefined) return;
    for (const name of [...entries.keys()]) if (name.startsWith(prefix)) entries.delete(name);
    this.#countBytes(tenantId, entries);
  }

  /** An entry from the future is as old as the clock was wrong. */
  #isAlive({ storedAt }: Entry<Value>): boolean {
    return Math.abs(this.#options.now() - storedAt) < this.#options.ttlMs;
  }

  #countBytes(tenantId: string, entries: LRUCache<string, Entry<Value>>): void {
    this.#tenants.delete(tenantId);
    if (entries.size > 0) this.#tenants.set(tenantId, entries);
  }
}

/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const bytesPerValue = 24;
const bytesPerContainer = 64;
const bytesPerKey = 80;
const bytesPerCharacter = 2;

/** The most memory that JSON takes once it is parsed, in bytes: `{}` takes twenty bytes for each character. */
export function estimateJsonMemory(json: unknown): number {
  let bytes = 0;
  // No recursion: an answer may be nested as deep as it is long.
  const containers: object[] = [];
  const count = (value: unknown) => {
    bytes += bytesPerValue;
    if (typeof value === 'string') bytes += bytesPerCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  count(json);
  for (let next = containers.pop(); next !== undefined; next = containers.pop()) {
    bytes += bytesPerContainer;
    if (Array.isArray(next)) next.forEach(count);
    else {
      for (const key in next) {
        bytes += bytesPerKey + bytesPerCharacter * key.length;
        count(next[key as keyof typeof next]);
      }
    }
  }
  return bytes;
}
