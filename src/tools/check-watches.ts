import * as z from 'zod';
import type { AdLibraryError } from '../api/errors.ts';
import { type Gathered, gatherInTurn, isAbandoned, type Progress, type Stop, stopOf } from '../dataset/gather.ts';
import { creditsOf, type EstimateView } from '../dataset/gathering-output.ts';
import { beginsAnew, estimateText, roomText, stopData } from '../dataset/gathering-report.ts';
import { type GatheringQuestion, gatheringsOf, questionKey } from '../dataset/gatherings.ts';
import { UsualView, usualLaunches } from '../dataset/launches.ts';
import { findNamed } from '../dataset/saved-reports.ts';
import { isoTime } from '../dataset/tables.ts';
import {
  type Check,
  compareWithLast,
  leastRecentFirst,
  questionOf,
  saveChecks,
  type Watch,
  watchesIn,
} from '../dataset/watches.ts';
import { type DatasetContents, type Gathering, sumOf } from '../storage/dataset.ts';
import { reportTtl } from '../storage/exports.ts';
import { dayOf, minute } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { count, numberText } from '../views/lists.ts';
import { linesOf, quote } from '../views/safe-text.ts';
import { clampLines, estimateTokens, untrustedId } from '../views/tokens.ts';
import { fresh } from './arguments.ts';
import { priceOfRest, requireFree } from './gather-ads.ts';
import { thumbnailsOf } from './thumbnails.ts';
import { addressesOf, defineListTool, locationText, readOnly, type ToolContext } from './tool.ts';
import { newsOf, newsText, usualText } from './watch-news.ts';

const CheckView = z
  .looseObject({
    name: z.string().describe('Name of the watch.'),
    new: z.array(z.string()).nullable().describe('Ad ids; null at the first check.'),
    changed: z.array(z.string()).nullable().describe('ids; null at a first check'),
    gone: z.array(z.string()).nullable().describe('Ad ids; null unless both checks are complete.'),
    more: z.looseObject({}).optional().describe('For lists that were cut: number of ids left out.'),
    found: z.number().nullable().describe('Number of matching ads.'),
    read: z.number().describe('Number of ads read.'),
    complete: z.boolean().describe('true if all matching ads were read.'),
    stopped: z.string().describe('Why the check ended, as in gather_ads.'),
    error: z.string().optional().describe('Kind of the error.'),
    problem: z.string().optional(),
    since: z.string().nullable().describe('Time of the check that this one is compared with.'),
    usual: UsualView.optional().describe('Launches since then, compared with the weeks before.'),
    gathering: z.string().optional().describe('Id of the gathering.'),
    note: z.string().optional().describe('When the question was read, if nothing was sent now.'),
  })
  .meta({ title: 'Check' });
type CheckView = DataOf<typeof CheckView>;

export const checkWatches = defineListTool({
  name: 'check_watches',
  title: 'Check what is new',
  description:
    'Check what you monitor: which ads (creatives) of a watch are new, changed or gone since the last complete check. Call it on a schedule, for example once a week, to track how the creatives of competitors shift week over week.',
  guide: 'What is new since the last time: check_watches.',
  annotations: readOnly,
  example: () => ({ maxCredits: 20 }),
  operations: ['searchAds', 'listCollectionItems'],
  severalCalls: true,
  keepsRecords: true,
  showsBoard: true,
  forBoard: (data) => {
    const { watches } = data as { watches: CheckView[] };
    const ids = watches.flatMap((watch) => [...(watch.new ?? []), ...(watch.changed ?? [])]);
    return ids.length > 0
      ? { ids: [...new Set(ids)] }
      : { gathering: watches.find((one) => one.gathering)?.gathering ?? null };
  },
  reportsProgress: true,
  input: z.strictObject({
    names: z.array(z.string()).min(1).optional().describe('Names of watches. Default: all.'),
    maxCredits: z.number().min(0).optional().describe('Most credits for the whole call. 0 returns an estimate.'),
    fresh: fresh.describe('true reads again, even if the question was read minutes ago.'),
  }),
  output: z.looseObject({
    watches: z.array(CheckView),
    stopped: z.string().optional().describe('Why the call stopped, as in gather_ads.'),
    estimate: z.looseObject({}).optional().describe('Estimate as in gather_ads, with maxCredits: 0.'),
    note: z.string().optional(),
  }),
  async run({ names, maxCredits, fresh = false }, context) {
    const { userRecords } = await context.dataset();
    const all = watchesIn(await userRecords.read('watch'));
    const chosen = names ? findNamed('watch', all, names) : all;
    if (maxCredits === 0) return estimateChecks(chosen, fresh, context);
    if (maxCredits === undefined) for (const watch of chosen) await requireFree(questionOf(watch), context);
    const { checked, ended } = await checkAll(chosen, { maxCredits, fresh }, context);
    const failure = checked.find(({ stop }) => stop.error)?.stop.error;
    if (failure && checked.every(({ check }) => check === undefined)) throw failure;
    const note = isAbandoned(context.signal) ? undefined : await keep(checked, context);
    return viewChecks(checked, { ...(ended && { stopped: ended }), ...(note && { note }) }, context);
  },
});

