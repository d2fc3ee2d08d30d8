import { type GatherContext, type GatherOutcome, type Progress, withOpenedGathering } from '../dataset/gather.ts';
import {
  compareGatherings,
  findGatherings,
  getAdQueryKey,
  getFirstReadingTime,
  hasAllAdIds,
} from '../dataset/gatherings.ts';
import { classifyFailure, type StopInfo } from '../dataset/stops.ts';
import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { type CompleteCheck, pickAdQuery, sortByLeastRecentCheck, type Watch } from './stored-watches.ts';

/** The dependencies and limits of a tool call that checks watches (searches that are repeated to find new ads). */
export interface CheckContext extends GatherContext {
  /** How long the server caches responses of the API, in milliseconds. */
  cacheLifetimeMs: number;
}

/** A watch (a search that is repeated to find new ads), with the result of its latest check. */
export interface CheckedWatch {
  watch: Watch;
  /** The reason why the check stopped reading ads, e.g. a usage limit. */
  stopInfo: StopInfo;
  /** True if the tool call ended before it checked this watch. */
  isSkipped: boolean;
  /**
   * True if the ads of the same search were read a few minutes ago. The check then uses these stored ads and costs
   * nothing.
   */
  usesStoredAds: boolean;
  outcome?: GatherOutcome | undefined;
  check?: WatchCheck | undefined;
}

/** The maximum number of ads that a check reads if the watch does not have a `maxAds` setting. */
export const defaultMaxAdsPerCheck = 1000;

/**
 * Checks watches (searches that are repeated to find new ads). The watch whose last check is the oldest comes first.
 * Watches with the same search share the ads that are read, so that the caller pays for these ads only once.
 * @returns the checked watches, and the reason if the tool call ended before all watches were checked
 */
export async function runWatchChecks(
  watches: readonly Watch[],
  { maxCredits, fresh }: { maxCredits: number | undefined; fresh: boolean },
  context: CheckContext,
) {
  const contentsBefore = await (await context.openDataset()).readContents();
  const completeOutcomes = new Map<string, GatherOutcome>();
  const checkedWatches: CheckedWatch[] = [];
  let remainingCredits = maxCredits ?? Infinity;
  let lastProgress = 0;
  let callStopInfo: StopInfo | undefined;
  /** The first check that stopped because the credits of the call or the budget of the server were used up. */
  let creditStopInfo: StopInfo | undefined;
  for (const watch of sortByLeastRecentCheck(watches)) {
    const request = {
      adQuery: pickAdQuery(watch),
      maxAds: watch.maxAds ?? defaultMaxAdsPerCheck,
      maxCredits: maxCredits === undefined ? undefined : Math.max(0, Math.min(watch.maxCredits, remainingCredits)),
      fresh: true,
    };
    const queryKey = getAdQueryKey(request.adQuery);
    const existingOutcome =
      completeOutcomes.get(queryKey) ?? (fresh ? undefined : findRecentStoredOutcome(watch, contentsBefore, context));
    const isLimitedByCall = watch.maxCredits > remainingCredits;
    const messagePrefix = `watch ${checkedWatches.length + 1} of ${watches.length}: `;
    // Progress must never decrease. It starts at the last reported value, not at the number of newly read ads, because a
    // continued check also reports the ads that an earlier call has read.
    const startProgress = lastProgress;
    const onProgress = ({ progress, message }: Progress) => {
      lastProgress = startProgress + progress;
      context.onProgress?.({ progress: lastProgress, message: messagePrefix + message });
    };
    const readPages = async (): Promise<{ stopInfo: StopInfo; outcome?: GatherOutcome }> => {
      let callBudget: Awaited<ReturnType<GatherContext['createCallBudget']>> | undefined;
      const createCallBudget = async (creditLimit?: number) => {
        callBudget = await context.createCallBudget(creditLimit);
        return callBudget;
      };
      const watchContext = { ...context, createCallBudget, onProgress };
      try {
        const outcome = await withOpenedGathering(request, contentsBefore, watchContext, (_, readMissingPages) =>
          readMissingPages(),
        );
        return { stopInfo: outcome.stopInfo, outcome };
      } catch (error) {
        return { stopInfo: classifyFailure(error, context) };
      } finally {
        // A check can also fail after it has paid for pages.
        remainingCredits -= (await callBudget?.readUsedCredits()) ?? 0;
      }
    };
    const { stopInfo, outcome } = existingOutcome
      ? { stopInfo: existingOutcome.stopInfo, outcome: existingOutcome }
      : callStopInfo
        ? { stopInfo: callStopInfo }
        : await readPages();
    const check = outcome && createWatchCheck(watch, outcome, context.getTime());
    const usesStoredAds = existingOutcome !== undefined && !completeOutcomes.has(queryKey);
    checkedWatches.push({
      watch,
      stopInfo,
      isSkipped: !existingOutcome && callStopInfo !== undefined,
      usesStoredAds,
      outcome,
      check,
    });
    if (outcome && check?.gathering.isComplete && !usesStoredAds) completeOutcomes.set(queryKey, outcome);
    callStopInfo ??= findCallStop(stopInfo);
    if (stopInfo.reason === 'budget' || (stopInfo.reason === 'maxCredits' && isLimitedByCall))
      creditStopInfo ??= stopInfo;
  }
  return { checkedWatches, callStopReason: (callStopInfo ?? creditStopInfo)?.reason };
}

