import { isObject } from '../../../views/view.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { FieldReader, type FieldRule, isEmptyValue, type RangeRule } from './field-reader.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

/**
 * Flattens the nested objects of a record that are listed in `flattenedPaths`, e.g. `{"ad": {"id": 1}}` to `{"ad.id":
 * 1}`. `ad.id` is then normalized to `adid`, as is the `ad_id` column of a table, so that one rule reads both.
 * @param flattenedPaths the normalized paths of the objects to flatten, e.g. `ad` and `adreach`
 */
function flattenRecord(
  record: SourceRecord,
  flattenedPaths: ReadonlySet<string>,
  parser: ColumnValueParser,
): SourceRecord {
  const fields: [string, unknown][] = [];
  const addFields = (entries: Iterable<[string, unknown]>, path: string) => {
    for (const [name, value] of entries) {
      const fieldPath = `${path}${name}`;
      const nestedObject = flattenedPaths.has(normalizeKey(fieldPath)) ? parser.parseStructure(value) : undefined;
      if (isObject(nestedObject)) addFields(Object.entries(nestedObject), `${fieldPath}.`);
      else fields.push([fieldPath, value]);
    }
  };
  addFields(Object.entries(record.toObject()), '');
  return new SourceRecord(fields);
}

/**
 * The rules for reading a format with nested records: the paths of the objects to flatten, the rules for fields, and the
 * rules for ranges of numbers such as `100–199`.
 */
export interface FlatRecordRules {
  flattenedPaths: ReadonlySet<string>;
  fieldRules: readonly FieldRule[];
  rangeRules: readonly RangeRule[];
}

/** Flattens a record, and reads the fields of its ad according to the rules. */
export function readFlatRecord(
  sourceRecord: SourceRecord,
  { flattenedPaths, fieldRules, rangeRules }: FlatRecordRules,
  parser: ColumnValueParser,
): { record: SourceRecord; reader: FieldReader; ad: JsonObject } {
  const record = flattenRecord(sourceRecord, flattenedPaths, parser);
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fieldRules);
  reader.readRanges(rangeRules);
  return { record, reader, ad: reader.ad };
}

/**
 * Collects the values that no rule has used, under their own keys in camel case, so that the import loses no data.
 * Empty values are omitted. The import report lists unknown keys, and keys whose field another key already has.
 * @param keysWithoutField the known keys that have no field in the API and are stored under their own names
 * @param unnamedContainers the objects whose names are removed from field names, e.g. `ad.status_statement` becomes
 *   `statusStatement`
 */
export function collectOtherFields(
  record: SourceRecord,
  {
    ad,
    knownKeys,
    keysWithoutField,
    unnamedContainers,
  }: {
    ad: JsonObject;
    knownKeys: ReadonlySet<string>;
    keysWithoutField: ReadonlySet<string>;
    unnamedContainers: ReadonlySet<string>;
  },
  parser: ColumnValueParser,
): JsonObject {
  const otherFields: [string, unknown][] = [];
  for (const { name, value } of record.getUnusedFields()) {
    if (isEmptyValue(value) || name === '') continue;
    const key = normalizeKey(name);
    const path = name.split('.').filter((part) => !unnamedContainers.has(normalizeKey(part)));
    const field = toCamelCase(path.join('_')) || name;
    const isStored = !Object.hasOwn(ad, field) && field !== 'id';
    if (isStored) otherFields.push([field, parser.parseStructure(value) ?? value]);
    if (keysWithoutField.has(key) && isStored) parser.addFieldSource(field, name);
    else if (knownKeys.has(key)) parser.addAlternativeKey(name, isStored);
    else parser.unusedKeys.push(name);
  }
  return Object.fromEntries(otherFields);
}