interface Checked {
  watch: Watch;
  /** Why the check read no more, and whether that ended the call before the turn of this watch. */
  stop: Stop;
  isSkipped: boolean;
  /** A gathering of some minutes ago served as its reading. */
  isRecent: boolean;
  gathered?: Gathered | undefined;
  check?: Check | undefined;
}

const defaultMaxAds = 1000;

/** Those checked longest ago come first. Watches with the same question are read once. */
async function checkAll(
  chosen: readonly Watch[],
  { maxCredits, fresh }: { maxCredits: number | undefined; fresh: boolean },
  context: ToolContext,
) {
  const before = await (await context.dataset()).contents();
  const complete = new Map<string, Gathered>();
  const checked: Checked[] = [];
  let [remaining, adsRead] = [maxCredits ?? Infinity, 0];
  let ended: Stop | undefined;
  for (const watch of leastRecentFirst(chosen)) {
    const request = {
      question: questionOf(watch),
      maxAds: watch.maxAds ?? defaultMaxAds,
      maxCredits: maxCredits === undefined ? undefined : Math.max(0, Math.min(watch.maxCredits, remaining)),
      fresh: true,
    };
    const key = questionKey(request.question);
    const reading = complete.get(key) ?? (fresh ? undefined : recentReading(request.question, before, context));
    const start = `watch ${checked.length + 1} of ${chosen.length}: `;
    const read = (): Promise<{ stop: Stop; gathered?: Gathered }> =>
      gatherInTurn(request, before, { ...context, ...progressOf(context, start, adsRead) }, (_, read) => read()).then(
        (gathered) => ({ stop: gathered.stop, gathered }),
        (error) => ({ stop: stopOf(error, context) }),
      );
    const { stop, gathered } = reading
      ? { stop: reading.stop, gathered: reading }
      : ended
        ? { stop: ended }
        : await read();
    const check = gathered && checkOf(watch, gathered, context.clock());
    if (gathered && gathered !== reading) remaining -= gathered.spent;
    adsRead += gathered?.readByCall.size ?? 0;
    const isRecent = reading !== undefined && !complete.has(key);
    checked.push({ watch, stop, isSkipped: !reading && ended !== undefined, isRecent, gathered, check });
    if (gathered && check?.gathering.complete && !isRecent) complete.set(key, gathered);
    ended ??= stopOfAll(stop);
  }
  const isShort = ({ stop: { reason }, watch }: Checked) =>
    reason === 'budget' || (reason === 'maxCredits' && watch.maxCredits > remaining);
  return { checked, ended: (ended ?? checked.find(isShort)?.stop)?.reason };
}

/** The age up to which a complete gathering serves as the reading of a check, if answers are cached as long. */
const recentMs = 900_000;

function recentReading(question: GatheringQuestion, contents: DatasetContents, { now, cacheMs }: ToolContext) {
  const gathering = gatheringsOf(contents, question).find(({ complete }) => complete);
  if (!gathering || Math.abs(now - gathering.gatheredAt) >= Math.min(recentMs, cacheMs)) return;
  const nothing = { readByCall: new Set<string>(), spent: 0, startedOver: false, markReturned: async () => {} };
  return { stop: { reason: 'end' }, gathering, contents, read: gathering.adIds.size, ...nothing } satisfies Gathered;
}

