/** The entries of a tenant, the least recently used first. */
interface Share<Value> {
  entries: Map<string, Entry<Value>>;
  bytes: number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  /** When it expires, in milliseconds. */
  until: number;
}

export interface FairStoreOptions {
  /** For all tenants together. */
  maxBytes: number;
  /** How long an entry is kept, in milliseconds. */
  ttl: number;
  /** A clock that only goes on. */
  now: () => number;
}

/** The overhead of an entry: two maps, the entry, its name. */
const entryBytes = 1024;

/**
 * Bounded memory with a fair share for each tenant: when it is full, the tenants who hold the most lose their least
 * recently used entries. So nobody can displace the entries of others by storing a lot.
 */
export class FairStore<Value> {
  readonly #shares = new Map<string, Share<Value>>();
  readonly #options: FairStoreOptions;
  #total = 0;

  constructor(options: FairStoreOptions) {
    this.#options = options;
  }

  /** Bytes held, as they are counted. */
  get bytes(): number {
    return this.#total;
  }

  get(tenantId: string, name: string): Value | undefined {
    const share = this.#shares.get(tenantId);
    const entry = share?.entries.get(name);
    if (share === undefined || entry === undefined) return undefined;
    if (entry.until <= this.#options.now()) {
      this.remove(tenantId, name);
      return undefined;
    }
    // Moves it to the end: the most recently used.
    share.entries.delete(name);
    share.entries.set(name, entry);
    return entry.value;
  }

  /** A tenant's values that have not expired, the most recently used last. */
  values(tenantId: string): Value[] {
    const now = this.#options.now();
    return [...(this.#shares.get(tenantId)?.entries.values() ?? [])].flatMap(({ value, until }) =>
      until > now ? value : [],
    );
  }

  /** @param bytes the caller's estimate; a value larger than the whole store is not kept */
  set(tenantId: string, name: string, { value, bytes }: { value: Value; bytes: number }): void {
    const { maxBytes, ttl, now } = this.#options;
    this.remove(tenantId, name);
    const entry = { value, bytes: bytes + 2 * name.length + entryBytes, until: now() + ttl };
    if (entry.bytes > maxBytes) return;
    const share = this.#shares.get(tenantId) ?? { entries: new Map(), bytes: 0 };
    this.#shares.set(tenantId, share);
    share.entries.set(name, entry);
    share.bytes += entry.bytes;
    this.#total += entry.bytes;
    if (this.#total > maxBytes) this.#makeRoom();
  }

  /** Removes a tenant's entries whose names begin with `start`. */
  drop(tenantId: string, start: string): void {
    for (const name of [...(this.#shares.get(tenantId)?.entries.keys() ?? [])])
      if (name.startsWith(start)) this.remove(tenantId, name);
  }

  remove(tenantId: string, name: string): void {
    const share = this.#shares.get(tenantId);
    const entry = share?.entries.get(name);
    if (share === undefined || entry === undefined) return;
    share.entries.delete(name);
    share.bytes -= entry.bytes;
    this.#total -= entry.bytes;
    if (share.entries.size === 0) this.#shares.delete(tenantId);
  }

  /** Frees a little more than necessary, so that not every new entry has to go through all tenants. */
  #makeRoom(): void {
    this.#dropEnded();
    const wanted = this.#options.maxBytes * 0.95;
    const byBytes = [...this.#shares].sort(([, a], [, b]) => b.bytes - a.bytes);
    const level = fairLevel(
      byBytes.map(([, { bytes }]) => bytes),
      wanted,
    );
    // An entry may be much of a share: once there is room, nobody gives up more.
    for (const [tenantId, share] of byBytes)
      for (const name of share.entries.keys()) {
        if (this.#total <= wanted) return;
        if (share.bytes <= level) break;
        this.remove(tenantId, name);
      }
  }

  #dropEnded(): void {
    const now = this.#options.now();
    for (const [tenantId, { entries }] of this.#shares)
      for (const [name, { until }] of entries) if (until <= now) this.remove(tenantId, name);
  }
}

/** The maximum for each tenant with which all together hold no more than `wanted`. */
export function fairLevel(descending: readonly number[], wanted: number): number {
  let rest = descending.reduce((sum, size) => sum + size, 0);
  for (const [index, size] of descending.entries()) {
    rest -= size;
    const level = (wanted - rest) / (index + 1);
    if (level >= (descending[index + 1] ?? 0)) return level;
  }
  return Infinity;
}

/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const perValue = 24;
const perContainer = 64;
const perKey = 80;
const perCharacter = 2;

/** How much memory JSON takes once it is parsed, at most, in bytes: `{}` takes twenty for each character. */
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
