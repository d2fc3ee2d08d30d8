import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { apiFormat } from './api.ts';
import { datasetExportFormat } from './dataset-export.ts';
import { googleAdsTransparencyFormat } from './google-ads-transparency.ts';
import type { AdLibraryName, ImportFormat } from './import-format.ts';
import { linkedInAdLibraryFormat } from './linkedin-ad-library.ts';
import { metaAdLibraryFormat } from './meta-ad-library.ts';
import { metaAdsManagerFormat } from './meta-ads-results.ts';
import { metaAdvertiserReportFormat } from './meta-advertiser-report.ts';
import { ownAdsFormat } from './own-ads.ts';
import { radlibrarySharesFormat } from './radlibrary-shares.ts';
import { normalizeKey, SourceRecord } from './source-record.ts';
import { tikTokAdLibraryFormat } from './tiktok-ad-library.ts';

/** All import formats, in the order in which they are tried. A record is read in the first format that matches it. */
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

const adLibraryNames: readonly unknown[] = ['meta', 'google', 'tiktok', 'linkedin', 'own'] satisfies AdLibraryName[];

/**
 * Returns true for an ad that a local library returned. Such an ad is in the format of the API, but it also has keys of
 * the ad library from which it was imported, such as `adArchiveId`.
 */
const isLibraryRecord = (record: SourceRecord): boolean =>
  isUuid(String(record.get('id'))) &&
  record.getSourceName('adlibrary') === 'adLibrary' &&
  adLibraryNames.includes(record.get('adlibrary'));

/** Detects the format of imported records and tables, unless the user has named a format. */
export class FormatDetector {
  readonly #formats: readonly ImportFormat[];
  readonly #requestedFormat: ImportFormat | undefined;

  /**
   * @param formatName the format of all records; if omitted, the format of each record is detected
   * @throws Error that lists all formats if no format has this name
   */
  constructor(formatName?: string) {
    this.#requestedFormat = importFormats.find(({ name }) => name === formatName);
    if (formatName !== undefined && !this.#requestedFormat)
      throw new Error(
        `${quoteValue(formatName)} is not a format; the formats are ${importFormats.map(({ name }) => name).join(', ')}`,
      );
    this.#formats = this.#requestedFormat ? [this.#requestedFormat] : importFormats;
  }

  /**
   * Returns the format that the user named, or else the first format that matches the JSON record. Returns undefined if
   * no format matches.
   */
  detectRecordFormat(record: SourceRecord): ImportFormat | undefined {
    return this.#requestedFormat ?? this.#findMatchingFormat(record);
  }

  #findMatchingFormat(record: SourceRecord): ImportFormat | undefined {
    const matchingFormat = this.#formats.find((format) => format.layouts.includes('json') && format.matches(record));
    const isApiRecord =
      matchingFormat !== datasetExportFormat && this.#formats.includes(apiFormat) && isLibraryRecord(record);
    return isApiRecord ? apiFormat : matchingFormat;
  }

  /**
   * Returns true if a value is certainly a record (an ad or an advertiser page). An object whose `id` is not a UUID is
   * ambiguous, because a service may have wrapped its records in such an object.
   */
  isUnambiguousRecord(value: unknown): boolean {
    if (!isObject(value)) return false;
    const record = new SourceRecord(Object.entries(value));
    const format = this.#findMatchingFormat(record);
    if (format !== apiFormat) return format !== undefined;
    const id = record.get('id');
    return record.has('id') ? typeof id === 'string' && isUuid(id) : typeof record.get('pagename') === 'string';
  }

  /** Returns the format of a table with the given columns. Returns undefined if no format matches. */
  detectTableFormat(columnNames: readonly string[]): TableFormat | undefined {
    const headerRecord = new SourceRecord(columnNames.map((name) => [name, undefined]));
    const format =
      this.#requestedFormat ??
      this.#formats.find((candidate) => candidate.layouts.includes('table') && candidate.matches(headerRecord));
    return format && { format, fields: mapColumnsToFields(format, columnNames) };
  }
}

/**
 * Returns true for a key that only ads and advertiser pages have. An object that wraps a list of ads never has such a
 * key.
 */
export const isRecordKey = (keyName: string): boolean => recordKeys.has(normalizeKey(keyName));
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

/** The format of a table, with the ad field that each of its columns contains. */
export interface TableFormat {
  format: ImportFormat;
  /**
   * The ad field that each column contains, in the order of the columns. Undefined for an unknown column, or if an
   * earlier column already contains the field.
   */
  fields: (string | undefined)[];
}

function mapColumnsToFields(format: ImportFormat, columns: readonly string[]): (string | undefined)[] {
  const finder = new FieldFinder(format);
  const earlierNames = new Set<string>();
  const earlierFields = new Set<string>();
  return columns.map((name) => {
    const isRepeatedOrEmpty = earlierNames.has(name) || name === '';
    earlierNames.add(name);
    if (isRepeatedOrEmpty) return undefined;
    const { field } = finder.findField(format.hasColumnPaths ? parseColumnPath(name) : [name]) ?? {};
    if (format.hasColumnPaths) return field;
    if (field === undefined || earlierFields.has(field)) return undefined;
    earlierFields.add(field);
    return field;
  });
}

/** Finds the ad field that a key or column of an import format contains. */
export class FieldFinder {
  /** True for a format with nested objects, in which a key may be a path such as `snapshot.body.text`. */
  readonly hasPaths: boolean;
  readonly #fieldByKey = new Map<string, string>();

  constructor({ keysByField, hasColumnPaths = false }: ImportFormat) {
    this.hasPaths = hasColumnPaths;
    for (const [field, keys] of Object.entries(keysByField))
      for (const key of keys) if (!this.#fieldByKey.has(key)) this.#fieldByKey.set(key, field);
  }

  /** Returns the ad field for the longest known prefix of a path, and the length of that prefix. */
  findField(path: readonly string[]): { field: string; prefixLength: number } | undefined {
    const keys = path.map(normalizeKey);
    for (let prefixLength = keys.length; prefixLength > 0; prefixLength--) {
      const prefix = keys.slice(0, prefixLength);
      const field = this.#fieldByKey.get(prefix.join('.')) ?? this.#fieldByKey.get(prefix.join(''));
      if (field === undefined) continue;
      // If only the first key of the path, `snapshot`, is known, the path leads to an unknown key in the snapshot. Such
      // a key has no field.
      return field === 'snapshot' && prefixLength < keys.length ? undefined : { field, prefixLength };
    }
    const snapshotKey = keys[0]?.startsWith('snapshot') ? keys[0].slice('snapshot'.length) : undefined;
    if (snapshotKey === undefined) return undefined;
    const field =
      this.#fieldByKey.get(`snapshot.${snapshotKey}`) ??
      this.#fieldByKey.get(`snapshot.${snapshotKey.replace(/text$/, '')}`);
    return field === undefined ? undefined : { field, prefixLength: 1 };
  }
}

/**
 * Splits a column name of a flattened table into a path. Depending on the program that wrote the table, the same path
 * is `snapshot/body/text`, `snapshot.body.text` or `snapshot__body__text`. A list item is written as
 * `publisher_platform[0]`.
 */
export function parseColumnPath(columnName: string): string[] {
  const trimmedName = columnName.trim();
  const pathParts = /[/.[]/.test(trimmedName) ? trimmedName.split(/[/.[\]]+/) : trimmedName.split(/(?<=\w)__(?=\w)/);
  const path = pathParts.filter((part) => part !== '');
  return path.length > 0 && path.length <= maxPathLength ? path : [trimmedName];
}

const maxPathLength = 12;