/** What a check would cost, by all that is known: nothing is sent. */
async function estimateChecks(chosen: readonly Watch[], fresh: boolean, context: ToolContext) {
  const contents = await (await context.dataset()).contents();
  const prices = new Map<string, EstimateView | undefined>();
  for (const watch of chosen) {
    const question = questionOf(watch);
    if (!fresh && recentReading(question, contents, context)) continue;
    prices.set(questionKey(question), await priceOfRest(question, contents, true, context));
  }
  const [pages = null, ads = null, atMost = null] = (['pages', 'ads', 'atMost'] as const).map((name) => {
    const figures = [...prices.values()].flatMap((price) => price?.[name] ?? []);
    return figures.length < prices.size ? null : sumOf(figures);
  });
  const atLeast = sumOf([...prices.values()].map((price) => price?.atLeast ?? 0));
  const estimate = { pages, ...creditsOf(atLeast, atMost ?? undefined) };
  const text =
    pages === null
      ? 'Estimate: how many ads match is unknown for some watches. The first check tells.'
      : `Estimate: ${estimateText({ ads, ...estimate }, 0)}`;
  return { data: { watches: [], estimate, stopped: 'estimate' }, text };
}

function checkOf(watch: Watch, { gathering, contents, read }: Gathered, at: number): Check | undefined {
  if (gathering === undefined) return;
  return gathering.complete || read > 0 ? compareWithLast(watch, gathering, contents, at) : undefined;
}

/** Whether a stop ends the whole call: the next watch would be refused, or there is no time for it. */
function stopOfAll(stop: Stop): Stop | undefined {
  const isOver = ['usage_limit', 'deadline', 'shutdown'].includes(stop.reason);
  return isOver || stop.error?.failure.kind === 'payment_required' ? stop : undefined;
}

const progressOf = ({ onProgress }: ToolContext, start: string, before: number) =>
  onProgress && {
    onProgress: ({ progress, message }: Progress) =>
      onProgress({ progress: before + progress, message: start + message }),
  };

/** Checks first: if the process ends in between, the next check takes the same gatherings and compares alike. */
async function keep(checked: readonly Checked[], context: ToolContext): Promise<string | undefined> {
  const { userRecords } = await context.dataset();
  try {
    await saveChecks(
      userRecords,
      checked.flatMap(({ check }) => check ?? []),
    );
  } catch (error) {
    const { text } = context.explain(error as AdLibraryError);
    return `This check could not be stored, so the next one compares with the same earlier check. ${text}`;
  }
  for (const { gathered } of checked) await gathered?.markReturned();
  return;
}

const maxIds = 600;

async function viewChecks(checked: readonly Checked[], about: { note?: string }, context: ToolContext) {
  const lists = checked.flatMap(({ check }) => Object.values(check?.changes ?? {}).filter(({ length }) => length > 0));
  const max = Math.max(4, Math.floor(maxIds / Math.max(1, lists.length)));
  const views: CheckedView[] = [];
  for (const one of checked) views.push(await viewCheck(one, max, context));
  const head = checked.length === 0 ? 'There are no watches to check.' : about.note;
  const file = context.wantsHtml ? await writeMail(views, context) : undefined;
  const written = linesOf([head, ...views.flatMap(({ lines }) => lines)]);
  let remaining = context.resultTokens - estimateTokens(written) - 20 * views.length;
  let waiting = views.filter(({ groups }) => groups.length > 0).length;
  const parts = views.map(({ data: { name }, lines, groups }) => {
    const news = groups.length > 0 ? newsText(groups, Math.max(0, remaining / waiting--)) : '';
    remaining -= estimateTokens(news);
    return linesOf([`${quote(name)}: ${lines.join('\n')}`, news]);
  });
  return {
    data: { watches: views.map(({ data }) => data), ...about, ...(file && addressesOf(file, context)) },
    text: clampLines(
      [head, ...parts, file && `As a mail: ${locationText(file, context)}.`].filter(Boolean).join('\n\n'),
      context.resultTokens,
    ),
  };
}

async function writeMail(views: readonly CheckedView[], context: ToolContext) {
  const ads = views.flatMap(({ groups }) => groups.flatMap(({ ads }) => ads));
  const pictures = await thumbnailsOf(
    ads.map(({ card, picture }) => ({ adId: card.id, picture })),
    context,
  );
  for (const [at, ad] of ads.entries()) ad.card = { ...ad.card, picture: pictures[at] };
  const { mailPage } = await import('../reports/mail.tsx');
  const watches = views.map(({ data: { name }, lines, groups }) => ({ name, lines, groups }));
  const { now: at, isDemo, version } = context;
  return context.exports().create({
    name: `check-${dayOf(at)}.html`,
    mimeType: 'text/html',
    ttlMs: reportTtl,
    write: (take) => take(Buffer.from(mailPage({ at, isDemo, version, watches }))),
  });
}

