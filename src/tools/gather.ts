import { AdLibraryError } from '../api/errors.ts';
import { adListOf } from '../dataset/ad-list.ts';
import { type GatherRun, gatherPart, isRejected, reachedLimit } from '../dataset/gather.ts';
import {
  beginsAnew,
  type GatherOutput,
  nextSteps,
  noRoom,
  readAgain,
  resultOf,
  startOver,
} from '../dataset/gathering-result.ts';
import {
  type GatheringPart,
  type GatheringQuestion,
  gatheringsOf,
  type OpenGathering,
  openGathering,
  questionKey,
  withoutRepeats,
} from '../dataset/gatherings.ts';
import { type Stop, stopOf } from '../dataset/stop.ts';
import { type Dataset, type DatasetContents, type Gathering, type GatheringState, idKey } from '../state/dataset.ts';
import { maxPageSize } from './filter-values.ts';
import { estimate, knownTotal } from './gather-estimate.ts';
import type { ToolContext } from './tool-context.ts';

export interface GatherRequest {
  question: GatheringQuestion;
  maxAds: number;
  maxCredits: number;
  fresh: boolean;
}

/** How long calls with `fresh` go on with a gathering that one of them began, in milliseconds: a day. */
const maxFreshAge = 86_400_000;

/** Gathers within all limits, and tells how it stands. Two calls of the same question go one after the other. */
export async function gather(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const question = withoutRepeats(request.question);
  const before = await contentsOf(context);
  const endTurn = await context.takeTurn(questionKey(question));
  try {
    return await gatherInTurn({ ...request, question }, before, context);
  } finally {
    endTurn();
  }
}

const contentsOf = async ({ dataset }: ToolContext): Promise<DatasetContents> => (await dataset()).contents();

/** @param before what there was when the call came */
async function gatherInTurn(
  request: GatherRequest,
  before: DatasetContents,
  context: ToolContext,
): Promise<GatherOutput> {
  const { question } = request;
  const opened = await openNow(request, before, context);
  const hasEnded = opened.parts.every(({ state }) => state.ended);
  if (request.maxCredits === 0 && !hasEnded) return estimate({ question, ...opened }, context);

  const reading: Reading = { open: opened, read: new Set(), brought: new Set() };
  addKnown(reading);
  const stop = await readAll(reading, { request, context, reopen: () => openNow(request, before, context) });
  const dataset = await context.dataset();
  const contents = await dataset.contents();
  const gathering = contents.gatherings.find(({ id }) => id === reading.open.whole.id);
  if (gathering === undefined || (stop.error && reading.read.size === 0)) throw stop.error ?? nothingRead();
  const { adRows, tenantId } = context;
  const { brought } = reading;
  const result = await resultOf(gathering, { contents, before: opened.contents, brought, adRows, tenantId });
  const { maxAds = request.maxAds, maxInParts } = stop;
  const room = maxInParts ?? (maxAds < request.maxAds ? maxAds : undefined);
  const next =
    room !== undefined ? noRoom(room, maxInParts !== undefined) : hasEnded && !result.complete ? readAgain : undefined;
  const note = opened.isTooOld && brought.size > 0 ? beginsAnew : undefined;
  // Whoever calls with `fresh` from now on begins anew.
  if (gathering.ended && gathering.fresh && !context.signal.aborted)
    await dataset.saveGathering({ ...gathering, fresh: false, step: gathering.step + 1, adIds: [] });
  const held = { ads: result.found ?? result.read, pages: 0, credits: 0 };
  return {
    ...result,
    ...stopData(stop, context),
    ...(next && { next }),
    ...(note && { note }),
    ...(request.maxCredits === 0 && { estimate: held }),
  };
}

interface Opened extends OpenGathering {
  contents: DatasetContents;
  /** An earlier gathering with `fresh` was stopped too long ago to go on with it. */
  isTooOld: boolean;
}

/** Where the gathering stands now. */
async function openNow(
  { question, fresh }: GatherRequest,
  before: DatasetContents,
  context: ToolContext,
): Promise<Opened> {
  const contents = await contentsOf(context);
  const [newest] = gatheringsOf(contents, question);
  const startsOver = fresh && !(newest && isFresh(newest, before, context.now));
  const open = openGathering(question, contents, { fresh: startsOver, now: context.clock() });
  return { ...open, contents, isTooOld: startsOver && newest?.fresh === true && !newest.ended };
}

/**
 * Whether a call with `fresh` takes a gathering as its own: one that began after the call came, or that such a call had
 * begun lately, and whose end no call has returned.
 */
function isFresh({ id, parts }: Gathering, before: DatasetContents, now: number): boolean {
  const known = new Map(before.gatherings.map((gathering) => [gathering.id, gathering]));
  const gathering = known.get(id);
  if (gathering === undefined) return parts.every((part) => !known.has(part));
  return gathering.fresh && Math.abs(now - gathering.startedAt) < maxFreshAge;
}

interface Reading {
  /** Where it stands. */
  open: Opened;
  /** Ids of all ads that were read, and of those that this call has read. */
  read: Set<string>;
  brought: Set<string>;
}

interface Work {
  request: GatherRequest;
  context: ToolContext;
  reopen(): Promise<Opened>;
}

