import { LRUCache } from 'lru-cache';

/** Options of a `TenantCache`. */
export interface TenantCacheOptions {
  /** The memory limit for all tenants together. One tenant may use at most half of it. */
  maxBytes: number;
  /** The lifetime of an entry, in milliseconds. */
  ttlMs: number;
  /** The time of this process, in milliseconds since 1970. */
  now: () => number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  storedAt: number;
}

/** The overhead of an entry and its name in the cache, and the overhead of the cache of one tenant, in bytes. */
const entryOverheadBytes = 1024;
const tenantOverheadBytes = 4096;

/**
 * A cache with a memory limit for each tenant and for all tenants together. A tenant that reaches its limit evicts its own
 * entries. If all tenants together reach the limit, the least recently active tenant loses its entries.
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

  /** The estimated memory of all entries. */
  get bytes(): number {
    return this.#tenants.calculatedSize;
  }

  /** Returns a value; undefined if there is none, or if it is too old. */
  get(tenantId: string, name: string): Value | undefined {
    const entry = this.#tenants.get(tenantId)?.get(name);
    if (entry === undefined || this.#isAlive(entry)) return entry?.value;
    this.remove(tenantId, name);
    return undefined;
  }

  /** Stores a value. @param bytes the estimated memory of the value */
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

  /** Removes all entries of a tenant whose names begin with `prefix`. */
  removeByPrefix(tenantId: string, prefix: string): void {
    const entries = this.#tenants.get(tenantId);
    if (entries === undefined) return;
    for (const name of [...entries.keys()]) if (name.startsWith(prefix)) entries.delete(name);
    this.#countBytes(tenantId, entries);
  }

  /** An entry with a time in the future was stored before the clock was set back. The difference counts as its age. */
  #isAlive({ storedAt }: Entry<Value>): boolean {
    return Math.abs(this.#options.now() - storedAt) < this.#options.ttlMs;
  }

  #countBytes(tenantId: string, entries: LRUCache<string, Entry<Value>>): void {
    this.#tenants.delete(tenantId);
    if (entries.size > 0) this.#tenants.set(tenantId, entries);
  }
}

/**
 * The memory of parsed JSON in V8, in bytes. The numbers are rounded up from measurements of many small objects, of
 * objects with different keys, and of deep nesting.
 */
const bytesPerValue = 24;
const bytesPerContainer = 64;
const bytesPerKey = 80;
const bytesPerCharacter = 2;

/**
 * Estimates the memory of a parsed JSON value, in bytes. The estimate is an upper bound. The length of the text would be
 * no measure, because `{}` takes about twenty bytes for each character.
 */
export function estimateJsonMemory(json: unknown): number {
  let bytes = 0;
  // A loop instead of recursion, because an answer may be nested so deep that recursion would exhaust the stack.
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
