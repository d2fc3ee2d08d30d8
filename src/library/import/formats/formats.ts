import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { apiFormat } from './api.ts';
import { datasetExportFormat } from './dataset-export.ts';
import type { ImportFormat } from './import-format.ts';
import { metaAdLibraryFormat } from './meta-ad-library.ts';
import { ownAdsFormat } from './own-ads.ts';
import { normalizeKey, SourceRecord } from './source-record.ts';

/** All formats. The first that matches a record counts. */
const formats: readonly ImportFormat[] = [datasetExportFormat, metaAdLibraryFormat, apiFormat, ownAdsFormat];

export function detectRecordFormat(record: SourceRecord): ImportFormat | undefined {
  return formats.find((format) => format.layouts.includes('json') && format.matches(record));
}

/**
 * Whether an object is surely a record. An object with an `id` that is no UUID may also be something that a service
 * wraps around its records.
 */
export function isUnambiguousRecord(value: unknown): boolean {
  if (!isObject(value)) return false;
  const record = new SourceRecord(Object.entries(value));
  const format = detectRecordFormat(record);
  if (format !== apiFormat) return format !== undefined;
  const id = record.get('id');
  return record.has('id') ? typeof id === 'string' && isUuid(id) : typeof record.get('pagename') === 'string';
}

/** Whether a key, found in an object, makes the object a record rather than something around records. */
export const isRecordKey = (name: string): boolean => recordKeys.has(normalizeKey(name));
const recordKeys = new Set([
  'id',
  'pageid',
  'adarchiveid',
  'libraryid',
  'adsnapshoturl',
  'adcreativebodies',
  'snapshot',
]);

export interface TableFormat {
  format: ImportFormat;
  /** The field of each column; undefined for one that is not understood, or whose field an earlier column has. */
  fields: (string | undefined)[];
}

/** The format of a table with these columns. */
export function detectTableFormat(columns: readonly string[]): TableFormat | undefined {
  const header = new SourceRecord(columns.map((name) => [name, undefined]));
  const format = formats.find((one) => one.layouts.includes('table') && one.matches(header));
  return format && { format, fields: fieldsOf(format, columns) };
}

function fieldsOf(format: ImportFormat, columns: readonly string[]): (string | undefined)[] {
  const byKey = new Map<string, string>();
  for (const [field, keys] of Object.entries(format.keysByField))
    for (const key of keys) if (!byKey.has(key)) byKey.set(key, field);
  const names = new Set<string>();
  const fields = new Set<string>();
  return columns.map((name) => {
    const isRepeated = names.has(name) || name === '';
    names.add(name);
    if (isRepeated) return undefined;
    if (format.hasColumnPaths) return fieldOfPath(byKey, parseColumnPath(name));
    const field = byKey.get(normalizeKey(name));
    if (field === undefined || fields.has(field)) return undefined;
    fields.add(field);
    return field;
  });
}

/** The field of a path: that of the longest beginning that is known. */
function fieldOfPath(byKey: ReadonlyMap<string, string>, path: readonly string[]): string | undefined {
  const keys = path.map(normalizeKey);
  for (let length = keys.length; length > 0; length--) {
    const field = byKey.get(keys.slice(0, length).join('.'));
    // A snapshot of which only the beginning is known has a column that nobody understands.
    if (field !== undefined) return field === 'snapshot' && length < keys.length ? undefined : field;
  }
  const flat = keys[0]?.startsWith('snapshot') ? keys[0].slice('snapshot'.length) : undefined;
  return flat === undefined
    ? undefined
    : (byKey.get(`snapshot.${flat}`) ?? byKey.get(`snapshot.${flat.replace(/text$/, '')}`));
}

/**
 * The path that a column of a flattened table stands for: `snapshot/body/text`, `snapshot.body.text`,
 * `snapshot__body__text`, `publisher_platform[0]`.
 */
export function parseColumnPath(column: string): string[] {
  const name = column.trim();
  const parts = /[/.[]/.test(name) ? name.split(/[/.[\]]+/) : name.split(/(?<=\w)__(?=\w)/);
  const path = parts.filter((part) => part !== '');
  return path.length > 0 && path.length <= maxPath ? path : [name];
}

const maxPath = 12;
