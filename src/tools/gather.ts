import { adListOf } from '../dataset/ad-list.ts';
import { type GatherRun, gatherPart } from '../dataset/gather.ts';
import { resultOf } from '../dataset/gathering-result.ts';
import { type GatherOutput, noRoom, readAgain } from '../dataset/gathering-text.ts';
import { type GatheringQuestion, gatheringsOf, questionKey, timeAfter } from '../dataset/gatherings.ts';
import { gatheringSaver, type OpenGathering, openGathering } from '../dataset/open-gathering.ts';
import type { Stop } from '../dataset/stop.ts';
import type { Dataset } from '../state/dataset.ts';
import { maxPageSize } from './filter-values.ts';
import { estimate } from './gather-estimate.ts';
import { nothingRead, stopData } from './gather-stop.ts';
import type { ToolContext } from './tool-context.ts';

export interface GatherRequest {
  question: GatheringQuestion;
  maxAds: number;
  maxCredits: number;
  fresh: boolean;
}

/** Gathers within all limits, and tells how it stands. Two calls of the same question go one after the other. */
export async function gather(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const endTurn = await context.takeTurn(questionKey(request.question));
  try {
    return await gatherInTurn(request, context);
  } finally {
    endTurn();
  }
}

async function gatherInTurn(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const { question, maxCredits, fresh } = request;
  const { now, clock } = context;
  const dataset = await context.dataset();
  const contents = await dataset.contents();
  // What another call has read while this one waited for its turn is as new as it gets.
  const [newest] = gatheringsOf(contents, question);
  const startsOver = fresh && !(newest && newest.gatheredAt > now);
  const open = openGathering(question, contents, { fresh: startsOver, now: clock() });
  const hasEnded = open.parts.every(({ state }) => state.ended);
  if (maxCredits === 0 && !hasEnded) return estimate(question, context);

  const known = new Map(contents.gatherings.map(({ id, adIds }) => [id, adIds]));
  const read = new Set(open.parts.flatMap(({ state }) => [...(known.get(state.id) ?? [])]));
  const stop = await readAll({ open, known, read, dataset }, request, context);
  const after = await dataset.contents();
  const gathering = after.gatherings.find(({ id }) => id === open.whole.id);
  if (gathering === undefined || (stop.error && read.size === 0)) throw stop.error ?? nothingRead();
  const { adRows, tenantId } = context;
  const result = await resultOf(gathering, { contents: after, adRows, tenantId, since: now });
  const { maxAds = request.maxAds } = stop;
  const next = maxAds < request.maxAds ? noRoom(maxAds) : hasEnded && !result.complete ? readAgain : undefined;
  return { ...result, ...stopData(stop, context), ...(next && { next }) };
}

interface Reading {
  open: OpenGathering;
  /** Ids of the ads of each gathering, by its id. */
  known: ReadonlyMap<string, ReadonlySet<string>>;
  read: Set<string>;
  dataset: Dataset;
}

async function readAll(reading: Reading, request: GatherRequest, context: ToolContext): Promise<Stop> {
  const { open, known, read, dataset } = reading;
  const { api, clock, deadline, signal, isDraining, onProgress, adFilters } = context;
  const { maxCredits, fresh } = request;
  const allowance = await context.allowance(maxCredits);
  const save = gatheringSaver(open, (step) => dataset.saveGathering(step));
  const askMaxAds = async () => Math.min(request.maxAds, await dataset.maxAds());
  const onPage = (found: number | null) => {
    const isWhole = found !== null && open.parts.length === 1;
    const total = isWhole ? Math.max(read.size, Math.min(found, run.maxAds)) : undefined;
    const of = found === null ? '' : isWhole ? ` of ${found}` : '';
    onProgress?.({ progress: read.size, ...(total !== undefined && { total }), message: `${read.size} ads read${of}` });
  };
  const run: GatherRun = {
    allowance,
    maxAds: await askMaxAds(),
    askMaxAds,
    read,
    slowest: 0,
    clock,
    deadline,
    signal,
    isDraining,
    addItems: (batch) => dataset.addItems(batch),
    save,
    onPage,
  };
  let maxLimit = maxPageSize(adFilters);
  for (const { question, state } of open.parts) {
    if (state.ended) continue;
    const list = adListOf(question, { api, allowance, fresh, maxLimit });
    const stop = await gatherPart({ state, adIds: known.get(state.id) ?? new Set() }, list, run);
    if (stop.reason !== 'end') return stop;
    maxLimit = list.maxLimit;
  }
  if (open.whole.parts.length > 0 && !open.whole.ended)
    await dataset.saveGathering({ ...open.whole, ended: true, gatheredAt: timeAfter(open.whole, clock()), adIds: [] });
  return { reason: 'end' };
}
