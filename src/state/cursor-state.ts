/** What is remembered about a cursor, for callers who leave the filters out. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, if it is too long to be part of ours. */
  serviceCursor?: string | undefined;
}
