/** What should be a record, or what is wrong in its place. `path` is where it is in its document, empty for a line. */
export type Piece = { line: number; path: string } & ({ text: string } | { value: unknown } | { problem: string });

/** Characters of one record as it is written. */
export const maxRecordLength = 1024 * 1024;
export const tooLong = `a record of more than ${maxRecordLength} characters; a list of records goes into [ ], alone or under "data" or "items"`;
