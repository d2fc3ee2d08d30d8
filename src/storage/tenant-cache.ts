import { LRUCache } from 'lru-cache';

/** The options of a `TenantCache`. */
export interface TenantCacheOptions {
  /**
   * The memory limit for all tenants (API keys) together, in bytes. A single tenant may use at most half of this
   * memory.
   */
  maxBytes: number;
  /** How long an entry stays in the cache, in milliseconds. */
  ttlMs: number;
  /** Returns the time of this process, in milliseconds since 1970. */
  now: () => number;
}

interface CacheEntry<Value> {
  value: Value;
  bytes: number;
  storedAt: number;
}

/** The estimated memory overhead, in bytes, of one entry and of one tenant. */
const entryOverheadBytes = 1024;
const tenantOverheadBytes = 4096;

/**
 * A cache with a memory limit per tenant (API key) and a limit for all tenants together. When a tenant reaches its
 * limit, its least recently used entries are evicted. At the total limit, all entries of the least recently active
 * tenant are evicted.
 */
export class TenantCache<Value> {
  readonly #options: TenantCacheOptions;
  readonly #tenants: LRUCache<string, LRUCache<string, CacheEntry<Value>>>;

  constructor(options: TenantCacheOptions) {
    this.#options = options;
    this.#tenants = new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: ({ calculatedSize }) => tenantOverheadBytes + calculatedSize,
    });
  }

  /** The estimated memory of all entries of all tenants, in bytes. */
  get bytes(): number {
    return this.#tenants.calculatedSize;
  }

  /** Returns the cached value with this name, or undefined if there is no such value or if it has expired. */
  get(tenantId: string, name: string): Value | undefined {
    const entry = this.#tenants.get(tenantId)?.get(name);
    if (entry === undefined || this.#isUnexpired(entry)) return entry?.value;
    this.remove(tenantId, name);
    return undefined;
  }

  /**
   * Stores a value of the tenant under a name. This may evict other entries. Returns false if the value is too large to
   * be stored.
   * @param bytes the estimated memory of the value
   */
  set(tenantId: string, name: string, { value, bytes }: { value: Value; bytes: number }): boolean {
    const { maxBytes, now } = this.#options;
    const sizeCalculation = (entry: CacheEntry<Value>) => entry.bytes;
    const entries = this.#tenants.get(tenantId) ?? new LRUCache({ maxSize: Math.floor(maxBytes / 2), sizeCalculation });
    entries.set(name, { value, bytes: bytes + 2 * name.length + entryOverheadBytes, storedAt: now() });
    this.#updateSize(tenantId, entries);
    return entries.has(name);
  }

  remove(tenantId: string, name: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries?.delete(name)) this.#updateSize(tenantId, entries);
  }

  /** Removes all entries of a tenant whose names begin with `namePrefix`. */
  removeByPrefix(tenantId: string, namePrefix: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries === undefined) return;
    for (const name of [...entries.keys()]) if (name.startsWith(namePrefix)) entries.delete(name);
    this.#updateSize(tenantId, entries);
  }

  /**
   * Returns true if an entry has not expired. If the clock was set back, `storedAt` may be in the future. The distance
   * between `storedAt` and the current time then counts as the age.
   */
  #isUnexpired({ storedAt }: CacheEntry<Value>): boolean {
    return Math.abs(this.#options.now() - storedAt) < this.#options.ttlMs;
  }

  #updateSize(tenantId: string, entries: LRUCache<string, CacheEntry<Value>>): void {
    this.#tenants.delete(tenantId);
    if (entries.size > 0) this.#tenants.set(tenantId, entries);
  }
}

/** The memory that V8 needs for the parts of a parsed JSON value, in bytes. The numbers are measured and rounded up. */
const bytesPerValue = 24;
const bytesPerContainer = 64;
const bytesPerKey = 80;
const bytesPerCharacter = 2;

/**
 * Returns an upper bound for the memory of a parsed JSON value, in bytes. The length of the JSON text is not a usable
 * measure, because `{}` takes about twenty bytes of memory per character.
 */
export function estimateJsonMemory(jsonValue: unknown): number {
  let bytes = 0;
  // Use a loop instead of recursion, because a deeply nested response would cause a stack overflow.
  const containers: object[] = [];
  const addValue = (value: unknown) => {
    bytes += bytesPerValue;
    if (typeof value === 'string') bytes += bytesPerCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  addValue(jsonValue);
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    bytes += bytesPerContainer;
    if (Array.isArray(container)) container.forEach(addValue);
    else {
      for (const key in container) {
        bytes += bytesPerKey + bytesPerCharacter * key.length;
        addValue(container[key as keyof typeof container]);
      }
    }
  }
  return bytes;
}