type CheckedView = Awaited<ReturnType<typeof viewCheck>>;

async function viewCheck(one: Checked, max: number, context: ToolContext) {
  const { watch, stop, gathered, check } = one;
  const contents = gathered?.contents;
  const usual = check && contents && (await usualLaunches(questionOf(watch), check, contents, context));
  const groups = check && contents ? newsOf(check, contents, context.now) : [];
  const { gathering, since, changes } = check ?? {};
  const complete = gathering?.complete ?? false;
  const compared = check ? since : watch.complete[0];
  // A check that read nothing has empty lists. Null is for watches that have nothing to compare with.
  const nothing = check === undefined && compared !== undefined ? [] : undefined;
  const ids = {
    new: changes?.fresh ?? nothing,
    changed: changes?.updated ?? nothing,
    gone: complete ? changes?.gone : undefined,
  };
  const more = Object.entries(ids).flatMap(([list, all = []]) => (all.length > max ? [[list, all.length - max]] : []));
  const firstIds = (all: readonly string[] | undefined) => all?.slice(0, max).map(untrustedId) ?? null;
  const { next: _, problem, ...stopped } = stopData(stop, context);
  const found = gathering?.found ?? null;
  const read = gathering?.adIds.size ?? 0;
  const data = {
    name: watch.name,
    new: firstIds(ids.new),
    changed: firstIds(ids.changed),
    gone: firstIds(ids.gone),
    ...(more.length > 0 && { more: Object.fromEntries(more) as Partial<Record<'new', number>> }),
    found,
    read,
    complete,
    ...stopped,
    ...(problem && !one.isSkipped && { problem }),
    since: compared ? isoTime(compared.at) : null,
    ...(usual && { usual }),
    ...(one.isRecent && gathering && { note: readAtText(gathering) }),
    ...(gathering && { gathering: gathering.id }),
  };
  const counts = since && [
    `${numberText(ids.new?.length ?? 0)} new`,
    `${numberText(ids.changed?.length ?? 0)} changed`,
    ...(ids.gone ? [`${numberText(ids.gone.length)} no longer listed`] : []),
  ];
  const news = counts ? `${counts.join(', ')} since ${minute(since.at)}; ` : '';
  const size = `${count(read, 'ad')} read${found === null ? '' : ` of ${numberText(found)} found`}`;
  const state = complete ? 'complete' : `not complete, stopped: ${stop.reason}`;
  const head = [`${news}${size}, ${state}.`, ...notesOn(one), data.problem];
  const lines = [
    head.filter(Boolean).join(' '),
    check && usual && usualText(usual, check),
    data.more?.new &&
      context.offers('query_ads') &&
      `All new ids: query_ads: SELECT adId FROM gathered WHERE gatheringId = '${gathering?.id}' EXCEPT SELECT adId FROM gathered WHERE gatheringId = '${since?.gathering}'`,
  ].filter((line) => typeof line === 'string');
  return { data, lines, groups };
}

function notesOn({ watch, stop, gathered, check, isRecent }: Checked): (string | false | undefined)[] {
  const { gathering, changes, lost } = check ?? {};
  const complete = gathering?.complete;
  const isLimited =
    stop.reason === 'maxAds' && 'More match than its maxAds: store it with a larger one, or narrower filters.';
  const goesOn = 'check_watches goes on with it within a day; later it starts over.';
  return [
    lost && `The ads of the check of ${minute(lost.at)} are no longer stored, so this check counts as the first.`,
    complete && !changes && !lost && 'First check: the next one reports changes.',
    !complete && changes && 'Only what was read is compared.',
    !complete && check && !changes && !lost && 'The check after the first complete one reports changes.',
    gathered?.startedOver && beginsAnew,
    isRecent && gathering && readAtText(gathering),
    !complete &&
      check &&
      (roomText(stop, { maxAds: watch.maxAds ?? defaultMaxAds }) ??
        (stop.reason === 'end'
          ? 'Some ads it read were removed to make room: use narrower filters.'
          : isLimited || goesOn)),
  ];
}

const readAtText = ({ gatheredAt }: Gathering) =>
  `Read at ${isoTime(gatheredAt).slice(11, 16)} UTC; nothing was asked.`;
