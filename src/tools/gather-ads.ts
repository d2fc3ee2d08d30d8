import * as z from 'zod';
import { AdLibraryError } from '../api/errors.ts';
import {
  type CountedAds,
  type GatherRequest,
  gatherInTurn,
  isRejected,
  knownTotal,
  listOf,
  maxPageSize,
  type Opened,
  type Stop,
  totalOf,
  wholeCount,
} from '../dataset/gather.ts';
import {
  beginsAnew,
  type GatherOutput,
  gatheringText,
  minute,
  nextSteps,
  noRoom,
  readAgain,
  resultOf,
  startOver,
} from '../dataset/gathering-report.ts';
import { type GatheringPart, type GatheringQuestion, questionKey } from '../dataset/gatherings.ts';
import { count, priceText } from '../present/lists.ts';
import type { DatasetContents } from '../state/dataset.ts';
import { adFilters, checkQuestion, collectionId, fresh, split } from './arguments.ts';
import { defineTool, type FieldMeanings, type FieldsOf, readOnly, type ToolContext } from './tool.ts';

export const gatherAds = defineTool({
  name: 'gather_ads',
  title: 'Gather ads',
  description:
    'Read all ads that match, or a collection, into the dataset and summarize them. Call it again to continue; nothing is paid twice.',
  guide:
    'Anything else about many ads: gather_ads, first with maxCredits: 0, which estimates the price; say it to the user, and gather once.',
  annotations: readOnly,
  example: () => ({ filters: { countries: ['DE'] }, maxAds: 50, maxCredits: 10 }),
  operations: ['searchAds', 'listCollectionItems', 'listCollections'],
  severalCalls: true,
  showsBoard: true,
  forBoard: (data) => {
    const { gathering, estimate, read } = data as { gathering: string | null; estimate?: object; read: number };
    return { gathering, ...(estimate && { estimate: { ...estimate, read } }) };
  },
  reportsProgress: true,
  input: z.strictObject({
    filters: adFilters,
    split,
    collectionId: collectionId.optional(),
    maxAds: z.int().min(1).max(10_000).optional().describe('default 1000'),
    maxCredits: z.number().min(0).describe('0: estimate, by at most one search'),
    fresh: fresh.describe('true: read again and report changes'),
  }),
  output: z.looseObject({
    gathering: z.string().nullable(),
    found: z.number().nullable(),
    read: z.number(),
    complete: z.boolean(),
    stopped: z.string(),
    summary: z.string(),
  }),
  run({ filters, split, collectionId, maxAds = 1000, maxCredits, fresh = false }, context) {
    checkQuestion([filters, ...(split ?? [])], { collectionId, split });
    checkQuestion([], { collectionId, filters });
    return gather({ question: { filters, split, collectionId }, maxAds, maxCredits, fresh }, context);
  },
  render: gatheringText,
});

/** Gathers within all limits, and returns how the gathering stands. */
async function gather(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const before = await (await context.dataset()).contents();
  return gatherInTurn(request, before, context, async (opened, read) => {
    const hasEnded = opened.parts.every(({ state }) => state.ended);
    if (request.maxCredits === 0 && !hasEnded) return estimate(request.question, opened, context);
    const gathered = await read();
    const { gathering, stop, brought, contents } = gathered;
    if (gathering === undefined || (stop.error && gathered.read === 0)) throw stop.error ?? nothingRead();
    const { adRows, tenantId } = context;
    const result = await resultOf(gathering, { contents, before: opened.contents, brought, adRows, tenantId });
    const next = roomText(stop, request) ?? (hasEnded && !result.complete ? readAgain : undefined);
    await gathered.markReturned();
    const held = { ads: result.found ?? result.read, pages: 0, credits: 0 };
    return {
      ...result,
      ...stopData(stop, context),
      ...(next && { next }),
      ...(gathered.startedOver && { note: beginsAnew }),
      ...(request.maxCredits === 0 && { estimate: held }),
    };
  });
}

/** A note for a gathering with room for fewer ads than were asked for. */
export function roomText({ maxAds, maxInParts }: Stop, request: Pick<GatherRequest, 'maxAds'>): string | undefined {
  if (maxInParts !== undefined) return noRoom(maxInParts, true);
  return maxAds !== undefined && maxAds < request.maxAds ? noRoom(maxAds, false) : undefined;
}

