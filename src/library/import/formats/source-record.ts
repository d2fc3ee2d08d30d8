/**
 * `ad_archive_id`, `adArchiveID`, `AD_ARCHIVE_ID` and `Ad Archive ID` are the same key: letters and digits in lower
 * case. What stands in brackets after a name, as in `Headline (ad settings)`, does not count.
 */
export function normalizeKey(name: string): string {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const key = readKey(name);
  // The keys of one source repeat with each record.
  if (keys.size < maxKeys && name.length <= maxKeyLength) keys.set(name, key);
  return key;
}

const keys = new Map<string, string>();
const maxKeys = 5000;
const maxKeyLength = 100;

function readKey(name: string): string {
  const key = name
    .replace(/(?<=\S)\s*\([^()]{0,40}\)\s*$/, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
  return key === '' ? name : key;
}

interface SourceField {
  /** The key as the source spells it. */
  name: string;
  value: unknown;
}

/** `ad_creation_time` as `adCreationTime`, the spelling of the API. */
export function toCamelCase(name: string): string {
  const spelled = /^[A-Z\d]+(?:_[A-Z\d]+)+$/.test(name) ? name.toLowerCase() : name;
  return spelled.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
}

/** A record of a source. Its keys are found in any spelling, and the record knows which of them were used. */
export class SourceRecord {
  /** The path to this record in its source, for messages. */
  readonly #path: string;
  readonly #entries: SourceField[];
  readonly #byKey = new Map<string, SourceField>();
  readonly #used = new Set<SourceField>();
  #source: Record<string, unknown> | undefined;

  static fromObject(value: Record<string, unknown>): SourceRecord {
    const record = new SourceRecord(Object.entries(value));
    record.#source = value;
    return record;
  }

  /** @param unread names of columns that are kept, but not found: another column has their field */
  constructor(toObject: Iterable<readonly [string, unknown]>, { path = '', unread = new Set<string>() } = {}) {
    this.#path = path;
    this.#entries = Array.from(toObject, ([name, value]) => ({ name, value }));
    for (const entry of this.#entries) {
      if (unread.has(entry.name)) continue;
      const key = normalizeKey(entry.name);
      // Of two spellings of one key, the first with a value counts.
      if ((this.#byKey.get(key)?.value ?? null) === null) this.#byKey.set(key, entry);
    }
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  hasAny(keys: Iterable<string>): boolean {
    for (const key of keys) if (this.#byKey.has(key)) return true;
    return false;
  }

  get(key: string): unknown {
    return this.#byKey.get(key)?.value;
  }

  /** The key as the source spells it, with the path to this record. */
  getSourceName(key: string): string {
    return `${this.#path}${this.#byKey.get(key)?.name ?? key}`;
  }

  /** Marks a key as used, so that it does not appear among the unused ones. */
  markUsed(key: string): void {
    const entry = this.#byKey.get(key);
    if (entry) this.#used.add(entry);
  }

  getUnusedFields(): SourceField[] {
    return this.#entries.filter((entry) => !this.#used.has(entry));
  }

  keys(): Iterable<string> {
    return this.#byKey.keys();
  }

  /** The record as it is in the source. */
  toObject(): Record<string, unknown> {
    return this.#source ?? Object.fromEntries(this.#entries.map(({ name, value }) => [name, value]));
  }
}
