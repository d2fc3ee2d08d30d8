import { type ColumnValueParser, isMissingValue, type NumberRange } from '../values/column-value-parser.ts';
import { type FieldParser, UnreliableIdError } from './field-parsers.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey, type SourceRecord, toCamelCase } from './source-record.ts';

/**
 * A rule for reading a field of an ad: the field, its parser, and the keys of imported records that may contain it. The
 * first key whose value can be parsed is used.
 */
export type FieldRule = readonly [field: string, parse: FieldParser, ...keys: string[]];

/**
 * A rule for reading a range, e.g. into the fields `impressionsMin` and `impressionsMax`. It states the common prefix
 * of the two field names, the keys of imported records that may contain the range, and whether the bounds are whole
 * numbers.
 */
export type RangeRule = readonly [field: string, keys: readonly string[], isCount: boolean];

/** Suffixes of column names. Some tables have two columns for a range, e.g. `spend_lower` and `spend_upper`. */
const lowerBoundSuffixes = ['lower', 'lowerbound', 'low', 'min', 'from'];
const upperBoundSuffixes = ['upper', 'upperbound', 'high', 'max', 'to'];
const appendSuffixes = (keys: readonly string[], suffixes: readonly string[]) =>
  keys.flatMap((key) => suffixes.map((suffix) => `${key}${suffix}`));

/**
 * Returns, for each field in the rules, the keys of imported records that may contain it. Each import format puts the
 * result into its `keysByField`.
 */
export const listKeysByField = (
  fieldRules: readonly FieldRule[],
  rangeRules: readonly RangeRule[],
): Record<string, readonly string[]> => ({
  ...Object.fromEntries(fieldRules.map(([field, , ...keys]) => [field, keys])),
  ...Object.fromEntries(
    rangeRules.flatMap(([field, keys]) => [
      [`${field}Min`, [...keys, ...appendSuffixes(keys, lowerBoundSuffixes)]],
      [`${field}Max`, appendSuffixes(keys, upperBoundSuffixes)],
    ]),
  ),
});

/**
 * Returns keys that have no field in the API, in normalized form, by the name under which the import stores their
 * values. This name is the key in camel case, e.g. `pageLikeCount` for `page_like_count`.
 */
export const listKeysByCamelCaseName = (spaceSeparatedKeys: string): Record<string, readonly string[]> =>
  Object.fromEntries(
    spaceSeparatedKeys
      .trim()
      .split(/\s+/)
      .map((keyName) => [toCamelCase(keyName), [normalizeKey(keyName)]]),
  );

/** Reads the fields of an ad from an imported record, and collects them in the `ad` property. */
export class FieldReader {
  readonly ad: JsonObject = {};
  readonly #parser: ColumnValueParser;
  readonly #resolvePath: (path: string) => [record: SourceRecord, key: string];

  /**
   * @param resolvePath finds the object that contains the key of a rule, e.g. the nested object `snapshot` for
   * `snapshot.title`; returns this object and the key in it
   */
  constructor(parser: ColumnValueParser, resolvePath: (path: string) => [record: SourceRecord, key: string]) {
    this.#parser = parser;
    this.#resolvePath = resolvePath;
  }

  /**
   * Returns the first value that can be parsed, and marks its key as used. Reports the values that cannot be parsed.
   * @param paths the keys to try, in this order
   * @param field the field of the ad that gets the value, for the report
   */
  parseFirstValue(paths: readonly string[], parseField: FieldParser, field?: string): unknown {
    for (const path of paths) {
      const [record, key] = this.#resolvePath(path);
      const sourceValue = record.get(key);
      if (isMissingValue(sourceValue)) continue;
      try {
        const parsedValue = parseField(sourceValue, record.getSourceName(key), this.#parser);
        if (parsedValue === undefined) continue;
        record.markUsed(key);
        if (field !== undefined) this.#parser.addFieldSource(field, record.getSourceName(key));
        this.#markEqualValues(paths, parseField, parsedValue);
        return parsedValue;
      } catch (error) {
        if (error instanceof UnreliableIdError) throw error;
        this.#parser.addValueError(error);
      }
    }
    return undefined;
  }

  /**
   * Marks other keys as used if they have the same value as the key that was read. Keys with a different value stay
   * unused, so that the import stores their values under their own names.
   */
  #markEqualValues(paths: readonly string[], parseField: FieldParser, usedValue: unknown): void {
    // The first pass of an import only learns how each column writes dates and numbers. The additional keys must not
    // influence what the pass learns.
    if (!this.#parser.areNotationsDecided) return;
    for (const path of paths) {
      const [record, key] = this.#resolvePath(path);
      const otherValue = record.get(key);
      if (isMissingValue(otherValue)) continue;
      try {
        const parsedValue = parseField(otherValue, record.getSourceName(key), this.#parser);
        if (JSON.stringify(parsedValue) === JSON.stringify(usedValue)) record.markUsed(key);
      } catch {
        // Ignore the error, because a value that cannot be parsed differs from the used value.
      }
    }
  }

  /** Sets a field of the ad. Ignores an undefined value. */
  setField(fieldName: string, fieldValue: unknown): void {
    if (fieldValue !== undefined) this.ad[fieldName] = fieldValue;
  }

  readFields(fieldRules: readonly FieldRule[]): void {
    for (const [field, parse, ...keys] of fieldRules) this.setField(field, this.parseFirstValue(keys, parse, field));
  }

  readRanges(rangeRules: readonly RangeRule[]): void {
    for (const [field, keys, isCount] of rangeRules) {
      const parseBound = (suffixes: readonly string[], boundField: string) =>
        this.parseFirstValue(
          appendSuffixes(keys, suffixes),
          (value, keyName) => this.#parser.parseNumber(keyName, value, { isCount }),
          boundField,
        ) as number | undefined;
      const parseWholeRange: FieldParser = (value, keyName) => {
        const range = this.#parser.parseRange(keyName, value, { isCount });
        if (range !== undefined) checkRange(keyName, range);
        return range;
      };
      const rangeInOneColumn = this.parseFirstValue(keys, parseWholeRange, `${field}Min`) as NumberRange | undefined;
      const range = rangeInOneColumn ?? {
        min: parseBound(lowerBoundSuffixes, `${field}Min`),
        max: parseBound(upperBoundSuffixes, `${field}Max`),
      };
      try {
        checkRange(keys[0] ?? field, range);
      } catch (error) {
        this.#parser.addValueError(error);
        continue;
      }
      this.setField(`${field}Min`, range.min);
      this.setField(`${field}Max`, range.max);
    }
  }
}

/**
 * Checks that the lower bound of a range is not above its upper bound. Either bound of such a range may be wrong, so
 * the caller uses neither.
 * @throws Error if the lower bound is above the upper bound
 */
export function checkRange(rangeName: string, { min, max }: NumberRange): void {
  if (min !== undefined && max !== undefined && min > max)
    throw new Error(`${rangeName}: the lower bound ${min} is larger than the upper bound ${max}`);
}

/** Returns true if a value is null, an empty text, an empty list or an empty object. */
export const isEmptyValue = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
