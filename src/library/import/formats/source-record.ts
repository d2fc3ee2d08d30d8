/**
 * Normalizes a key, so that all spellings are equal: only letters and digits remain, in lower case. For example,
 * `ad_archive_id`, `adArchiveID`, `AD_ARCHIVE_ID` and `Ad Archive ID` become the same key. A remark in parentheses at
 * the end, as in `Headline (ad settings)`, is removed.
 */
export function normalizeKey(name: string): string {
  const cachedKey = keyCache.get(name);
  if (cachedKey !== undefined) return cachedKey;
  const key = computeKey(name);
  // Most records of a source have the same keys, so the cache never evicts an entry. It only stops growing.
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

/** A key and its value in an imported record. */
interface SourceField {
  /** The original spelling of the key. */
  name: string;
  value: unknown;
}

/** Converts a key to the API's spelling, e.g. `ad_creation_time` becomes `adCreationTime`. */
export function toCamelCase(name: string): string {
  // In `Spend_USD` and `AD_ID`, the parts in capital letters are ordinary words, so convert them to lower case first.
  const lowerCaseName = name.includes('_')
    ? name.replace(/(?<![^_])(?:[A-Z\d]+(?![^_])|[A-Z])/g, (part) => part.toLowerCase())
    : name.replace(/^[A-Z](?=[a-z]+$)/, (letter) => letter.toLowerCase());
  return lowerCaseName.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
}

/**
 * An imported record. Its methods expect keys that were normalized with `normalizeKey`. The record remembers which keys
 * were used, so that the import can store and report the others.
 */
export class SourceRecord {
  /** A prefix for keys in error messages, if this record is part of a larger one, e.g. `snapshot.`. */
  readonly #keyPrefix: string;
  readonly #fields: SourceField[];
  readonly #fieldByKey = new Map<string, SourceField>();
  /** The fields whose key another field already has in another spelling. */
  readonly #repeatedFields: [key: string, field: SourceField][] = [];
  readonly #usedFields = new Set<SourceField>();
  #sourceObject: Record<string, unknown> | undefined;

  /** Creates a record from a parsed JSON object. `toObject` of the record returns the same object. */
  static fromObject(value: Record<string, unknown>): SourceRecord {
    const record = new SourceRecord(Object.entries(value));
    record.#sourceObject = value;
    return record;
  }

  /** @param ignoredNames columns that `get` and `has` ignore, because another column already contains their field */
  constructor(fields: Iterable<readonly [string, unknown]>, { keyPrefix = '', ignoredNames = new Set<string>() } = {}) {
    this.#keyPrefix = keyPrefix;
    this.#fields = Array.from(fields, ([name, value]) => ({ name, value }));
    for (const field of this.#fields) {
      if (ignoredNames.has(field.name)) continue;
      const key = normalizeKey(field.name);
      // If a key occurs in several spellings, use the first one that has a value.
      if ((this.#fieldByKey.get(key)?.value ?? null) === null) this.#fieldByKey.set(key, field);
      else this.#repeatedFields.push([key, field]);
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

  /** Returns a key as the source spells it, for error messages, e.g. `snapshot.link_url` for `linkurl`. */
  getSourceName(key: string): string {
    return `${this.#keyPrefix}${this.#fieldByKey.get(key)?.name ?? key}`;
  }

  /**
   * Remembers that the value of a key became part of the ad. `getUnusedFields` then leaves out this key. Also marks other
   * spellings of the key that have the same value.
   */
  markUsed(key: string): void {
    const field = this.#fieldByKey.get(key);
    if (!field) return;
    this.#usedFields.add(field);
    for (const [repeatedKey, repeatedField] of this.#repeatedFields)
      if (repeatedKey === key && JSON.stringify(repeatedField.value) === JSON.stringify(field.value))
        this.#usedFields.add(repeatedField);
  }

  /** Returns the keys and values that were not marked as used, in the order of the source. */
  getUnusedFields(): SourceField[] {
    return this.#fields.filter((field) => !this.#usedFields.has(field));
  }

  /** Returns all keys of the record, normalized with `normalizeKey`. */
  keys(): Iterable<string> {
    return this.#fieldByKey.keys();
  }

  /** Returns the record as an object, with the keys as the source spells them. */
  toObject(): Record<string, unknown> {
    return this.#sourceObject ?? Object.fromEntries(this.#fields.map(({ name, value }) => [name, value]));
  }
}
