import { isObject } from '../../../views/view.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { FieldReader, type FieldRule, isEmpty, type RangeRule } from './field-reader.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

/**
 * Returns a record in which the entries of some nested objects are keys of the record itself. For example,
 * `{"ad": {"id": 1}}` becomes `{"ad.id": 1}`. The normalized form of this key is `adid`, which is also the normalized
 * form of a table's column `ad_id`, so one rule reads both.
 * @param containers the normalized paths of the objects to open, such as `ad` and `adreach`
 */
function flattenRecord(record: SourceRecord, containers: ReadonlySet<string>, parser: ColumnValueParser): SourceRecord {
  const fields: [string, unknown][] = [];
  const addFields = (entries: Iterable<[string, unknown]>, path: string) => {
    for (const [name, value] of entries) {
      const fieldPath = `${path}${name}`;
      const object = containers.has(normalizeKey(fieldPath)) ? parser.parseStructure(value) : undefined;
      if (isObject(object)) addFields(Object.entries(object), `${fieldPath}.`);
      else fields.push([fieldPath, value]);
    }
  };
  addFields(Object.entries(record.toObject()), '');
  return new SourceRecord(fields);
}

/** How a format with nested records is read: the objects to open, and the rules for fields and ranges. */
export interface FlatRecordRules {
  containers: ReadonlySet<string>;
  fields: readonly FieldRule[];
  ranges: readonly RangeRule[];
}

/** Flattens a record and reads the fields of its ad by rules. `reader.ad` has these fields. */
export function readFlatRecord(
  source: SourceRecord,
  { containers, fields, ranges }: FlatRecordRules,
  parser: ColumnValueParser,
): { record: SourceRecord; reader: FieldReader; ad: JsonObject } {
  const record = flattenRecord(source, containers, parser);
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fields);
  reader.readRanges(ranges);
  return { record, reader, ad: reader.ad };
}

/**
 * Collects the fields that no rule used and that have a value, under their own names in camel case. Keys that are not
 * known are reported.
 * @param unnamedContainers the objects whose names the fields do not keep: `ad.status_statement` becomes `statusStatement`
 */
export function collectOtherFields(
  record: SourceRecord,
  {
    ad,
    knownKeys,
    unnamedContainers,
  }: { ad: JsonObject; knownKeys: ReadonlySet<string>; unnamedContainers: ReadonlySet<string> },
  parser: ColumnValueParser,
): JsonObject {
  const otherFields: [string, unknown][] = [];
  for (const { name, value } of record.getUnusedFields()) {
    if (isEmpty(value)) continue;
    if (!knownKeys.has(normalizeKey(name))) parser.unusedKeys.push(name);
    const path = name.split('.').filter((part) => !unnamedContainers.has(normalizeKey(part)));
    const field = toCamelCase(path.join('_')) || name;
    if (!Object.hasOwn(ad, field) && field !== 'id') otherFields.push([field, parser.parseStructure(value) ?? value]);
  }
  return Object.fromEntries(otherFields);
}
