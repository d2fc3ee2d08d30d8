import { type ColumnValueParser, isMissing, type NumberRange } from '../values/column-value-parser.ts';
import { type FieldParser, RoundedIdError } from './field-parsers.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey, type SourceRecord, toCamelCase } from './source-record.ts';

/**
 * A field of an ad, its parser, and the source keys for the field. The first key with a value that can be parsed is
 * used.
 */
export type FieldRule = readonly [field: string, parse: FieldParser, ...keys: string[]];

/** A range of an ad: the prefix of its two fields, the source keys, and whether the range contains counts. */
export type RangeRule = readonly [field: string, keys: readonly string[], isCount: boolean];

/** Suffixes of column names in tables that write a range as two columns, e.g. `spend_lower` and `spend_upper`. */
const lowerBoundSuffixes = ['lower', 'lowerbound', 'low', 'min', 'from'];
const upperBoundSuffixes = ['upper', 'upperbound', 'high', 'max', 'to'];
const addSuffixes = (keys: readonly string[], suffixes: readonly string[]) =>
  keys.flatMap((key) => suffixes.map((suffix) => `${key}${suffix}`));

/** Returns the source keys of each field in the rules, for the list of keys that a format knows. */
export const listKeysByField = (
  fields: readonly FieldRule[],
  ranges: readonly RangeRule[],
): Record<string, readonly string[]> => ({
  ...Object.fromEntries(fields.map(([field, , ...keys]) => [field, keys])),
  ...Object.fromEntries(
    ranges.flatMap(([field, keys]) => [
      [`${field}Min`, [...keys, ...addSuffixes(keys, lowerBoundSuffixes)]],
      [`${field}Max`, addSuffixes(keys, upperBoundSuffixes)],
    ]),
  ),
});

/** Returns field names for keys that have no field in the API. They are stored under their own names in camel case. */
export const listCamelCaseFields = (names: string): Record<string, readonly string[]> =>
  Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [toCamelCase(name), [normalizeKey(name)]]),
  );

/** Reads the fields of an ad from one record, and collects them in `ad`. */
export class FieldReader {
  readonly ad: JsonObject = {};
  readonly #parser: ColumnValueParser;
  readonly #resolvePath: (path: string) => [record: SourceRecord, key: string];

  /** @param resolvePath returns the record and the key that a key in a rule refers to */
  constructor(parser: ColumnValueParser, resolvePath: (path: string) => [record: SourceRecord, key: string]) {
    this.#parser = parser;
    this.#resolvePath = resolvePath;
  }

  /** Returns the value of the first key that can be parsed. Values that cannot be parsed are reported. */
  parseFirstValue(paths: readonly string[], parse: FieldParser): unknown {
    for (const path of paths) {
      const [record, key] = this.#resolvePath(path);
      const sourceValue = record.get(key);
      if (isMissing(sourceValue)) continue;
      try {
        const parsedValue = parse(sourceValue, record.getSourceName(key), this.#parser);
        if (parsedValue === undefined) continue;
        record.markUsed(key);
        this.#markEqualValues(paths, parse, parsedValue);
        return parsedValue;
      } catch (error) {
        if (error instanceof RoundedIdError) throw error;
        this.#parser.addValueError(error);
      }
    }
    return undefined;
  }

  /**
   * Marks the keys with the same value as used. Keys with another value stay unused, so that they are stored under
   * their own names.
   */
  #markEqualValues(paths: readonly string[], parse: FieldParser, usedValue: unknown): void {
    // In the first pass, the import stores nothing. Parsing these keys then would let them influence how dates and
    // numbers are read.
    if (!this.#parser.areNotationsDecided) return;
    for (const path of paths) {
      const [record, key] = this.#resolvePath(path);
      const otherValue = record.get(key);
      if (isMissing(otherValue)) continue;
      try {
        const parsedValue = parse(otherValue, record.getSourceName(key), this.#parser);
        if (JSON.stringify(parsedValue) === JSON.stringify(usedValue)) record.markUsed(key);
      } catch {
        // A value that cannot be parsed counts as a different value.
      }
    }
  }

  /** Sets a field of the ad. Does nothing if the value is undefined. */
  setField(field: string, value: unknown): void {
    if (value !== undefined) this.ad[field] = value;
  }

  readFields(fields: readonly FieldRule[]): void {
    for (const [field, parse, ...keys] of fields) this.setField(field, this.parseFirstValue(keys, parse));
  }

  readRanges(ranges: readonly RangeRule[]): void {
    for (const [field, keys, isCount] of ranges) {
      const parseBound = (suffixes: readonly string[]) =>
        this.parseFirstValue(addSuffixes(keys, suffixes), (value, keyName) =>
          this.#parser.parseNumber(keyName, value, { isCount }),
        ) as number | undefined;
      const rangeInOneColumn = this.parseFirstValue(keys, (value, keyName) => {
        const range = this.#parser.parseRange(keyName, value, { isCount });
        if (range !== undefined) checkRange(keyName, range);
        return range;
      }) as NumberRange | undefined;
      const range = rangeInOneColumn ?? { min: parseBound(lowerBoundSuffixes), max: parseBound(upperBoundSuffixes) };
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
 * Checks that a range is not reversed. If it is, either bound may be wrong, so neither can be used.
 * @throws Error if the lower bound is above the upper bound
 */
function checkRange(rangeName: string, { min, max }: NumberRange): void {
  if (min !== undefined && max !== undefined && min > max)
    throw new Error(`${rangeName}: the lower bound ${min} is larger than the upper bound ${max}`);
}

/** Returns true if a value is null, an empty text, an empty list or an empty object. */
export const isEmptyValue = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
