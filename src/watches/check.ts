import {
  classifyFailure,
  type GatherContext,
  type GatherOutcome,
  type Progress,
  type Stop,
  withOpenedGathering,
} from '../dataset/gather.ts';
import {
  compareGatherings,
  findGatherings,
  type GatheringQuestion,
  getQuestionKey,
  hasAllIds,
} from '../dataset/gatherings.ts';
import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { type CompleteCheck, pickQuestion, sortByLeastRecentCheck, type Watch } from './stored-watches.ts';

/** What a check needs of a tool call. */
export interface CheckContext extends GatherContext {
  /** How long answers are cached, in milliseconds. */
  cacheMs: number;
}

/** A watch after `checkAll`. */
export interface CheckedWatch {
  watch: Watch;
  /** Why the check read no more, and whether that ended the call before the turn of this watch. */
  stop: Stop;
  isSkipped: boolean;
  /** A gathering of some minutes ago served as the reading of the watch. */
  isRecent: boolean;
  gathered?: GatherOutcome | undefined;
  check?: Check | undefined;
}

/** The most ads that a check reads of a watch without `maxAds`. */
export const defaultMaxAds = 1000;

/** Reads the watches, the one that was checked longest ago first. Watches with the same question are read once. */
export async function runChecks(
  chosen: readonly Watch[],
  { maxCredits, fresh }: { maxCredits: number | undefined; fresh: boolean },
  context: CheckContext,
) {
  const before = await (await context.dataset()).readContents();
  const complete = new Map<string, GatherOutcome>();
  const checked: CheckedWatch[] = [];
  let [remainingCredits, adsRead] = [maxCredits ?? Infinity, 0];
  let ended: Stop | undefined;
  for (const watch of sortByLeastRecentCheck(chosen)) {
    const request = {
      question: pickQuestion(watch),
      maxAds: watch.maxAds ?? defaultMaxAds,
      maxCredits: maxCredits === undefined ? undefined : Math.max(0, Math.min(watch.maxCredits, remainingCredits)),
      fresh: true,
    };
    const key = getQuestionKey(request.question);
    const reading = complete.get(key) ?? (fresh ? undefined : findRecentReading(request.question, before, context));
    const start = `watch ${checked.length + 1} of ${chosen.length}: `;
    const read = (): Promise<{ stop: Stop; gathered?: GatherOutcome }> =>
      withOpenedGathering(request, before, { ...context, ...progressOf(context, start, adsRead) }, (_, read) =>
        read(),
      ).then(
        (gathered) => ({ stop: gathered.stop, gathered }),
        (error) => ({ stop: classifyFailure(error, context) }),
      );
    const { stop, gathered } = reading
      ? { stop: reading.stop, gathered: reading }
      : ended
        ? { stop: ended }
        : await read();
    const check = gathered && checkOf(watch, gathered, context.clock());
    if (gathered && gathered !== reading) remainingCredits -= gathered.spentCredits;
    adsRead += gathered?.idsReadByCall.size ?? 0;
    const isRecent = reading !== undefined && !complete.has(key);
    checked.push({ watch, stop, isSkipped: !reading && ended !== undefined, isRecent, gathered, check });
    if (gathered && check?.gathering.complete && !isRecent) complete.set(key, gathered);
    ended ??= stopOfAll(stop);
  }
  const isShort = ({ stop: { reason }, watch }: CheckedWatch) =>
    reason === 'budget' || (reason === 'maxCredits' && watch.maxCredits > remainingCredits);
  return { checked, ended: (ended ?? checked.find(isShort)?.stop)?.reason };
}

/** The age up to which a complete gathering serves as the reading of a check, if answers are cached as long. */
const recentMs = 900_000;

/** Returns a complete gathering of the question that is only minutes old, as if the check had read it. */
export function findRecentReading(
  question: GatheringQuestion,
  contents: DatasetContents,
  { now, cacheMs }: Pick<CheckContext, 'now' | 'cacheMs'>,
) {
  const gathering = findGatherings(contents, question).find(({ complete }) => complete);
  if (!gathering || Math.abs(now - gathering.gatheredAt) >= Math.min(recentMs, cacheMs)) return;
  const nothing = {
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
    ...nothing,
  } satisfies GatherOutcome;
}

/** Whether a stop ends the whole call: the next watch would be refused, or there is no time for it. */
function stopOfAll(stop: Stop): Stop | undefined {
  const isOver = ['usage_limit', 'deadline', 'shutdown'].includes(stop.reason);
  return isOver || stop.error?.failure.kind === 'payment_required' ? stop : undefined;
}

const progressOf = ({ onProgress }: CheckContext, start: string, before: number) =>
  onProgress && {
    onProgress: ({ progress, message }: Progress) =>
      onProgress({ progress: before + progress, message: start + message }),
  };

function checkOf(watch: Watch, { gathering, contents, readCount }: GatherOutcome, at: number): Check | undefined {
  if (gathering === undefined) return;
  return gathering.complete || readCount > 0 ? compareWithLast(watch, gathering, contents, at) : undefined;
}

export type Check = ReturnType<typeof compareWithLast>;

/** Compares a gathering with the last complete check of its watch. */
function compareWithLast(watch: Watch, gathering: Gathering, contents: DatasetContents, at: number) {
  // The newest check may be of this gathering: a call stored it, and its result was not received.
  const last = watch.complete.find((check) => check.gathering !== gathering.id);
  const before = contents.gatherings.find(({ id }) => id === last?.gathering);
  const changes = before && hasAllIds(before) ? compareGatherings(before, gathering, contents) : undefined;
  return {
    watch,
    at,
    gathering,
    changes,
    previousCheck: changes && last,
    /** There was a complete check, but too much of it was evicted to compare with it. */
    incomparableCheck: changes ? undefined : last,
  };
}

/** Returns the ids, as `idKey` writes them, of ads that are new in the last complete check of any watch. */
export function findNewAdIds(watches: readonly Watch[], contents: DatasetContents): ReadonlySet<string> {
  const ids = watches.flatMap(({ complete: [last, before] }) => {
    const gatheringOf = (check: CompleteCheck | undefined) =>
      contents.gatherings.find(({ id }) => id === check?.gathering);
    const [newest, earlier] = [gatheringOf(last), gatheringOf(before)];
    return newest && earlier && hasAllIds(earlier) ? [...newest.adIds].filter((id) => !earlier.adIds.has(id)) : [];
  });
  return new Set(ids);
}
