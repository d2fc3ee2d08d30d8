/**
 * Normalizes a key to lower-case letters and digits, so that all spellings are equal. For example, `ad_archive_id`,
 * `adArchiveID` and `Ad Archive ID` become `adarchiveid`. Removes a remark in parentheses at the end, as in `Headline
 * (ad settings)`.
 */
export function normalizeKey(keyName: string): string {
  const cachedKey = keyCache.get(keyName);
  if (cachedKey !== undefined) return cachedKey;
  const key = computeNormalizedKey(keyName);
  // A full cache stops growing, but keeps its entries, because most records of a file have the same keys.
  if (keyCache.size < maxCachedKeys && keyName.length <= maxCachedKeyLength) keyCache.set(keyName, key);
  return key;
}

const keyCache = new Map<string, string>();
const maxCachedKeys = 5000;
const maxCachedKeyLength = 100;

function computeNormalizedKey(keyName: string): string {
  const key = keyName
    .replace(/(?<=\S)\s*\([^()]{0,40}\)\s*$/, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
  return key === '' ? keyName : key;
}

/** A key of an imported record, and its value. */
interface SourceField {
  /** The key in its original spelling. */
  name: string;
  value: unknown;
}

/** Converts a key to camel case, as in the API, e.g. `ad_creation_time` to `adCreationTime`. */
export function toCamelCase(keyName: string): string {
  // Convert capitalized parts to lower case first, because they are ordinary words in keys such as `Spend_USD` and
  // `AD_ID`.
  const lowerCaseName = keyName.includes('_')
    ? keyName.replace(/(?<![^_])(?:[A-Z\d]+(?![^_])|[A-Z])/g, (part) => part.toLowerCase())
    : keyName.replace(/^[A-Z](?=[a-z]+$)/, (letter) => letter.toLowerCase());
  return lowerCaseName.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
}

/**
 * An imported record. Its methods expect keys that are normalized with `normalizeKey`. The record keeps track of its
 * used keys, so that the import can store and report the unused ones.
 */
export class SourceRecord {
  /** True for a row of a table, e.g. of a CSV file. False for a JSON record. */
  readonly isTableRow: boolean;
  /**
   * The prefix of keys in error messages. It is not empty if this record is part of a larger record, e.g. `snapshot.`.
   */
  readonly #keyPrefix: string;
  readonly #fields: SourceField[];
  readonly #fieldByKey = new Map<string, SourceField>();
  /**
   * Fields that `get` does not return, because it returns another field whose key is the same in a different spelling.
   */
  readonly #repeatedFields: [key: string, field: SourceField][] = [];
  readonly #usedFields = new Set<SourceField>();
  #sourceObject: Record<string, unknown> | undefined;

  /** Creates a record from a parsed JSON object. The `toObject` method of the record returns the same object. */
  static fromObject(sourceObject: Record<string, unknown>): SourceRecord {
    const record = new SourceRecord(Object.entries(sourceObject));
    record.#sourceObject = sourceObject;
    return record;
  }

  /**
   * @param ignoredNames the names of columns that `get` and `has` ignore, because another column contains the same
   * field
   */
  constructor(
    fields: Iterable<readonly [string, unknown]>,
    { keyPrefix = '', ignoredNames = new Set<string>(), isTableRow = false } = {},
  ) {
    this.isTableRow = isTableRow;
    this.#keyPrefix = keyPrefix;
    this.#fields = Array.from(fields, ([name, value]) => ({ name, value }));
    for (const field of this.#fields) {
      if (ignoredNames.has(field.name)) continue;
      const key = normalizeKey(field.name);
      // If a key occurs in several spellings, use the first spelling that has a value.
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

  /** Returns a key in its original spelling for error messages, e.g. `snapshot.link_url` for `linkurl`. */
  getSourceName(key: string): string {
    return `${this.#keyPrefix}${this.#fieldByKey.get(key)?.name ?? key}`;
  }

  /**
   * Marks a key whose value has become part of the ad, so that `getUnusedFields` leaves it out. Also marks other
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

  /** Returns the keys and values that are not marked as used, in their original order. */
  getUnusedFields(): SourceField[] {
    return this.#fields.filter((field) => !this.#usedFields.has(field));
  }

  /** Returns all keys of the record in normalized form. */
  keys(): Iterable<string> {
    return this.#fieldByKey.keys();
  }

  /** Returns the record as an object whose keys have their original spelling. */
  toObject(): Record<string, unknown> {
    return this.#sourceObject ?? Object.fromEntries(this.#fields.map(({ name, value }) => [name, value]));
  }
}
