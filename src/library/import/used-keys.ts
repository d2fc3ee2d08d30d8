import { isObject } from '../../views/view.ts';
import { isEmptyValue } from './formats/field-reader.ts';
import { FieldFinder } from './formats/formats.ts';
import type { ImportFormat } from './formats/import-format.ts';

/**
 * The maximum nesting depth of keys to look at, and the maximum number of different keys to remember. They limit time
 * and memory.
 */
const maxDepth = 4;
const maxKeys = 2000;

/** Remembers which keys of JSON records become which fields of an ad. The report of the import lists these pairs. */
export class UsedKeys {
  readonly #finderByFormat = new Map<ImportFormat, FieldFinder>();
  readonly #keyByField = new Map<string, string>();
  /** All keys that were already looked up. Most records of a source have the same keys, so most lookups are skipped. */
  readonly #knownKeys = new Set<string>();

  /** Remembers which keys of a stored record became fields of the ad. */
  observeRecord(format: ImportFormat, record: Record<string, unknown>): void {
    const finder = this.#finderByFormat.get(format) ?? new FieldFinder(format);
    this.#finderByFormat.set(format, finder);
    this.#observeObject(finder, record, []);
  }

  #observeObject(finder: FieldFinder, object: Record<string, unknown>, parentPath: readonly string[]): void {
    for (const [name, value] of Object.entries(object)) {
      if (isEmptyValue(value)) continue;
      const path = [...parentPath, name];
      const key = path.join('.');
      if (!this.#knownKeys.has(key)) {
        if (this.#knownKeys.size >= maxKeys) return;
        this.#knownKeys.add(key);
        const match = finder.findField(path);
        // `snapshot` is only an object around other fields, so list the keys in it instead of `snapshot` itself.
        const isContainer = match?.field === 'snapshot' && isObject(value);
        if (match && !isContainer && !this.#keyByField.has(match.field))
          this.#keyByField.set(match.field, path.slice(0, match.length).join('.'));
      }
      if (isObject(value) && !Array.isArray(value) && finder.hasPaths && path.length < maxDepth)
        this.#observeObject(finder, value, path);
    }
  }

  /** Returns the used keys in the form `body ← snapshot.body.text`. Returns undefined if there are none. */
  describe(): string | undefined {
    const fieldSources = Array.from(this.#keyByField, ([field, key]) => `${field} ← ${key}`);
    return fieldSources.length > 0 ? fieldSources.join(', ') : undefined;
  }
}
