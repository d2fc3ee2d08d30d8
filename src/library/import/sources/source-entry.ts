/** A record of a source, or the reason why the source has no usable record at this position. */
export type SourceEntry = {
  /** The line number where the record starts. Inside a JSON document it is 0, because `path` is more precise. */
  line: number;
  /** The path to the record in its JSON document, e.g. `data[3]`. Empty if the record has a line to itself. */
  path: string;
} & (
  | {
      value: Record<string, unknown>;
      /** The original text of the record. Only set if the record is a whole line. */
      text?: string;
    }
  | { cells: string[] }
  | { problem: string }
);

/** The maximum length of a record, in characters. */
export const maxRecordLength = 1024 * 1024;

/**
 * The character that replaces a line break in a cell of a workbook, when the import converts the sheet to CSV. Each row
 * is then one line of CSV, so the line number in a report is the number of the row. The character has no meaning in
 * Unicode, and a table replaces it with the line break again.
 */
export const cellLineBreak = '\ufdd3';

/** The problem that the import report states for a record that is longer than `maxRecordLength`. */
export const tooLongProblem = `a record of more than ${maxRecordLength} characters; put a list of records into [ ], on its own or under "data" or "items"`;

/** Thrown if a source cannot be read any further. The records before that position are usable. */
export class UnreadableSourceError extends Error {}
