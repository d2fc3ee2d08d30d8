import * as z from 'zod';
import { type AdQuery, getAdQueryKey } from '../dataset/gatherings.ts';
import type { Gathering } from '../storage/dataset.ts';
import { parseNamedRecords, type RecordsById, type UserRecords } from '../storage/user-records.ts';
import { dayMs } from '../views/durations.ts';

const Filters = z.record(z.string(), z.unknown());

/**
 * A stored check of a watch (a search that is repeated to find new ads). Only checks that read all ads of the search
 * are stored in this form.
 */
const CompleteCheck = z.object({
  gatheringId: z.string(),
  /** The sequence number of the gathering (the stored ads of the search). Later gatherings have higher numbers. */
  sequenceNumber: z.number(),
  /** The time at which the ads were read, in milliseconds since the Unix epoch. */
  readAt: z.number(),
});
export type CompleteCheck = z.infer<typeof CompleteCheck>;

const WatchRecord = z.object({
  filters: Filters.optional(),
  split: z.array(Filters).optional(),
  collectionId: z.string().optional(),
  maxAds: z.number().optional(),
  maxCredits: z.number(),
  /**
   * The last two complete checks, with the newest check first. If the caller did not receive the result of the newer
   * check, the next check is compared with the older one.
   */
  completeChecks: z.array(CompleteCheck),
  last: z.object({ at: z.number(), ads: z.number(), complete: z.boolean() }).optional(),
});
type WatchRecord = z.infer<typeof WatchRecord>;

/** Parses stored watches (searches that are repeated to find new ads). Ignores records that do not match the schema. */
export const parseWatches = (records: RecordsById) => parseNamedRecords(records, WatchRecord);
/** A stored watch (a search that is repeated to find new ads) with its name. */
export type Watch = ReturnType<typeof parseWatches>[number];

/** Returns the fields of a watch that determine which ads it reads: the filters and the split, or the collection. */
export const pickAdQuery = ({ filters, split, collectionId }: AdQuery): AdQuery => ({
  ...(filters && { filters }),
  ...(split && { split }),
  ...(collectionId && { collectionId }),
});

/**
 * Sorts watches by the time of their last check, with the oldest check first. An incomplete check counts as one day
 * older, so that the next tool call continues this check early.
 */
export function sortByLeastRecentCheck(watches: readonly Watch[]): Watch[] {
  const getCheckTime = ({ last }: Watch) => (last === undefined ? 0 : last.at - (last.complete ? 0 : dayMs));
  return [...watches].sort((left, right) => getCheckTime(left) - getCheckTime(right));
}

/**
 * Stores a watch and returns it. Replaces an existing watch with the same name. Its earlier checks are kept if both
 * watches select the same ads.
 */
export function storeWatch(
  userRecords: UserRecords,
  { name, maxAds, maxCredits, ...adQuery }: AdQuery & Pick<Watch, 'name' | 'maxAds' | 'maxCredits'>,
): Promise<Watch> {
  return userRecords.update('watch', (records) => {
    const storedWatch = parseWatches(records).find((watch) => watch.name === name);
    const hasSameQuery = storedWatch && getAdQueryKey(storedWatch) === getAdQueryKey(adQuery);
    const record: WatchRecord = {
      ...pickAdQuery(adQuery),
      ...(maxAds !== undefined && { maxAds }),
      maxCredits,
      completeChecks: hasSameQuery ? storedWatch.completeChecks : [],
      ...(hasSameQuery && storedWatch.last && { last: storedWatch.last }),
    } as WatchRecord;
    return { put: [[name, record]], result: { name, ...record } };
  });
}

/** Stores the results of checks. Skips a watch that was deleted, or whose filters changed, after its check began. */
export function saveChecks(
  userRecords: UserRecords,
  checks: readonly { watch: Watch; checkedAt: number; gathering: Gathering }[],
): Promise<void> {
  return userRecords.update('watch', (records) => {
    const watchesByName = new Map(parseWatches(records).map((watch) => [watch.name, watch]));
    const put = checks.flatMap(({ watch: checkedWatch, checkedAt, gathering }) => {
      const watch = watchesByName.get(checkedWatch.name);
      if (watch === undefined || getAdQueryKey(watch) !== getAdQueryKey(checkedWatch)) return [];
      const { name, ...record } = watch;
      const check = {
        gatheringId: gathering.id,
        sequenceNumber: gathering.sequenceNumber,
        readAt: gathering.gatheredAt,
      };
      const [newestCheck] = record.completeChecks;
      const { isComplete } = gathering;
      const isNew = isComplete && (newestCheck === undefined || check.sequenceNumber > newestCheck.sequenceNumber);
      const last = { at: checkedAt, ads: gathering.adIds.size, complete: isComplete };
      return [
        [
          name,
          { ...record, ...(isNew && { completeChecks: [check, ...record.completeChecks].slice(0, 2) }), last },
        ] as const,
      ];
    });
    return { put, result: undefined };
  });
}
