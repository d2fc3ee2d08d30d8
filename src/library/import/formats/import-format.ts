import type { Page } from '../../../api/schemas.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import type { SourceRecord } from './source-record.ts';

/**
 * One format of ads that people import. A new format is one file with a value of this type, and one line in
 * `formats.ts`.
 */
export interface ImportFormat {
  /** A word for commands and reports, such as `meta-ad-library`. */
  name: string;
  /** What people call the format. */
  title: string;
  /**
   * The fields of an ad, each with the keys or columns that it is made from, as `keyOf` spells them; a point leads into
   * an object. Reports name all other keys as not understood.
   */
  keysByField: Readonly<Record<string, readonly string[]>>;
  /** Where records of the format stand. */
  layouts: readonly ('json' | 'table')[];
  /** Columns such as `snapshot/body/text` are paths into objects. */
  hasColumnPaths?: boolean;
  /** Whether a record has this format. The columns of a table are given as a record whose values are all undefined. */
  matches(record: SourceRecord): boolean;
  /**
   * Makes an ad of a record. Called twice for each record, because `values` must see all records before it reads any.
   * @throws Error where the record cannot be used; the message begins with the key if it is about one key
   */
  toAd(record: SourceRecord, values: ColumnValueParser): JsonObject;
  /** Makes a page of a record that describes a page; undefined for any other record. */
  toPage?(record: SourceRecord): Page | undefined;
}

/** An ad before its schema is checked. */
export type JsonObject = Record<string, unknown>;
