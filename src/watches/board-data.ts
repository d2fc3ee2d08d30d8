/** The fields in the result of `check_watches` from which the data for the board is built. */
export interface CheckWatchesResult {
  watches: readonly WatchCheckResult[];
  /** The estimated cost of the check. Set if the call only estimated this cost. */
  estimate?: { pages: number | null; credits: number | null; atLeast?: number; atMost?: number };
}

interface WatchCheckResult {
  name: string;
  new: readonly string[] | null;
  changed: readonly string[] | null;
  gone: readonly string[] | null;
  /** For each list that was cut: the number of ids that are omitted. */
  more?: { new?: number; changed?: number; gone?: number };
  found: number | null;
  read: number;
  complete: boolean;
  since: string | null;
  gathering?: string;
}

/** The outcome of a check of one watch (a search that is repeated to find new ads), as the board describes it. */
export type BoardCheck = ReturnType<typeof buildBoardCheck>;

/**
 * Builds the data for the board (the interactive view of ads) from the result of `check_watches`. The server sends this
 * data to the board. If the host drops the data on the way, the board builds it again from the structured result.
 *
 * The board shows the new and changed ads of all watches. If there are none, the board shows all ads of the first watch
 * that was checked.
 */
export function buildChecksBoardData({ watches, estimate }: CheckWatchesResult) {
  if (estimate) return { estimate };
  const checks = watches.map(buildBoardCheck);
  const ids = watches.flatMap((watch) => [...(watch.new ?? []), ...(watch.changed ?? [])]);
  if (ids.length > 0) return { checks, ids: [...new Set(ids)] };
  const gathering = watches.find((watch) => watch.gathering)?.gathering;
  return { checks, ...(gathering !== undefined && { gathering }) };
}

const buildBoardCheck = ({ name, found, read, complete, since, gathering, more = {}, ...ids }: WatchCheckResult) => {
  const { new: omittedNewAds = 0, changed: omittedChangedAds = 0, gone: omittedGoneAds = 0 } = more;
  return {
    name,
    newAds: (ids.new?.length ?? 0) + omittedNewAds,
    changedAds: (ids.changed?.length ?? 0) + omittedChangedAds,
    goneAds: (ids.gone?.length ?? 0) + omittedGoneAds,
    /** The number of new and changed ads whose ids the result omits. The board cannot show these ads. */
    omittedAds: omittedNewAds + omittedChangedAds,
    ...{ found, read, complete, since },
    ...(gathering !== undefined && { gathering }),
  };
};