/**
 * The maximum age of stored ads that a check may use instead of new ads, in milliseconds. If the cache lifetime
 * (`cacheLifetimeMs`) is shorter, it applies instead.
 */
const maxRecentAgeMs = 900_000;

/**
 * Returns the stored ads of a watch's search if they are complete and only a few minutes old. The result has the same
 * form as for newly read ads.
 *
 * The age of a check of this watch counts from its last page, so that repeating a check that needed several calls is
 * free. The age of other ads counts from their oldest page, because ads that are new since then are missing.
 */
export function findRecentStoredOutcome(
  watch: Watch,
  contents: DatasetContents,
  { now, cacheLifetimeMs }: Pick<CheckContext, 'now' | 'cacheLifetimeMs'>,
) {
  const gathering = findGatherings(contents, pickAdQuery(watch)).find(({ isComplete }) => isComplete);
  if (!gathering) return;
  const isLastCheck = watch.completeChecks[0]?.gatheringId === gathering.id;
  const readAt = isLastCheck ? gathering.gatheredAt : getFirstReadingTime(gathering);
  if (Math.abs(now - readAt) >= Math.min(maxRecentAgeMs, cacheLifetimeMs)) return;
  const emptyOutcome = {
    idsReadByCall: new Set<string>(),
    serviceNotes: [],
    hasStartedOver: false,
    markResultReturned: async () => {},
  };
  return {
    stopInfo: { reason: 'end' },
    gathering,
    contents,
    readCount: gathering.adIds.size,
    ...emptyOutcome,
  } satisfies GatherOutcome;
}

/**
 * Returns `stopInfo` if this reason ends the whole tool call, because no time is left, because the service would also
 * reject the next watch, or because its ads could not be stored either. Otherwise, returns undefined.
 */
function findCallStop(stopInfo: StopInfo): StopInfo | undefined {
  const endsCall = ['usage_limit', 'deadline', 'shutdown'].includes(stopInfo.reason);
  const { kind, storage } = stopInfo.error?.failure ?? {};
  return endsCall || kind === 'payment_required' || storage !== undefined ? stopInfo : undefined;
}

/**
 * Creates the result of a check from the ads that the check read. Returns undefined if the check stopped before it read
 * any ads.
 */
function createWatchCheck(
  watch: Watch,
  { gathering, contents, readCount }: GatherOutcome,
  checkedAt: number,
): WatchCheck | undefined {
  if (gathering === undefined) return;
  return gathering.isComplete || readCount > 0
    ? compareWithLastCheck(watch, gathering, contents, checkedAt)
    : undefined;
}

/**
 * The result of a check of one watch (a search that is repeated to find new ads). It contains the stored ads of the
 * search and their changes since the last complete check.
 */
export type WatchCheck = ReturnType<typeof compareWithLastCheck>;

/**
 * Compares the ads that a check read with the last complete check of the same watch.
 * @param checkedAt the time of the check, in milliseconds since the Unix epoch
 */
function compareWithLastCheck(watch: Watch, gathering: Gathering, contents: DatasetContents, checkedAt: number) {
  // Skip a check that contains these same ads, so that they are not compared with themselves. Such a check exists if
  // the caller did not receive its result.
  const lastCheck = watch.completeChecks.find((check) => check.gatheringId !== gathering.id);
  const lastGathering = contents.gatherings.find(({ id }) => id === lastCheck?.gatheringId);
  const changes =
    lastGathering && hasAllAdIds(lastGathering) ? compareGatherings(lastGathering, gathering, contents) : undefined;
  return {
    watch,
    checkedAt,
    gathering,
    changes,
    previousCheck: changes && lastCheck,
    previousGathering: changes && lastGathering,
    /**
     * The last complete check of this watch. Set only if the new ads cannot be compared with that check, because the
     * dataset has removed too many of its ads to save memory.
     */
    incomparableCheck: changes ? undefined : lastCheck,
  };
}

/** Returns the ids of all ads that were new in the last complete check of a watch. The ids are in lower case. */
export function findNewAdIds(watches: readonly Watch[], contents: DatasetContents): ReadonlySet<string> {
  const ids = watches.flatMap(({ completeChecks: [lastCheck, previousCheck] }) => {
    const findGatheringOfCheck = (check: CompleteCheck | undefined) =>
      contents.gatherings.find(({ id }) => id === check?.gatheringId);
    const [newestGathering, earlierGathering] = [findGatheringOfCheck(lastCheck), findGatheringOfCheck(previousCheck)];
    return newestGathering && earlierGathering && hasAllAdIds(earlierGathering)
      ? [...newestGathering.adIds].filter((id) => !earlierGathering.adIds.has(id))
      : [];
  });
  return new Set(ids);
}
