import { isObject } from '../../../views/view.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { isEmpty } from './field-reader.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

/**
 * Returns a record in which the entries of some nested objects are keys of the record itself: `{"ad": {"id": 1}}` has the
 * key `ad.id`. Its normalized form is `adid`, as for a column `ad_id` of a table.
 * @param containers the normalized paths of the objects to open, such as `ad` and `adreach`
 */
export function flattenRecord(
  record: SourceRecord,
  containers: ReadonlySet<string>,
  parser: ColumnValueParser,
): SourceRecord {
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