async function readAll(reading: Reading, { request, context, reopen }: Work): Promise<Stop> {
  const { read, brought } = reading;
  const { api, clock, deadline, signal, isDraining, onProgress } = context;
  const dataset = await context.dataset();
  const allowance = await context.allowance(request.maxCredits);
  const whole = wholeOf(reading, request.question, dataset);
  const askMaxAds = async () => Math.min(request.maxAds, await dataset.maxAds());
  const run: GatherRun = {
    allowance,
    maxAds: await askMaxAds(),
    askMaxAds,
    read,
    listed: listedIn(reading.open),
    slowest: 0,
    clock,
    deadline,
    signal,
    isDraining,
    addItems: (batch) => dataset.addItems(batch),
    async save(step) {
      await whole.begin();
      for (const id of step.adIds) brought.add(idKey(id));
      await dataset.saveGathering(step);
    },
    onRequest: () => {},
    onPage(found) {
      const isWhole = found !== null && reading.open.parts.length === 1;
      const total = isWhole ? Math.max(read.size, Math.min(found, run.maxAds)) : undefined;
      const of = isWhole && found >= read.size ? ` of ${found}` : '';
      const message = `${read.size} ads read${of}`;
      onProgress?.({ progress: read.size, ...(total !== undefined && { total }), message });
    },
  };
  let maxLimit = maxPageSize(context.adFilters);
  const tried = new Set<string>();
  for (;;) {
    const next = reading.open.parts.find((part) => !part.state.ended && !tried.has(part.state.question));
    if (next === undefined) break;
    tried.add(next.state.question);
    const limit = reachedLimit(run);
    if (limit) return limit;
    const turn = await takePart(next, context).catch((error) => stopOf(error, run));
    if ('reason' in turn) return turn;
    try {
      // With what other calls have read meanwhile.
      reading.open = await reopen();
      addKnown(reading);
      run.listed = listedIn(reading.open);
      const part = reading.open.parts.find(({ state }) => state.question === next.state.question);
      if (part === undefined || part.state.ended) continue;
      const isFresh = request.fresh || part.state.fresh;
      const list = adListOf(part.question, { api, allowance, fresh: isFresh, maxLimit });
      run.onRequest = turn.onRequest;
      const { state } = part;
      const known = state.found === null ? await knownTotal(part.question, reading.open.contents, context) : undefined;
      const adIds = adIdsIn(reading.open, part);
      const stop = await gatherPart({ state, adIds, found: known?.ads }, list, run);
      if (stop.leadsNowhere) await whole.giveUp();
      if (stop.reason !== 'end') return stop;
      maxLimit = list.maxLimit;
    } finally {
      turn.end();
    }
  }
  await whole.end(clock());
  return { reason: 'end' };
}

/** Saves how a gathering of several parts stands. What has one part is saved with that. */
function wholeOf(reading: Reading, { split }: GatheringQuestion, dataset: Dataset) {
  const keptIn = ({ contents, whole }: Opened) => contents.gatherings.find(({ id }) => id === whole.id);
  const save = async (change: Partial<GatheringState>) => {
    if (split === undefined) return;
    const { open } = reading;
    open.whole = { ...open.whole, ...change, step: open.whole.step + 1 };
    await dataset.saveGathering({ ...open.whole, adIds: [] });
  };
  let begun: GatheringState | undefined;
  return {
    /** Only with the first page: a new gathering that reads nothing does not take the place of an earlier one. */
    async begin() {
      const { open } = reading;
      const kept = begun ?? keptIn(open);
      const isKept = kept?.parts.join() === open.whole.parts.join() && kept.ended === open.whole.ended;
      if (!isKept) await save({});
      begun = open.whole;
    },
    giveUp: () => save({ fresh: false }),
    async end(gatheredAt: number) {
      if (!reading.open.whole.ended) await save({ ended: true, fresh: false, gatheredAt });
    },
  };
}

const adIdsIn = ({ contents }: Opened, { state }: GatheringPart): ReadonlySet<string> =>
  contents.gatherings.find(({ id }) => id === state.id)?.adIds ?? new Set();

const listedIn = (open: Opened): number => open.parts.reduce((sum, part) => sum + adIdsIn(open, part).size, 0);

function addKnown({ open, read }: Reading): void {
  for (const part of open.parts) for (const id of adIdsIn(open, part)) read.add(id);
}

interface PartTurn {
  onRequest(request: Promise<unknown>): void;
  /** Whoever is next waits for pages that nobody waits for any more, and goes on after them. */
  end(): void;
}

/** Two calls that read the same part go one after the other. */
async function takePart({ state }: GatheringPart, context: ToolContext): Promise<PartTurn> {
  const end = await context.takeTurn(`pages of ${state.question}`);
  const ended: Promise<void>[] = [];
  const ignore = () => {};
  return {
    onRequest: (request) => ended.push(request.then(ignore, ignore)),
    end: () => void Promise.all(ended).then(end),
  };
}

/** Why a gathering stopped, and how to continue. */
function stopData({ reason, error }: Stop, { explain }: ToolContext) {
  const next = error && isRejected(error) ? startOver : nextSteps[reason];
  const isOurs = reason === 'maxCredits' || reason === 'deadline' || reason === 'shutdown';
  const { kind, text } = error && !isOurs ? explain(error) : { kind: undefined, text: undefined };
  return {
    stopped: reason,
    ...(reason === 'error' && kind && { error: kind }),
    ...(text && { problem: text }),
    ...(next && { next }),
  };
}

const nothingRead = () =>
  new AdLibraryError({ kind: 'timeout', problem: 'There was no time to read a page.', sent: false });
