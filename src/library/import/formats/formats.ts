import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { apiFormat } from './api.ts';
import { datasetExportFormat } from './dataset-export.ts';
import { googleAdsTransparencyFormat } from './google-ads-transparency.ts';
import type { ImportFormat } from './import-format.ts';
import { linkedInAdLibraryFormat } from './linkedin-ad-library.ts';
import { metaAdLibraryFormat } from './meta-ad-library.ts';
import { metaAdsManagerFormat } from './meta-ads-results.ts';
import { metaAdvertiserReportFormat } from './meta-advertiser-report.ts';
import { ownAdsFormat } from './own-ads.ts';
import { radlibrarySharesFormat } from './radlibrary-shares.ts';
import { normalizeKey, SourceRecord } from './source-record.ts';
import { tikTokAdLibraryFormat } from './tiktok-ad-library.ts';

/** All import formats. A record is read with the first format that matches. */
export const importFormats: readonly ImportFormat[] = [
  datasetExportFormat,
  googleAdsTransparencyFormat,
  tikTokAdLibraryFormat,
  linkedInAdLibraryFormat,
  metaAdvertiserReportFormat,
  radlibrarySharesFormat,
  metaAdsManagerFormat,
  metaAdLibraryFormat,
  apiFormat,
  ownAdsFormat,
];

/** Detects the format of records and tables, or uses the format that the user chose. */
export class FormatDetector {
  readonly #formats: readonly ImportFormat[];
  readonly #namedFormat: ImportFormat | undefined;

  /**
   * @param formatName the format of all records; without it, the format of each record is detected
   * @throws Error that lists all formats if there is none with this name
   */
  constructor(formatName?: string) {
    this.#namedFormat = importFormats.find(({ name }) => name === formatName);
    if (formatName !== undefined && !this.#namedFormat)
      throw new Error(
        `${quoteValue(formatName)} is not a format; the formats are ${importFormats.map(({ name }) => name).join(', ')}`,
      );
    this.#formats = this.#namedFormat ? [this.#namedFormat] : importFormats;
  }

  /** Returns the format of a JSON record. Returns undefined if no format matches. */
  detectRecordFormat(record: SourceRecord): ImportFormat | undefined {
    return this.#namedFormat ?? this.#findMatchingFormat(record);
  }

  #findMatchingFormat(record: SourceRecord): ImportFormat | undefined {
    return this.#formats.find((format) => format.layouts.includes('json') && format.matches(record));
  }

  /**
   * Returns true if a value can only be a record. An object whose `id` is not a UUID may also be a wrapper that a
   * service puts around its records.
   */
  isUnambiguousRecord(value: unknown): boolean {
    if (!isObject(value)) return false;
    const record = new SourceRecord(Object.entries(value));
    const format = this.#findMatchingFormat(record);
    if (format !== apiFormat) return format !== undefined;
    const id = record.get('id');
    return record.has('id') ? typeof id === 'string' && isUuid(id) : typeof record.get('pagename') === 'string';
  }

  /** Returns the format of a table with these columns. Returns undefined if no format matches. */
  detectTableFormat(columns: readonly string[]): TableFormat | undefined {
    const header = new SourceRecord(columns.map((name) => [name, undefined]));
    const format =
      this.#namedFormat ??
      this.#formats.find((candidate) => candidate.layouts.includes('table') && candidate.matches(header));
    return format && { format, fields: mapColumnsToFields(format, columns) };
  }
}

/** Returns true if an object with this key must be a record and cannot be a wrapper around records. */
export const isRecordKey = (name: string): boolean => recordKeys.has(normalizeKey(name));
const recordKeys = new Set([
  'id',
  'pageid',
  'adarchiveid',
  'adlibid',
  'libraryid',
  'adsnapshoturl',
  'adcreativebodies',
  'snapshot',
]);

/** The format of a table, and the fields of its columns. */
export interface TableFormat {
  format: ImportFormat;
  /**
   * The field of each column. Undefined if the column is not recognized, or if an earlier column already has this
   * field.
   */
  fields: (string | undefined)[];
}

function mapColumnsToFields(format: ImportFormat, columns: readonly string[]): (string | undefined)[] {
  const fieldByKey = new Map<string, string>();
  for (const [field, keys] of Object.entries(format.keysByField))
    for (const key of keys) if (!fieldByKey.has(key)) fieldByKey.set(key, field);
  const earlierNames = new Set<string>();
  const earlierFields = new Set<string>();
  return columns.map((name) => {
    const isRepeatedOrEmpty = earlierNames.has(name) || name === '';
    earlierNames.add(name);
    if (isRepeatedOrEmpty) return undefined;
    if (format.hasColumnPaths) return findFieldOfPath(fieldByKey, parseColumnPath(name));
    const field = fieldByKey.get(normalizeKey(name));
    if (field === undefined || earlierFields.has(field)) return undefined;
    earlierFields.add(field);
    return field;
  });
}

/** Returns the field for the longest known prefix of a path. */
function findFieldOfPath(fieldByKey: ReadonlyMap<string, string>, path: readonly string[]): string | undefined {
  const keys = path.map(normalizeKey);
  for (let length = keys.length; length > 0; length--) {
    const prefix = keys.slice(0, length);
    const field = fieldByKey.get(prefix.join('.')) ?? fieldByKey.get(prefix.join(''));
    // If only `snapshot` itself is known, the column contains an unknown part of the snapshot.
    if (field !== undefined) return field === 'snapshot' && length < keys.length ? undefined : field;
  }
  const snapshotKey = keys[0]?.startsWith('snapshot') ? keys[0].slice('snapshot'.length) : undefined;
  return snapshotKey === undefined
    ? undefined
    : (fieldByKey.get(`snapshot.${snapshotKey}`) ?? fieldByKey.get(`snapshot.${snapshotKey.replace(/text$/, '')}`));
}

/**
 * Splits a column name of a flattened table into a path. Depending on the program, the same path is written as
 * `snapshot/body/text`, `snapshot.body.text` or `snapshot__body__text`. List items are written as
 * `publisher_platform[0]`.
 */
export function parseColumnPath(column: string): string[] {
  const name = column.trim();
  const parts = /[/.[]/.test(name) ? name.split(/[/.[\]]+/) : name.split(/(?<=\w)__(?=\w)/);
  const path = parts.filter((part) => part !== '');
  return path.length > 0 && path.length <= maxPathLength ? path : [name];
}

const maxPathLength = 12;
