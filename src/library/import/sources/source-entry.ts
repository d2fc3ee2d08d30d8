/** One record of a source, or the problem that the reader found in its place. */
export type SourceEntry = {
  /** The number of the line where the record begins. It is 0 in a document, where `path` says more. */
  line: number;
  /** The path to the record in its document, such as `data[3]`. It is empty for a record on a line of its own. */
  path: string;
} & (
  | {
      value: Record<string, unknown>;
      /** The record as the source writes it, if the record is a whole line. */
      text?: string;
    }
  | { cells: string[] }
  | { problem: string }
);

/** The largest number of characters in one record. */
export const maxRecordLength = 1024 * 1024;

/** The problem of a record that exceeds `maxRecordLength`. */
export const tooLongProblem = `a record of more than ${maxRecordLength} characters; put a list of records into [ ], on its own or under "data" or "items"`;

/** The rest of the source cannot be read. The records before this place can be used. */
export class UnreadableSourceError extends Error {}
