import * as z from 'zod';
import { AdLibraryError } from '../api/call.ts';
import type { CallAllowance } from '../credits/meter.ts';
import {
  adListOf,
  type GatherRun,
  gatherPart,
  isAbandoned,
  isRejected,
  reachedLimit,
  type Stop,
  stopOf,
  totalOf,
  wholeNumber,
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
import {
  type GatheringPart,
  type GatheringQuestion,
  gatheringsOf,
  type OpenGathering,
  openGathering,
  questionKey,
  withoutRepeats,
} from '../dataset/gatherings.ts';
import { count, priceText } from '../present/list-text.ts';
import { type Dataset, type DatasetContents, type Gathering, type GatheringState, idKey } from '../state/dataset.ts';
import { maxPageSize } from './filter-values.ts';
import {
  adFilters,
  type CountedAds,
  checkQuestion,
  collectionId,
  defineTool,
  fresh,
  readOnly,
  split,
  type ToolContext,
} from './tool.ts';

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

export interface GatherRequest {
  question: GatheringQuestion;
  maxAds: number;
  maxCredits: number;
  fresh: boolean;
}

/** How long calls with `fresh` go on with a gathering that one of them began, in milliseconds: a day. */
const maxFreshAge = 86_400_000;

/** Gathers within all limits, and tells how it stands. */
async function gather(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const before = await contentsOf(context);
  return inTurn(request, context, async (question) => {
    const opened = await openNow({ ...request, question }, before, context);
    const hasEnded = opened.parts.every(({ state }) => state.ended);
    if (request.maxCredits === 0 && !hasEnded) return estimate({ question, ...opened }, context);
    const gathered = await readWithin({ ...request, question }, { before, opened }, context);
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

/** Two calls of the same question go one after the other. */
async function inTurn<Result>(
  request: GatherRequest,
  { takeTurn }: ToolContext,
  work: (question: GatheringQuestion) => Promise<Result>,
): Promise<Result> {
  const question = withoutRepeats(request.question);
  const endTurn = await takeTurn(questionKey(question));
  try {
    return await work(question);
  } finally {
    endTurn();
  }
}

export const contentsOf = async ({ dataset }: ToolContext): Promise<DatasetContents> => (await dataset()).contents();

/** A gathering as a call left it. */
export interface Gathered {
  /** Why it read no more. */
  stop: Stop;
  /** Undefined where nothing of it is kept. */
  gathering: Gathering | undefined;
  /** What there is now. */
  contents: DatasetContents;
  /** How many ads are read, and the ids of those that this call has read. */
  read: number;
  brought: ReadonlySet<string>;
  /** Credits that this call spent on it, or may have. */
  spent: number;
  /** One that was begun with `fresh` was stopped too long ago to go on with it. */
  startedOver: boolean;
  /** To be called when its result is returned: whoever calls with `fresh` from then on begins anew. */
  markReturned(): Promise<void>;
}

/** Reads a question anew, as a call with `fresh` does. @param before what there was when the call came */
export function gatherAnew(
  request: Omit<GatherRequest, 'fresh'>,
  before: DatasetContents,
  context: ToolContext,
): Promise<Gathered> {
  const fresh = { ...request, fresh: true };
  return inTurn(fresh, context, async (question) => {
    const opened = await openNow({ ...fresh, question }, before, context);
    return readWithin({ ...fresh, question }, { before, opened }, context);
  });
}

async function readWithin(
  request: GatherRequest,
  { before, opened }: { before: DatasetContents; opened: Opened },
  context: ToolContext,
): Promise<Gathered> {
  const reading: Reading = { open: opened, read: new Set(), brought: new Set() };
  addKnown(reading);
  const allowance = await context.allowance(request.maxCredits);
  const reopen = () => openNow(request, before, context);
  const stop = await readAll(reading, { request, context, allowance, reopen });
  const dataset = await context.dataset();
  const contents = await dataset.contents();
  const { whole, parts } = reading.open;
  const ids = new Set([whole.id, ...parts.map(({ state }) => state.id)]);
  return {
    stop,
    gathering: contents.gatherings.find(({ id }) => id === whole.id),
    contents,
    read: reading.read.size,
    brought: reading.brought,
    spent: await allowance.used(),
    startedOver: opened.isTooOld && reading.brought.size > 0,
    async markReturned() {
      if (isAbandoned(context.signal)) return;
      for (const gathering of contents.gatherings)
        if (ids.has(gathering.id) && gathering.ended && gathering.fresh)
          await dataset.saveGathering({ ...gathering, fresh: false, step: gathering.step + 1, adIds: [] });
    },
  };
}

/** Where there is room for fewer ads than were asked for. */
export function roomText({ maxAds, maxInParts }: Stop, request: Pick<GatherRequest, 'maxAds'>): string | undefined {
  if (maxInParts !== undefined) return noRoom(maxInParts, true);
  return maxAds !== undefined && maxAds < request.maxAds ? noRoom(maxAds, false) : undefined;
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
  allowance: CallAllowance;
  reopen(): Promise<Opened>;
}

async function readAll(reading: Reading, { request, context, allowance, reopen }: Work): Promise<Stop> {
  const { read, brought } = reading;
  const { api, clock, deadline, signal, isDraining, onProgress } = context;
  const dataset = await context.dataset();
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
      const list = adListOf(part.question, { api, allowance, fresh: isFresh, maxLimit, isCached: context.isCached });
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
      if (!reading.open.whole.ended) await save({ ended: true, gatheredAt });
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

interface Estimated {
  question: GatheringQuestion;
  parts: readonly GatheringPart[];
  contents: DatasetContents;
}

type Total = Pick<CountedAds, 'ads' | 'at'>;

interface PartTotal {
  question: GatheringQuestion;
  /** Ads that are read already. */
  read: number;
  /** Those included that were let go since. */
  listed: number;
  ended: boolean;
  /** Undefined where nothing tells. */
  total: Total | undefined;
  /** Whether that is known to the gathering, too. */
  isTotalKnown: boolean;
}

/** The age from which a total is dated, in milliseconds: a day. */
const datedAge = 86_400_000;

/** What reading the rest may cost. Where nothing tells how many ads there are, one search does, or the list of collections. */
async function estimate({ question, parts, contents }: Estimated, context: ToolContext): Promise<GatherOutput> {
  const { collectionId, filters = {}, split } = question;
  const base = { filters, collectionId };
  const totals = await Promise.all(parts.map((part) => totalOfPart(part, contents, context)));
  const open = totals.filter(({ total }) => total === undefined);
  const knownBase = open.length > 0 && split ? await knownTotal(base, contents, context) : undefined;
  const sent = open.length > 0 && !knownBase ? await countNow(base, context) : undefined;
  const guessed = open.filter((part) => questionKey(part.question) !== questionKey(base));
  const isKept = sent?.total !== undefined && (await knownTotal(base, contents, context)) !== undefined;
  for (const part of open) {
    part.total = knownBase ?? sent?.total;
    part.isTotalKnown = isKept && !guessed.includes(part);
  }
  const all = totals.flatMap(({ total, ...part }) => (total ? { ...part, ...total } : []));
  const took = sent?.search ? 'It took one search.' : undefined;
  if (all.length < totals.length) return output({ summary: [noTotal, took], read: 0, estimate: unknown });

  const size = collectionId === undefined ? maxPageSize(context.adFilters) : 100;
  const operation = collectionId === undefined ? 'searchAds' : 'listCollectionItems';
  // Opened only now, because the search has shown a price.
  const allowance = await context.allowance(0);
  // Where all that were found are read and the service announced more, one page shows whether there are more.
  const rests = all.map(({ ads, listed, ended }) => (ended ? 0 : Math.max(1, ads - listed)));
  const costs = await Promise.all(
    all.map(async ({ ads, listed, isTotalKnown }, index) => {
      const items = rests[index] ?? 0;
      const cost = items === 0 ? free : await allowance.costOf({ operation, items, size, isTotalKnown });
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
    sentence({ ads, read, pages, price: cost && priceText(cost) }),
    guessed.length > 0 && guessedText(guessed.length, knownBase ?? sent?.total, context),
    context.now - oldest > datedAge && `The number of ads is of ${minute(new Date(oldest).toISOString())}.`,
    took,
  ];
  const credits = cost?.isExact || cost?.most === 0 ? cost.most : null;
  const bound = credits === null && cost && { atMost: cost.most };
  return output({ summary, read, estimate: { ads, pages, credits, ...bound } });
}

type Estimate = NonNullable<GatherOutput['estimate']>;

const unknown: Estimate = { ads: null, pages: null, credits: null };
const noTotal = 'The service does not say how many ads there are.';
const free = { most: 0, isExact: true };

const output = ({
  summary,
  read,
  estimate,
}: {
  summary: (string | false | undefined)[];
  read: number;
  estimate: Estimate;
}): GatherOutput => ({
  ...{ gathering: null, found: estimate.ads, read, added: 0, updated: 0, gone: null, complete: false },
  ...{ stopped: 'estimate', estimate, summary: summary.filter(Boolean).join(' ') },
});

interface Sentence extends Record<'ads' | 'read' | 'pages', number> {
  price: string | undefined;
}

function sentence({ ads, read, pages, price }: Sentence): string {
  const all = `Estimate: ${count(ads, 'ad')}${read > 0 ? `, ${read} of which are read` : ''}`;
  if (pages === 0) return `${all}: free, since nothing is left to read.`;
  const cost = price === undefined ? 'at a price that is not known yet' : price === 'free' ? price : `for ${price}`;
  return `${all}${read > 0 ? '; the rest' : ''} in ${count(pages, 'page')}, ${cost}.`;
}

function guessedText(parts: number, base: Total | undefined, { offers }: ToolContext): string {
  const how = offers('count_ads') ? ' count_ads with the same split tells them first.' : '';
  const which = parts === 1 ? 'one part is' : `${parts} parts are`;
  return `How many ads match ${which} not known: each may have all ${base?.ads} that match filters.${how}`;
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

/** What a gathering of the question or a kept answer tells, whichever is newer. */
async function knownTotal(
  question: GatheringQuestion,
  contents: DatasetContents,
  context: ToolContext,
): Promise<Total | undefined> {
  const kept = question.collectionId === undefined ? await context.keptTotal(question.filters ?? {}) : undefined;
  const gathering = gatheringsOf(contents, question).find(({ found, complete }) => found !== null || complete);
  const gathered = gathering && { ads: gathering.found ?? gathering.adIds.size, at: gathering.gatheredAt };
  return gathering && gathering.answerOrder > (kept?.order ?? 0) ? gathered : kept;
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
  return wholeNumber(collection?.adCount);
}

const noCollection = () =>
  new AdLibraryError({ kind: 'not_found', problem: 'There is no collection with this id in the list of collections.' });
