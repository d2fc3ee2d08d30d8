/** A record of a source, or the reason why there is no usable record at this position. */
export type SourceEntry = {
  /** The line number where the record starts. It is 0 inside a JSON document, where `path` is more precise. */
  line: number;
  /** The path to the record in its JSON document, e.g. `data[3]`. Empty for a record on a line of its own. */
  path: string;
} & (
  | {
      value: Record<string, unknown>;
      /** The original text of the record, if the record is a whole line. */
      text?: string;
    }
  | { cells: string[] }
  | { problem: string }
);

/** The maximum length of a record, in characters. */
export const maxRecordLength = 1024 * 1024;

/** The reason in the import report for skipping a record that is longer than `maxRecordLength`. */
export const tooLongProblem = `a record of more than ${maxRecordLength} characters; put a list of records into [ ], on its own or under "data" or "items"`;

/** Thrown if the rest of a source cannot be read. The records before that position are usable. */
export class UnreadableSourceError extends Error {}
