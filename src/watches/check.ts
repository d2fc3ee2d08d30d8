import { type GatherContext, type GatherOutcome, type Progress, withOpenedGathering } from '../dataset/gather.ts';
import {
  compareGatherings,
  findGatherings,
  type GatheringQuestion,
  getQuestionKey,
  hasAllIds,
} from '../dataset/gatherings.ts';
import { classifyFailure, type Stop } from '../dataset/stops.ts';
import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { type CompleteCheck, pickQuestion, sortByLeastRecentCheck, type Watch } from './stored-watches.ts';

/** The parts of a tool call that a check uses. */
export interface CheckContext extends GatherContext {
  /** How long answers stay cached, in milliseconds. */
  cacheMs: number;
}

/** A watch after `runChecks`. */
export interface CheckedWatch {
  watch: Watch;
  /** Why the check stopped reading. */
  stop: Stop;
  /** Whether the call ended before this watch could be read. */
  isSkipped: boolean;
  /** Whether a gathering that is only minutes old was used instead of reading again. */
  isRecent: boolean;
  gathered?: GatherOutcome | undefined;
  check?: Check | undefined;
}

/** The most ads that a check reads if the watch has no `maxAds`. */
export const defaultMaxAds = 1000;

/**
 * Checks the watches, beginning with the one whose last check is oldest. Watches with the same question are read once.
 * @returns the checked watches, and the reason if the call ended early
 */
export async function runChecks(
  watches: readonly Watch[],
  { maxCredits, fresh }: { maxCredits: number | undefined; fresh: boolean },
  context: CheckContext,
) {
  const contentsBefore = await (await context.dataset()).readContents();
  const complete = new Map<string, GatherOutcome>();
  const checked: CheckedWatch[] = [];
  let [remainingCredits, adsRead] = [maxCredits ?? Infinity, 0];
  let ended: Stop | undefined;
  for (const watch of sortByLeastRecentCheck(watches)) {
    const request = {
      question: pickQuestion(watch),
      maxAds: watch.maxAds ?? defaultMaxAds,
      maxCredits: maxCredits === undefined ? undefined : Math.max(0, Math.min(watch.maxCredits, remainingCredits)),
      fresh: true,
    };
    const key = getQuestionKey(request.question);
    const existingReading =
      complete.get(key) ?? (fresh ? undefined : findRecentReading(request.question, contentsBefore, context));
    const progressPrefix = `watch ${checked.length + 1} of ${watches.length}: `;
    const readPages = (): Promise<{ stop: Stop; gathered?: GatherOutcome }> =>
      withOpenedGathering(
        request,
        contentsBefore,
        { ...context, ...prefixProgress(context, progressPrefix, adsRead) },
        (_, read) => read(),
      ).then(
        (gathered) => ({ stop: gathered.stop, gathered }),
        (error) => ({ stop: classifyFailure(error, context) }),
      );
    const { stop, gathered } = existingReading
      ? { stop: existingReading.stop, gathered: existingReading }
      : ended
        ? { stop: ended }
        : await readPages();
    const check = gathered && createCheck(watch, gathered, context.clock());
    if (gathered && gathered !== existingReading) remainingCredits -= gathered.spentCredits;
    adsRead += gathered?.idsReadByCall.size ?? 0;
    const isRecent = existingReading !== undefined && !complete.has(key);
    checked.push({ watch, stop, isSkipped: !existingReading && ended !== undefined, isRecent, gathered, check });
    if (gathered && check?.gathering.complete && !isRecent) complete.set(key, gathered);
    ended ??= getStopOfCall(stop);
  }
  const lacksCredits = ({ stop: { reason }, watch }: CheckedWatch) =>
    reason === 'budget' || (reason === 'maxCredits' && watch.maxCredits > remainingCredits);
  return { checked, ended: (ended ?? checked.find(lacksCredits)?.stop)?.reason };
}

/**
 * The age up to which a complete gathering replaces the reading of a check, in milliseconds. If answers are cached for
 * a shorter time, that time applies.
 */
const maxRecentAgeMs = 900_000;

/** Returns a complete gathering of the question that is only minutes old, in the form of a new reading. */
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
    markReturned: async () => {},
  };
  return {
    stop: { reason: 'end' },
    gathering,
    contents,
    readCount: gathering.adIds.size,
    ...emptyReading,
  } satisfies GatherOutcome;
}

/**
 * Returns the stop if it ends the whole call, because the service would refuse the next watch, too, or because no time
 * is left.
 */
function getStopOfCall(stop: Stop): Stop | undefined {
  const endsCall = ['usage_limit', 'deadline', 'shutdown'].includes(stop.reason);
  return endsCall || stop.error?.failure.kind === 'payment_required' ? stop : undefined;
}

/** Adds the number of the watch and the ads of earlier watches to the progress of a reading. */
const prefixProgress = ({ onProgress }: CheckContext, start: string, before: number) =>
  onProgress && {
    onProgress: ({ progress, message }: Progress) =>
      onProgress({ progress: before + progress, message: start + message }),
  };

/** Compares a reading with the last check. Returns undefined if nothing was read. */
function createCheck(watch: Watch, { gathering, contents, readCount }: GatherOutcome, at: number): Check | undefined {
  if (gathering === undefined) return;
  return gathering.complete || readCount > 0 ? compareWithLast(watch, gathering, contents, at) : undefined;
}

/** A check of a watch. */
export type Check = ReturnType<typeof compareWithLast>;

/**
 * Compares a gathering with the last complete check of its watch.
 * @param at when the check was made, in milliseconds since the epoch
 */
function compareWithLast(watch: Watch, gathering: Gathering, contents: DatasetContents, at: number) {
  // A call may have stored a check of this gathering although its result was never received.
  const last = watch.complete.find((check) => check.gathering !== gathering.id);
  const lastGathering = contents.gatherings.find(({ id }) => id === last?.gathering);
  const changes =
    lastGathering && hasAllIds(lastGathering) ? compareGatherings(lastGathering, gathering, contents) : undefined;
  return {
    watch,
    at,
    gathering,
    changes,
    previousCheck: changes && last,
    /** The last complete check, if too many of its ads were evicted to compare with it. */
    incomparableCheck: changes ? undefined : last,
  };
}

/** Returns the ids of ads that are new in the last complete check of any watch, as `normalizeAdId` writes them. */
export function findNewAdIds(watches: readonly Watch[], contents: DatasetContents): ReadonlySet<string> {
  const ids = watches.flatMap(({ complete: [last, before] }) => {
    const gatheringOf = (check: CompleteCheck | undefined) =>
      contents.gatherings.find(({ id }) => id === check?.gathering);
    const [newest, earlier] = [gatheringOf(last), gatheringOf(before)];
    return newest && earlier && hasAllIds(earlier) ? [...newest.adIds].filter((id) => !earlier.adIds.has(id)) : [];
  });
  return new Set(ids);
}
