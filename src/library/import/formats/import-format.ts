import type { Page } from '../../../api/schemas.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import type { SourceRecord } from './source-record.ts';

/** The names of the libraries from which ads come. `own` means that the advertiser wrote the table. */
export type AdLibraryName = 'meta' | 'google' | 'tiktok' | 'linkedin' | 'own';

/**
 * A format of ads that people import. To add a format, write a file with a value of this type, and add the value to
 * `formats.ts`.
 */
export interface ImportFormat {
  /** A short name for commands and reports, such as `meta-ad-library`. */
  name: string;
  /** What people call the format. */
  title: string;
  /** Where the format is described: a URL or a page of this project, or a sentence that says that nobody describes it. */
  description: string;
  /**
   * The fields of an ad, with the keys or columns from which each field is made. Keys are normalized by `normalizeKey`.
   * A dot in a key leads into an object. Reports list all other keys as not recognized.
   */
  keysByField: Readonly<Record<string, readonly string[]>>;
  /** The layouts in which records of the format occur. */
  layouts: readonly ('json' | 'table')[];
  /** True if column names such as `snapshot/body/text` are paths into objects. */
  hasColumnPaths?: boolean;
  /**
   * Returns true if a record has this format. For a table, the record contains each column with the value undefined.
   */
  matches(record: SourceRecord): boolean;
  /**
   * Converts a record to an ad. The import calls this function twice for each record, because `parser` must observe all
   * records before it can parse their values.
   * @throws Error if the record cannot be used. If the error concerns one key, its message begins with the key.
   */
  toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject;
  /**
   * Converts a record that describes a page. Returns undefined for any other record. Like `toAd`, the import calls this
   * function twice.
   */
  toPage?(record: SourceRecord, parser: ColumnValueParser): JsonObject | Page | undefined;
  /** Returns true for a row that is not an ad, such as a row with totals. The import ignores such rows and counts them. */
  isIgnored?(record: SourceRecord): boolean;
  /**
   * Combines two ads or two pages with the same id from one import, if each record of the format may hold only a part of
   * an ad or a page. Without this function, the newer record wins.
   */
  combineParts?(earlier: JsonObject, later: JsonObject): JsonObject;
}

/** An object that may come from JSON, such as an ad before it is validated. */
export type JsonObject = Record<string, unknown>;
