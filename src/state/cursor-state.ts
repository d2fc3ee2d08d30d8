/** What is remembered of a cursor, for a caller who leaves the filters out. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, where it is too long to be part of ours. */
  serviceCursor?: string | undefined;
}
