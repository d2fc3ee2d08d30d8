import type { Page } from '../../../api/schemas.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import type { SourceRecord } from './source-record.ts';

/** The ad library that an ad comes from. `own` stands for a table that the user created. */
export type AdLibraryName = 'meta' | 'google' | 'tiktok' | 'linkedin' | 'own';

/**
 * A format of ads that users can import. To add a format, define it in a new file and add it to `importFormats` in
 * `formats.ts`.
 */
export interface ImportFormat {
  /** The name of the format in commands and reports, e.g. `meta-ad-library`. */
  name: string;
  /** A short description of the format, which the `library formats` command prints. */
  title: string;
  /**
   * The place where the format is documented: a URL, a page of this project, or a note that there is no documentation.
   */
  documentation: string;
  /**
   * For each field of an ad, the keys or columns that may contain it, normalized with `normalizeKey`. A dot in a key
   * means a nested object. The import report lists all other keys as unknown.
   */
  keysByField: Readonly<Record<string, readonly string[]>>;
  /** The layouts in which the format occurs: JSON records, tables or both. */
  layouts: readonly ('json' | 'table')[];
  /** True if column names such as `snapshot/body/text` are paths into nested objects. */
  hasColumnPaths?: boolean;
  /**
   * Returns true if a record has this format. For a table, the import passes a record that has the column names as
   * keys, but no values.
   */
  matches(record: SourceRecord): boolean;
  /**
   * Converts a record to an ad. The import calls this method twice for each record, because `parser` must see all
   * records before it knows how the file writes dates and numbers.
   * @throws Error if the record is unusable; if the error concerns one key, its message starts with the key
   */
  toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject;
  /**
   * Converts a record to an advertiser page. Returns undefined if the record does not describe a page. As with `toAd`,
   * the import calls this method twice for each record.
   */
  toPage?(record: SourceRecord, parser: ColumnValueParser): JsonObject | Page | undefined;
  /**
   * Returns the reason for ignoring a row, e.g. `they name no ad (rows of totals)`, or undefined for a row to import.
   * The import report lists each reason with the number of ignored rows.
   */
  getIgnoreReason?(record: SourceRecord): string | undefined;
  /**
   * Combines two records of the same ad or page from one import run. A format needs this method if a record may contain
   * only a part of an ad or page, e.g. its results in one country. Without this method, the newer record replaces the
   * older one.
   * @param reportProblem adds a problem with a value of the later record to the import report
   * @throws Error that explains why the later record must be skipped
   */
  combinePartialRecords?(
    earlierRecord: JsonObject,
    laterRecord: JsonObject,
    reportProblem: (problem: Error) => void,
  ): JsonObject;
  /**
   * Combines a stored ad from an earlier import run with the same ad of this run, if they contain different parts of
   * its results. Returns undefined if the general rule applies: the version with the later `lastSeenAt` is stored.
   */
  combineWithEarlierRun?(
    storedAd: JsonObject,
    ad: JsonObject,
    reportProblem: (problem: Error) => void,
  ): JsonObject | undefined;
  /**
   * Adds the fields of an incomplete record to the stored ad with the same id. Only formats whose records contain just
   * a few fields of previously imported ads need this method. The import skips a record whose ad is not stored.
   * @param isRepeated true if an earlier record of the same import run describes the same ad
   */
  addToStoredAd?(storedAd: JsonObject, partialAd: JsonObject, isRepeated: boolean): JsonObject;
}

/** A JSON object with any keys, e.g. an ad before its validation. */
export type JsonObject = Record<string, unknown>;