/** Why a gathering stopped, and how to continue. */
export function stopData({ reason, error }: Stop, { explain }: ToolContext) {
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

type Total = Pick<CountedAds, 'ads' | 'at'>;

interface PartTotal {
  question: GatheringQuestion;
  /** Ads that are read already. */
  read: number;
  /** Ads that were read, including ads that were evicted since. */
  listed: number;
  ended: boolean;
  /** Undefined where nothing tells the total. */
  total: Total | undefined;
  /** Whether the gathering knows the total, too. */
  isTotalKnown: boolean;
}

/** The age from which a total is dated, in milliseconds: a day. */
const datedAge = 86_400_000;

/**
 * What reading the rest may cost. Where nothing tells how many ads there are, one search is made, or the list of
 * collections is read.
 */
async function estimate(
  question: GatheringQuestion,
  { parts, contents }: Opened,
  context: ToolContext,
): Promise<GatherOutput> {
  const { collectionId, filters = {}, split } = question;
  const base = { filters, collectionId };
  const totals = await Promise.all(parts.map((part) => totalOfPart(part, contents, context)));
  const open = totals.filter(({ total }) => total === undefined);
  const knownBase = open.length > 0 && split ? await knownTotal(base, contents, context) : undefined;
  const sent = open.length > 0 && !knownBase ? await countNow(base, context) : undefined;
  const guessed = open.filter((part) => questionKey(part.question) !== questionKey(base));
  const isCached = sent?.total !== undefined && (await knownTotal(base, contents, context)) !== undefined;
  for (const part of open) {
    part.total = knownBase ?? sent?.total;
    part.isTotalKnown = isCached && !guessed.includes(part);
  }
  const all = totals.flatMap(({ total, ...part }) => (total ? { ...part, ...total } : []));
  const took = sent?.search ? 'It took one search.' : undefined;
  if (all.length < totals.length) return output([noTotal, took], 0, unknown);

  const size = maxPageSize(question, context.adFilters);
  const operation = listOf(question);
  // Opened only now, because the search has shown a price.
  const callBudget = await context.callBudget(0);
  // If all ads that were found are read and the service announced more, one page shows whether there are more.
  const rests = all.map(({ ads, listed, ended }) => (ended ? 0 : Math.max(1, ads - listed)));
  const costs = await Promise.all(
    all.map(async ({ ads, listed, isTotalKnown }, index) => {
      const items = rests[index] ?? 0;
      const cost = items === 0 ? free : await callBudget.costOf({ operation, items, size, isTotalKnown });
      return cost && { ...cost, isExact: cost.isExact && (items === 0 || ads > listed) };
    }),
  );
  const cost = costs.every((one) => one !== undefined)
    ? {
        most: sumOf(costs.map(({ most }) => most)),
        isExact: guessed.length === 0 && costs.every(({ isExact }) => isExact),
      }
    : undefined;
  const ads = sumOf(all.map((part) => Math.max(part.ads, part.read)));
  const read = sumOf(all.map((part) => part.read));
  const pages = sumOf(rests.map((items) => Math.ceil(items / size)));
  const oldest = Math.min(...all.map(({ at }) => at));
  const summary = [
    sentence(ads, read, pages, cost && priceText(cost)),
    cost && cost.most > 0 && !cost.isExact && 'The price of such pages is not known yet, so it may be much less.',
    guessed.length > 0 && guessedText(guessed.length, knownBase ?? sent?.total, context),
    context.now - oldest > datedAge && `The number of ads is of ${minute(new Date(oldest).toISOString())}.`,
    took,
  ];
  const credits = cost?.isExact || cost?.most === 0 ? cost.most : null;
  const bound = credits === null && cost && { atMost: cost.most };
  return output(summary, read, { ads, pages, credits, ...bound });
}

type Estimate = NonNullable<GatherOutput['estimate']>;

const unknown: Estimate = { ads: null, pages: null, credits: null };
const noTotal = 'The service does not say how many ads there are.';
const free = { most: 0, isExact: true };

const output = (summary: (string | false | undefined)[], read: number, estimate: Estimate): GatherOutput => ({
  ...{ gathering: null, found: estimate.ads, read, added: 0, updated: 0, gone: null, complete: false },
  ...{ stopped: 'estimate', estimate, summary: summary.filter(Boolean).join(' ') },
});

function sentence(ads: number, read: number, pages: number, price: string | undefined): string {
  const all = `Estimate: ${count(ads, 'ad')}${read > 0 ? `, ${read} of which are read` : ''}`;
  if (pages === 0) return `${all}: free, since nothing is left to read.`;
  const cost = price === undefined ? 'at a price that is not known yet' : price === 'free' ? price : `for ${price}`;
  return `${all}${read > 0 ? '; the rest' : ''} in ${count(pages, 'page')}, ${cost}.`;
}

function guessedText(parts: number, base: Total | undefined, { offers }: ToolContext): string {
  const how = offers('count_ads') ? ' count_ads with the same split tells them first.' : '';
  const which = parts === 1 ? 'one part' : `${parts} parts`;
  return `It is not known how many ads match ${which}: each may have all ${base?.ads} that match filters.${how}`;
}

const sumOf = (numbers: readonly number[]): number =>
  Math.round(1e6 * numbers.reduce((sum, number) => sum + number, 0)) / 1e6;

async function totalOfPart(
  { question, state }: GatheringPart,
  contents: DatasetContents,
  context: ToolContext,
): Promise<PartTotal> {
  const begun = contents.gatherings.find(({ id }) => id === state.id);
  const read = begun?.adIds.size ?? 0;
  const found = begun?.found ?? (state.ended ? read : null);
  const total = found === null ? await knownTotal(question, contents, context) : { ads: found, at: state.gatheredAt };
  return {
    question,
    read,
    listed: Math.max(read, state.listed),
    ended: state.ended,
    total,
    isTotalKnown: total !== undefined,
  };
}

async function countNow(
  { filters, collectionId }: GatheringQuestion,
  context: ToolContext,
): Promise<{ total: Total | undefined; search: boolean }> {
  const ads = await (collectionId === undefined
    ? context.api.searchAds({ body: { ...filters, limit: 1 } }).then(totalOf)
    : countItems(collectionId, context));
  return { total: ads === undefined ? undefined : { ads, at: context.now }, search: collectionId === undefined };
}

async function countItems(collectionId: string, { api }: ToolContext): Promise<number | undefined> {
  const { value, raw } = await api.listCollections();
  const collection = value.items.find(({ id }) => id?.toLowerCase() === collectionId);
  // The document knows no further pages of this list.
  const { hasMore, cursor } = raw as { hasMore?: unknown; cursor?: unknown };
  if (collection === undefined && !hasMore && !cursor) throw noCollection();
  return wholeCount(collection?.adCount);
}

const noCollection = () =>
  new AdLibraryError({ kind: 'not_found', problem: 'There is no collection with this id in the list of collections.' });

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  gathering: 'string | null: its id, in `gatherings` of SQL; null of an estimate',
  'gatheredAt?': 'string: when its oldest part was read',
  found: 'number | null: ads that match; with parts that overlap, the sum of the parts',
  'foundInParts?': 'string: the same in words, where only some parts are known',
  read: 'number: ads that are read, by this call and those before',
  added: 'number: ads that are new in the dataset',
  updated: 'number: ads that changed; `appUrl`, `lastSeenAt` and the ends of media addresses do not count',
  gone: 'string[] | null: ids of the last gathering that are no longer found; null unless both are complete',
  'missing?': 'number: ads that were read and that the dataset no longer has',
  'sinceLast?': 'SinceLast: what changed since the last complete gathering of the same question',
  complete: 'boolean: whether all ads that match are read',
  stopped:
    'string: why it ended: `end`, `maxAds`, `maxCredits`, `budget`, `usage_limit`, `deadline`, `estimate`, `error`, `shutdown`',
  'error?': 'string: the kind of error that stopped it',
  'problem?': 'string: what that error says',
  'next?': 'string: how to continue',
  'note?': 'string: what else to know, in words',
  'estimate?': 'Estimate: what reading the rest costs; always there with `maxCredits: 0`',
  summary: 'string: what was read, in words and numbers',
} satisfies FieldsOf<GatherOutput>;

export const resultObjects = {
  Estimate: {
    ads: 'number | null: ads that match',
    pages: 'number | null: calls that reading them takes',
    credits: 'number | null: their price; 0 where nothing is left to read',
    'atMost?': 'number: the most it can be, where `credits` is null for want of prices',
  },
  SinceLast: {
    gatheredAt: 'string: when the last complete gathering of the same question was made',
    fresh: 'number: ads that are new since then',
    updated: 'number: ads that changed since then',
    gone: 'number: ads that are no longer found',
  },
} satisfies Record<string, FieldMeanings>;
