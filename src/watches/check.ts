import { type GatherContext, type GatherOutcome, type Progress, withOpenedGathering } from '../dataset/gather.ts';
import {
  compareGatherings,
  findGatherings,
  type GatheringQuestion,
  getQuestionKey,
  hasAllAdIds,
} from '../dataset/gatherings.ts';
import { classifyFailure, type StopInfo } from '../dataset/stops.ts';
import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { type CompleteCheck, pickQuestion, sortByLeastRecentCheck, type Watch } from './stored-watches.ts';

/** The properties of a tool call's context that `runChecks` needs. */
export interface CheckContext extends GatherContext {
  /** How long API responses stay cached, in milliseconds. */
  cacheMs: number;
}

/** A watch (a saved search that is repeated regularly) with the result of its latest check. See `runChecks`. */
export interface CheckedWatch {
  watch: Watch;
  /** The reason why the check stopped reading ads, e.g. a usage limit. */
  stop: StopInfo;
  /** True if the tool call ended before this watch could be read. */
  isSkipped: boolean;
  /** True if the same search was already read minutes ago, so this check uses its stored ads and costs nothing. */
  isRecent: boolean;
  gathered?: GatherOutcome | undefined;
  check?: Check | undefined;
}

/** The largest number of ads that a check reads if the watch has no `maxAds`. */
export const defaultMaxAds = 1000;

/**
 * Checks watches, those checked longest ago first. Watches with the same search share its ads, so that they are paid
 * for only once.
 * @returns the checked watches, and the reason if the tool call ended before all watches were read
 */
export async function runChecks(
  watches: readonly Watch[],
  { maxCredits, fresh }: { maxCredits: number | undefined; fresh: boolean },
  context: CheckContext,
) {
  const contentsBefore = await (await context.openDataset()).readContents();
  const completeReadings = new Map<string, GatherOutcome>();
  const checkedWatches: CheckedWatch[] = [];
  let [remainingCredits, adsRead] = [maxCredits ?? Infinity, 0];
  let stopOfCall: StopInfo | undefined;
  for (const watch of sortByLeastRecentCheck(watches)) {
    const request = {
      question: pickQuestion(watch),
      maxAds: watch.maxAds ?? defaultMaxAds,
      maxCredits: maxCredits === undefined ? undefined : Math.max(0, Math.min(watch.maxCredits, remainingCredits)),
      fresh: true,
    };
    const key = getQuestionKey(request.question);
    const existingReading =
      completeReadings.get(key) ?? (fresh ? undefined : findRecentReading(request.question, contentsBefore, context));
    const progressPrefix = `watch ${checkedWatches.length + 1} of ${watches.length}: `;
    const readPages = (): Promise<{ stop: StopInfo; gathered?: GatherOutcome }> =>
      withOpenedGathering(
        request,
        contentsBefore,
        { ...context, ...prefixProgress(context, progressPrefix, adsRead) },
        (_, read) => read(),
      ).then(
        (gathered) => ({ stop: gathered.stopInfo, gathered }),
        (error) => ({ stop: classifyFailure(error, context) }),
      );
    const { stop, gathered } = existingReading
      ? { stop: existingReading.stopInfo, gathered: existingReading }
      : stopOfCall
        ? { stop: stopOfCall }
        : await readPages();
    const check = gathered && createCheck(watch, gathered, context.clock());
    if (gathered && gathered !== existingReading) remainingCredits -= gathered.spentCredits;
    adsRead += gathered?.idsReadByCall.size ?? 0;
    const isRecent = existingReading !== undefined && !completeReadings.has(key);
    checkedWatches.push({
      watch,
      stop,
      isSkipped: !existingReading && stopOfCall !== undefined,
      isRecent,
      gathered,
      check,
    });
    if (gathered && check?.gathering.complete && !isRecent) completeReadings.set(key, gathered);
    stopOfCall ??= getStopOfCall(stop);
  }
  const lacksCredits = ({ stop: { reason }, watch }: CheckedWatch) =>
    reason === 'budget' || (reason === 'maxCredits' && watch.maxCredits > remainingCredits);
  return { checked: checkedWatches, ended: (stopOfCall ?? checkedWatches.find(lacksCredits)?.stop)?.reason };
}

