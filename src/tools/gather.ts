import { AdLibraryError } from '../api/errors.ts';
import { adListOf } from '../dataset/ad-list.ts';
import { type GatherRun, gatherPart } from '../dataset/gather.ts';
import { resultOf } from '../dataset/gathering-result.ts';
import { type GatherOutput, nextSteps, startOver } from '../dataset/gathering-text.ts';
import { type GatheringQuestion, questionKey } from '../dataset/gatherings.ts';
import { gatheringSaver, type OpenGathering, openGathering } from '../dataset/open-gathering.ts';
import type { Stop } from '../dataset/stop.ts';
import { type Dataset, idKey } from '../state/dataset.ts';
import { estimate } from './gather-estimate.ts';
import { maxPageSize } from './page-limit.ts';
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
  const open = openGathering(question, contents, { fresh, now: clock() });
  const hasEnded = open.parts.every(({ state }) => state.ended);
  if (maxCredits === 0 && !hasEnded) return estimate(question, context);

  const known = new Map(contents.gatherings.map(({ id, adIds }) => [id, adIds]));
  const read = new Set(open.parts.flatMap(({ state }) => [...(known.get(state.id) ?? [])].map(idKey)));
  const stop = await readAll({ open, read, dataset }, request, context);
  const after = await dataset.contents();
  const gathering = after.gatherings.find(({ id }) => id === open.whole.id);
  if (gathering === undefined || (stop.error && read.size === 0)) throw stop.error ?? nothingRead();
  const { adRows, tenantId } = context;
  const result = await resultOf(gathering, { contents: after, adRows, tenantId, since: now });
  return { ...result, ...stopped(stop, context) };
}

interface Reading {
  open: OpenGathering;
  read: Set<string>;
  dataset: Dataset;
}

async function readAll({ open, read, dataset }: Reading, request: GatherRequest, context: ToolContext): Promise<Stop> {
  const { api, clock, deadline, signal, isDraining, onProgress, adFilters } = context;
  const { maxCredits, fresh } = request;
  const allowance = await context.allowance(maxCredits);
  const maxAds = Math.min(request.maxAds, await dataset.maxAds());
  const save = gatheringSaver(open, (step) => dataset.saveGathering(step));
  const onPage = (found: number | null) => {
    const isWhole = found !== null && open.parts.length === 1;
    const total = isWhole ? Math.max(read.size, Math.min(found, maxAds)) : undefined;
    const of = found === null ? '' : isWhole ? ` of ${found}` : '';
    onProgress?.({ progress: read.size, ...(total !== undefined && { total }), message: `${read.size} ads read${of}` });
  };
  const run: GatherRun = {
    ...{ allowance, maxAds, read, slowest: 0, clock, deadline, signal, isDraining, save, onPage },
  };
  const options = { api, allowance, fresh, maxLimit: maxPageSize(adFilters) };
  for (const { question, state } of open.parts) {
    if (state.ended) continue;
    const stop = await gatherPart(state, adListOf(question, options), run);
    if (stop.reason !== 'end') return stop;
  }
  if (open.whole.parts.length > 0 && !open.whole.ended)
    await dataset.saveGathering({ ...open.whole, ended: true, gatheredAt: clock(), adIds: [] });
  return { reason: 'end' };
}

function stopped({ reason, error }: Stop, { explain }: ToolContext) {
  const isRejected = error?.failure.kind === 'invalid_request' || error?.failure.kind === 'not_found';
  const next = isRejected ? startOver : nextSteps[reason];
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
