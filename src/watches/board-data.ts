/** The fields in the result of `check_watches` from which the data for the board is built. */
export interface ChecksResult {
  watches: readonly {
    name: string;
    new: readonly string[] | null;
    changed: readonly string[] | null;
    gathering?: string;
  }[];
  /** The estimated cost of the check. Set if the call only estimated this cost. */
  estimate?: { pages: number | null; credits: number | null; atLeast?: number; atMost?: number };
}

/**
 * Builds the data for the board (the interactive view of ads) from the result of `check_watches`. The server sends this
 * data to the board. If the host drops the data on the way, the board builds it again from the structured result.
 */
export function buildChecksBoardData({ watches, estimate }: ChecksResult) {
  if (estimate) return { estimate };
  const ids = watches.flatMap((watch) => [...(watch.new ?? []), ...(watch.changed ?? [])]);
  if (ids.length > 0) return { ids: [...new Set(ids)] };
  const gathering = watches.find((watch) => watch.gathering)?.gathering;
  return gathering === undefined ? {} : { gathering };
}