/**
 * If `gather_ads` read the same search completely less than this many milliseconds ago, the check uses the stored ads
 * and costs nothing. A shorter cache lifetime (`cacheMs`) takes precedence.
 */
const maxRecentAgeMs = 900_000;

/**
 * Finds stored ads of the same search that are complete and only minutes old. Returns them in the same form as newly
 * read ads, or undefined if there are none.
 */
export function findRecentReading(
  question: GatheringQuestion,
  contents: DatasetContents,
  { now, cacheMs }: Pick<CheckContext, 'now' | 'cacheMs'>,
) {
  const gathering = findGatherings(contents, question).find(({ complete }) => complete);
  if (!gathering || Math.abs(now - gathering.gatheredAt) >= Math.min(maxRecentAgeMs, cacheMs)) return;
  const emptyReading = {
    idsReadByCall: new Set<string>(),
    spentCredits: 0,
    hasStartedOver: false,
    markResultReturned: async () => {},
  };
  return {
    stopInfo: { reason: 'end' },
    gathering,
    contents,
    readCount: gathering.adIds.size,
    ...emptyReading,
  } satisfies GatherOutcome;
}

/**
 * Returns `stop` if it ends the whole tool call, because the service would reject the next watch as well or no time is
 * left. Otherwise returns undefined.
 */
function getStopOfCall(stop: StopInfo): StopInfo | undefined {
  const endsCall = ['usage_limit', 'deadline', 'shutdown'].includes(stop.reason);
  return endsCall || stop.error?.failure.kind === 'payment_required' ? stop : undefined;
}

/**
 * Adds the number of the watch to progress messages. Adds the ads read for earlier watches to the progress value,
 * because it must never decrease.
 */
const prefixProgress = ({ onProgress }: CheckContext, messagePrefix: string, adsReadBefore: number) =>
  onProgress && {
    onProgress: ({ progress, message }: Progress) =>
      onProgress({ progress: adsReadBefore + progress, message: messagePrefix + message }),
  };

/** Compares the ads that were read with the last check of the watch. Returns undefined if nothing was read. */
function createCheck(watch: Watch, { gathering, contents, readCount }: GatherOutcome, at: number): Check | undefined {
  if (gathering === undefined) return;
  return gathering.complete || readCount > 0 ? compareWithLast(watch, gathering, contents, at) : undefined;
}

/** The result of checking one watch, i.e. one saved search: its stored ads, and their changes since the last complete check. */
export type Check = ReturnType<typeof compareWithLast>;

/**
 * Compares the ads that were read for a watch with its last complete check.
 * @param at the time of the check, in milliseconds since the epoch
 */
function compareWithLast(watch: Watch, gathering: Gathering, contents: DatasetContents, at: number) {
  // If the result of an earlier call was lost, these ads may already be stored as the last check. Skip that check.
  const lastCheck = watch.complete.find((check) => check.gathering !== gathering.id);
  const lastGathering = contents.gatherings.find(({ id }) => id === lastCheck?.gathering);
  const changes =
    lastGathering && hasAllAdIds(lastGathering) ? compareGatherings(lastGathering, gathering, contents) : undefined;
  return {
    watch,
    at,
    gathering,
    changes,
    previousCheck: changes && lastCheck,
    /** The last complete check, if no comparison is possible because too many of its ads were evicted. */
    incomparableCheck: changes ? undefined : lastCheck,
  };
}

/** Returns the ids of the ads that were new in the last complete check of any watch, normalized by `normalizeAdId`. */
export function findNewAdIds(watches: readonly Watch[], contents: DatasetContents): ReadonlySet<string> {
  const ids = watches.flatMap(({ complete: [last, before] }) => {
    const findGatheringOfCheck = (check: CompleteCheck | undefined) =>
      contents.gatherings.find(({ id }) => id === check?.gathering);
    const [newestGathering, earlierGathering] = [findGatheringOfCheck(last), findGatheringOfCheck(before)];
    return newestGathering && earlierGathering && hasAllAdIds(earlierGathering)
      ? [...newestGathering.adIds].filter((id) => !earlierGathering.adIds.has(id))
      : [];
  });
  return new Set(ids);
}
