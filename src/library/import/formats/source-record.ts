/**
 * Returns the form of a key that is the same for all its spellings: letters and digits in lower case. `ad_archive_id`,
 * `adArchiveID`, `AD_ARCHIVE_ID` and `Ad Archive ID` are the same key. A remark in parentheses at the end, as in
 * `Headline (ad settings)`, is ignored.
 */
export function normalizeKey(name: string): string {
  const cachedKey = keyCache.get(name);
  if (cachedKey !== undefined) return cachedKey;
  const key = computeKey(name);
  // All records of a source have the same keys, so the cache needs no eviction.
  if (keyCache.size < maxCachedKeys && name.length <= maxCachedKeyLength) keyCache.set(name, key);
  return key;
}

const keyCache = new Map<string, string>();
const maxCachedKeys = 5000;
const maxCachedKeyLength = 100;

function computeKey(name: string): string {
  const key = name
    .replace(/(?<=\S)\s*\([^()]{0,40}\)\s*$/, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
  return key === '' ? name : key;
}

/** A key of a record with its value. */
interface SourceField {
  /** The key as the source spells it. */
  name: string;
  value: unknown;
}

/** Converts a key to the spelling of the API: `ad_creation_time` becomes `adCreationTime`. */
export function toCamelCase(name: string): string {
  const lowerCaseName = /^[A-Z\d]+(?:_[A-Z\d]+)+$/.test(name) ? name.toLowerCase() : name;
  return lowerCaseName.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
}

/**
 * A record of a source. Methods that take a key expect it in the form of `normalizeKey`. The record also remembers
 * which of its keys were used.
 */
export class SourceRecord {
  /** The path to this record in its source, which messages put before its keys. */
  readonly #path: string;
  readonly #fields: SourceField[];
  readonly #fieldByKey = new Map<string, SourceField>();
  readonly #usedFields = new Set<SourceField>();
  #sourceObject: Record<string, unknown> | undefined;

  /** Creates a record from an object. `toObject` then returns the same object. */
  static fromObject(value: Record<string, unknown>): SourceRecord {
    const record = new SourceRecord(Object.entries(value));
    record.#sourceObject = value;
    return record;
  }

  /**
   * @param hiddenNames names of columns that the record contains but cannot be asked for by key, because another column
   *   has their field
   */
  constructor(fields: Iterable<readonly [string, unknown]>, { path = '', hiddenNames = new Set<string>() } = {}) {
    this.#path = path;
    this.#fields = Array.from(fields, ([name, value]) => ({ name, value }));
    for (const field of this.#fields) {
      if (hiddenNames.has(field.name)) continue;
      const key = normalizeKey(field.name);
      // If a key occurs in several spellings, the first spelling with a value is used.
      if ((this.#fieldByKey.get(key)?.value ?? null) === null) this.#fieldByKey.set(key, field);
    }
  }

  has(key: string): boolean {
    return this.#fieldByKey.has(key);
  }

  hasAny(keys: Iterable<string>): boolean {
    for (const key of keys) if (this.#fieldByKey.has(key)) return true;
    return false;
  }

  get(key: string): unknown {
    return this.#fieldByKey.get(key)?.value;
  }

  /** Returns a key as the source spells it, with the path to this record. */
  getSourceName(key: string): string {
    return `${this.#path}${this.#fieldByKey.get(key)?.name ?? key}`;
  }

  /** Marks a key as used, so that `getUnusedFields` leaves it out. */
  markUsed(key: string): void {
    const field = this.#fieldByKey.get(key);
    if (field) this.#usedFields.add(field);
  }

  /** Returns the fields that were not marked as used, in the order of the source. */
  getUnusedFields(): SourceField[] {
    return this.#fields.filter((field) => !this.#usedFields.has(field));
  }

  /** Returns all normalized keys of the record. */
  keys(): Iterable<string> {
    return this.#fieldByKey.keys();
  }

  /** Returns the record as an object, with the keys as the source spells them. */
  toObject(): Record<string, unknown> {
    return this.#sourceObject ?? Object.fromEntries(this.#fields.map(({ name, value }) => [name, value]));
  }
}
