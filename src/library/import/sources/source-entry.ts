/** One record of a source, or what is wrong in its place. */
export type SourceEntry = {
  /** The line where the record begins; 0 in a document whose path says more. */
  line: number;
  /** The place of the record in its document; empty for a record on a line of its own. */
  path: string;
} & ({ value: Record<string, unknown>; text?: string } | { cells: string[] } | { problem: string });

/** Characters of one record. */
export const maxRecordLength = 1024 * 1024;

export const tooLongProblem = `a record of more than ${maxRecordLength} characters; a list of records goes into [ ], alone or under "data" or "items"`;

/** From here on, the source cannot be read. Records before this place can be used. */
export class UnreadableSourceError extends Error {}
