import { isObject } from '../../views/view.ts';
import { isEmptyValue } from './formats/field-reader.ts';
import { FieldFinder } from './formats/formats.ts';
import type { ImportFormat } from './formats/import-format.ts';
import { normalizeKey } from './formats/source-record.ts';

/**
 * The maximum nesting depth of the examined keys, and the maximum number of remembered keys. The limits save time and
 * memory.
 */
const maxKeyDepth = 4;
const maxRememberedKeys = 2000;

/**
 * Remembers the keys of the JSON records from which the fields of an ad were read. The import report lists these fields
 * and keys.
 */
export class UsedKeyTracker {
  readonly #finderByFormat = new Map<ImportFormat, FieldFinder>();
  readonly #keyByField = new Map<string, string>();
  /**
   * All keys that were already looked up. Most records of a source have the same keys, so most lookups can be skipped.
   */
  readonly #lookedUpKeys = new Set<string>();

  /** Remembers the keys from which the fields of a stored record were read. */
  rememberFieldSources(fieldSources: readonly (readonly [field: string, key: string])[]): void {
    for (const [field, key] of fieldSources)
      if (!this.#keyByField.has(field) && this.#keyByField.size < maxRememberedKeys) this.#keyByField.set(field, key);
  }

  get hasFields(): boolean {
    return this.#keyByField.size > 0;
  }

  /**
   * Returns the first field that was read from the column with this path, or undefined. Also finds a field that was
   * read from an object around the column (e.g. `snapshot.body` for `snapshot/body/text` and `snapshot_body_text`), or
   * from a key inside the column.
   */
  findField(columnPath: readonly string[]): string | undefined {
    const normalizedPaths = columnPath.map((_, index) => normalizeKey(columnPath.slice(0, index + 1).join('.')));
    const snapshotColumn = /^snapshot./i.test(columnPath[0] ?? '') ? normalizedPaths[0] : undefined;
    for (const [field, key] of this.#keyByField) {
      const normalizedKey = normalizeKey(key);
      if (normalizedPaths.includes(normalizedKey)) return field;
      if (columnPath.length === 1 && key.startsWith(`${columnPath[0]}.`)) return field;
      if (normalizedKey !== 'snapshot' && snapshotColumn?.startsWith(normalizedKey)) return field;
    }
    return undefined;
  }

  /**
   * Detects which keys of a stored record became fields. Used for formats that do not report the keys of their fields.
   */
  observeRecord(format: ImportFormat, record: Record<string, unknown>): void {
    const fieldFinder = this.#finderByFormat.get(format) ?? new FieldFinder(format);
    this.#finderByFormat.set(format, fieldFinder);
    this.#observeObject(fieldFinder, record, []);
  }

  #observeObject(finder: FieldFinder, object: Record<string, unknown>, parentPath: readonly string[]): void {
    for (const [name, value] of Object.entries(object)) {
      if (isEmptyValue(value)) continue;
      const path = [...parentPath, name];
      const key = path.join('.');
      if (!this.#lookedUpKeys.has(key)) {
        if (this.#lookedUpKeys.size >= maxRememberedKeys) return;
        this.#lookedUpKeys.add(key);
        const match = finder.findField(path);
        // `snapshot` is an object around other fields, so the report should list the keys inside it instead of
        // `snapshot`.
        const isContainer = match?.field === 'snapshot' && isObject(value);
        if (match && !isContainer && !this.#keyByField.has(match.field))
          this.#keyByField.set(match.field, path.slice(0, match.prefixLength).join('.'));
      }
      if (isObject(value) && !Array.isArray(value) && finder.hasPaths && path.length < maxKeyDepth)
        this.#observeObject(finder, value, path);
    }
  }

  /** Formats the used keys for the report, e.g. `body ← snapshot.body.text`. Returns undefined if no keys were used. */
  formatUsedKeys(): string | undefined {
    const fieldSources = Array.from(this.#keyByField, ([field, key]) => `${field} ← ${key}`);
    return fieldSources.length > 0 ? fieldSources.join(', ') : undefined;
  }
}
