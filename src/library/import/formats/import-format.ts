import type { Page } from '../../../api/schemas.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import type { SourceRecord } from './source-record.ts';

/** The ad library that an ad comes from. `own` means that the ad is from the user's own table. */
export type AdLibraryName = 'meta' | 'google' | 'tiktok' | 'linkedin' | 'own';

/**
 * A format of ads that users can import. To add a format, write a file with a value of this type, and add the value to
 * `formats.ts`.
 */
export interface ImportFormat {
  /** The name of the format in commands and reports, e.g. `meta-ad-library`. */
  name: string;
  /** A short description for users. The command `library formats` prints it. */
  title: string;
  /** Where the format is documented: a URL, a page of this project, or a note that there is no documentation. */
  description: string;
  /**
   * For each field of an ad, the source keys or columns that may contain it. Keys are normalized with `normalizeKey`,
   * and a dot in a key means a nested object. The import report lists all other keys as not recognized.
   */
  keysByField: Readonly<Record<string, readonly string[]>>;
  /** Whether the format occurs as JSON records, as tables, or as both. */
  layouts: readonly ('json' | 'table')[];
  /** True if column names such as `snapshot/body/text` are paths into nested objects. */
  hasColumnPaths?: boolean;
  /**
   * Returns true if a record has this format. To detect the format of a table, the import passes a record that has the
   * column names as keys and no values.
   */
  matches(record: SourceRecord): boolean;
  /**
   * Converts a record to an ad. The import calls this twice for each record, because `parser` must see all records
   * before it knows how dates and numbers are written.
   * @throws Error if the record is unusable; if the error concerns one key, its message starts with the key
   */
  toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject;
  /**
   * Converts a record that describes an advertiser page. Returns undefined for any other record. Like `toAd`, this is
   * called twice per record.
   */
  toPage?(record: SourceRecord, parser: ColumnValueParser): JsonObject | Page | undefined;
  /**
   * Returns the reason why a row should be ignored, e.g. `they name no ad (rows of totals)`, or undefined if it should
   * be imported. The import report lists each reason with the number of ignored rows.
   */
  getIgnoreReason?(record: SourceRecord): string | undefined;
  /**
   * Combines two records of the same ad or page from one import run. Formats need this if a record may contain only a
   * part of an ad or page, e.g. its results in one country. Without this function, the newer record replaces the older
   * one.
   * @param reportProblem adds a problem with a value of the later record to the import report
   * @throws Error that explains why the later record must be skipped
   */
  combinePartialRecords?(
    earlierRecord: JsonObject,
    laterRecord: JsonObject,
    reportProblem: (problem: Error) => void,
  ): JsonObject;
  /**
   * Combines an ad from an earlier import run with the same ad of this run, if both contain different parts of its
   * results. Returns undefined if the record of this run is a newer version, which replaces the stored ad.
   */
  combineWithEarlierRun?(
    storedAd: JsonObject,
    ad: JsonObject,
    reportProblem: (problem: Error) => void,
  ): JsonObject | undefined;
  /**
   * Adds a record to the stored ad that it describes. Formats need this if their records are never whole ads. The
   * import skips a record if the library does not have its ad.
   * @param isRepeated true if an earlier record of the same import run describes the same ad
   */
  addToStoredAd?(storedAd: JsonObject, partialAd: JsonObject, isRepeated: boolean): JsonObject;
}

/** A JSON object with any keys, e.g. an ad that has not been validated yet. */
export type JsonObject = Record<string, unknown>;
