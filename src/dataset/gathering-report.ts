import * as z from 'zod';
import type { ErrorKind } from '../api/errors.ts';
import { priceText, roundCredits } from '../credits/credit-text.ts';
import { type DatasetContents, type Gathering, idKey, sumOf } from '../storage/dataset.ts';
import { pictureOf } from '../views/ad-media.ts';
import { seenDays, seenText } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { count, numberText } from '../views/lists.ts';
import { constant, linesOf, quote, word } from '../views/safe-text.ts';
import { estimateTokens, lineWithin, untrustedId } from '../views/tokens.ts';
import type { Fields } from '../views/view.ts';
import type { AdRowReader } from './ad-rows.ts';
import { type Gathered, type Stop, stopReasons } from './gather.ts';
import { type Differences, differences, foundInParts, lastComplete, unlistedBy } from './gatherings.ts';
import { type AdRow, isoTime, type Row } from './tables.ts';

const SinceLast = z.looseObject({
  gatheredAt: z.string().describe('of the last complete gathering of this question'),
  fresh: z.number(),
  updated: z.number(),
  gone: z.number().describe('no longer found'),
});

export const EstimateView = z
  .looseObject({
    ads: z.number().nullable().describe('those that are read included'),
    pages: z.number().nullable().describe('calls'),
    credits: z.number().nullable().describe('their price; null: not known'),
    atLeast: z.number(),
    atMost: z.number().optional().describe('missing where unknown'),
  })
  .meta({ title: 'Estimate' });
export type EstimateView = DataOf<typeof EstimateView>;

/** Sums of prices, without the rounding errors of binary fractions. */
export function creditsOf(least: number, most: number | undefined) {
  const [atLeast, atMost] = [roundCredits(least), most === undefined ? undefined : roundCredits(most)];
  return { credits: atLeast === atMost ? atMost : null, atLeast, ...(atMost !== undefined && { atMost }) };
}

export const GatherOutput = z.looseObject({
  gathering: z.string().nullable().describe('its id, in gatherings of SQL; null of an estimate'),
  gatheredAt: z.string().optional().describe('when its oldest part was read'),
  found: z.number().nullable().describe('ads that match; the sum of parts that overlap'),
  foundInParts: z.string().optional().describe('in words'),
  read: z.number().describe('ads, by this call and those before'),
  added: z.number().describe('to the dataset'),
  updated: z.number().describe('ads that changed'),
  gone: z.array(z.string()).nullable().describe('ids that the last gathering had; null unless both are complete'),
  missing: z.number().optional().describe('ads that were read and then removed'),
  unlisted: z.number().optional().describe('counted by the service, not listed'),
  sinceLast: SinceLast.optional(),
  complete: z.boolean().describe('all ads that match are read'),
  stopped: z.string().describe(`why it ended: ${stopReasons.join(', ')}`),
  error: z.string().optional().describe('kind'),
  problem: z.string().optional(),
  next: z.string().optional().describe('how to continue'),
  note: z.string().optional().describe('what became of an earlier gathering'),
  estimate: EstimateView.optional().describe('of the rest; with maxCredits: 0'),
  summary: z.string(),
});
export type GatherOutput = DataOf<typeof GatherOutput>;

interface RowContext {
  adRows(): AdRowReader;
  /** Milliseconds since the epoch: addresses of pictures expire. */
  now: number;
}

const maxGone = 40;

export async function resultOf(
  gathering: Gathering,
  { contents, before, readByCall }: Pick<Gathered, 'contents' | 'readByCall'> & { before: DatasetContents },
  context: RowContext,
) {
  const { adIds: ids, found, complete } = gathering;
  const [inParts, unlisted] = [foundInParts(gathering), unlistedBy(gathering)];
  const read = contents.ads.filter(({ id }) => readByCall.has(idKey(id)));
  const earlier = new Map(before.ads.map(({ id, sinceOrder }) => [idKey(id), sinceOrder]));
  const rows = await gatheredRows(ids, contents, context);
  const missing = ids.size - rows.ads.length;
  const last = complete ? lastComplete(gathering, contents) : undefined;
  const changes = last && differences(last, gathering, contents);
  return {
    gathering: gathering.id,
    found,
    ...(inParts && { foundInParts: inParts }),
    read: ids.size,
    added: read.filter(({ id }) => !earlier.has(idKey(id))).length,
    updated: read.filter(({ id, sinceOrder }) => sinceOrder !== (earlier.get(idKey(id)) ?? sinceOrder)).length,
    gone: changes?.gone.slice(0, maxGone).map(untrustedId) ?? null,
    complete,
    gatheredAt: isoTime(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(unlisted > 0 && { unlisted }),
    ...(changes && {
      sinceLast: {
        gatheredAt: isoTime(last.gatheredAt),
        fresh: changes.fresh.length,
        updated: changes.updated.length,
        gone: changes.gone.length,
      },
    }),
    summary: linesOf([changes && changesText(last.gatheredAt, changes), summaryText(rows)]),
  };
}

async function gatheredRows(ids: ReadonlySet<string>, contents: DatasetContents, { adRows, now }: RowContext) {
  let expired = 0;
  const ads: AdRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows().read(contents, { json: false, ids }))
    for (const { ad, countries, sent } of part) {
      const picture = pictureOf(sent as Fields, { now });
      if ('reason' in picture && picture.expired) expired++;
      ads.push({ ...ad, ...noTexts });
      places.push(...countries);
    }
  return { ads, countries: places, expired };
}

/** `267 ads in 3 pages, between 3 and 267 credits; the first page tells.` */
export function estimateText({ ads, pages, credits, atLeast, atMost }: EstimateView, read: number): string {
  if (pages === 0) return '0 credits, because nothing is left to read.';
  const total = count(ads ?? 0, 'ad');
  const all = read === 0 ? total : `${numberText(Math.max(0, (ads ?? 0) - read))} of ${total}`;
  const price = priceText({ atLeast, atMost });
  return `${all} in ${count(pages ?? 0, 'page')}, ${price}${credits === null ? '; the first page tells' : ''}.`;
}

export function gatheringText(output: GatherOutput): string {
  const { estimate, summary, gathering, added, updated, problem, next, note, read } = output;
  if (gathering === null) return linesOf([summary, next]);
  return linesOf([
    headline(output),
    estimate && `${estimate.pages === 0 ? 'Estimate' : 'Rest'}: ${estimateText(estimate, read)}`,
    note,
    problem,
    next,
    `This call added ${count(added, 'ad')} to the dataset and updated ${numberText(updated)}.`,
    summary,
  ]);
}

function headline(output: GatherOutput): string {
  const { gathering, read, found, foundInParts, complete, stopped, gatheredAt = '', missing, unlisted } = output;
  const total = found === null ? foundInParts : `${numberText(found)} found`;
  const ofTotal = total === undefined ? 'total not stated' : `of ${total}`;
  const state = complete ? `complete, last read ${minute(gatheredAt)}` : `not complete, stopped: ${stopped}`;
  const lost = missing ? ` ${numberText(missing)} of them are no longer in the dataset.` : '';
  return `Gathering ${gathering}: ${count(read, 'ad')} read, ${ofTotal}; ${state}.${lost}${unlisted ? ` ${unlistedText(unlisted)}` : ''}`;
}

function changesText(at: number, { fresh, updated, gone }: Differences): string {
  const counts = `${numberText(fresh.length)} new, ${numberText(updated.length)} changed, ${numberText(gone.length)} no longer listed`;
  return linesOf([
    `Since the last complete gathering of ${minute(at)}: ${counts}.`,
    idsLine('New', fresh),
    idsLine('Changed', updated),
    idsLine('No longer listed (they may still be running)', gone),
  ]);
}

const maxIdsInText = 12;

function idsLine(label: string, ids: readonly string[]): string | undefined {
  if (ids.length === 0) return;
  const shown = ids.slice(0, maxIdsInText).map((id) => word(untrustedId(id)));
  const rest = ids.length - shown.length;
  return `${label}: ${shown.join(', ')}${rest > 0 ? ` and ${numberText(rest)} more` : ''}`;
}

export const minute = (at: string | number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const unlistedText = (ads: number) =>
  `The service counts ${count(ads, 'ad')} more, which it did not list: fresh: true reads all again, and is charged again.`;

const startOver = 'To read the rest, start over with fresh: true, which is charged again.';

export const beginsAnew =
  'The last one with fresh: true was stopped and is more than a day old, so this one started over.';

export const readAgain = 'To read them again, call with fresh: true, which is charged again.';

export function roomText({ maxAds = Infinity, maxInParts }: Stop, request: { maxAds: number }): string | undefined {
  if (maxInParts === undefined && maxAds >= request.maxAds) return;
  const room = `${count(maxInParts ?? maxAds, 'ad')} of this gathering${maxInParts === undefined ? '' : ', counting each part'}`;
  return `The dataset has room for ${room}. Narrow the filters to read others.`;
}

export function stopData({ reason, error, leadsNowhere }: Stop, { explain }: ErrorContext) {
  const next = leadsNowhere ? startOver : nextSteps[reason];
  const isOurs = reason === 'maxCredits' || reason === 'deadline' || reason === 'shutdown';
  const { kind, text } = error && !isOurs ? explain(error) : { kind: undefined, text: undefined };
  return {
    stopped: reason,
    ...(reason === 'error' && kind && { error: kind }),
    ...(text && { problem: text }),
    ...(next && { next }),
  };
}

/** Explains an error in words, for a result that holds what was read before. */
export interface ErrorContext {
  explain(thrown: unknown): { kind: ErrorKind; text: string };
}

const nextSteps: Record<Stop['reason'], string | undefined> = {
  end: undefined,
  estimate: undefined,
  maxAds: 'To continue, call again with a larger maxAds. What was read is not charged again.',
  maxCredits: 'The next page may cost more than is left of maxCredits. To continue, call again with the same question.',
  budget:
    "The next page may cost more than is left of this server's budget. To continue later, call again with the same question.",
  usage_limit: 'To continue when the usage window has room, call again with the same question.',
  deadline: 'Time was short. To continue, call again with the same question. What was read is not charged again.',
  error: 'To continue, call again with the same question. What was read is not charged again.',
  shutdown: 'The server is shutting down. To continue, call again with the same question.',
};

/** All ads of a gathering are held at once: without their long texts, which a summary does not count. */
const noTexts = { headline: null, body: null, linkDescription: null, offerLink: null, text: null, json: null };

interface GatheredRows {
  ads: readonly AdRow[];
  countries: readonly Row<'ad_countries'>[];
  /** Ads whose picture cannot be shown any more, because its address has expired. */
  expired?: number;
}

/** The ads of a gathering in counts. Values are texts of third parties, cleaned and bounded. */
export function summaryText(rows: GatheredRows, maxTokens = 700): string {
  const lines = summaryLines(rows);
  for (let share = 1; ; share *= 0.8) {
    const text = lines.map((line) => (typeof line === 'string' ? line : line(share))).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

type Line = string | ((share: number) => string);

function summaryLines({ ads, countries, expired = 0 }: GatheredRows): Line[] {
  const column = (name: keyof AdRow) => ads.map((ad) => ad[name] as string | null);
  const ids = new Set(ads.map(({ id }) => id));
  const placed = countries.filter(({ id }) => id !== null && ids.has(id));
  const nowhere = ids.size - new Set(placed.map(({ id }) => id)).size;
  const places = [...placed.map(({ country }) => country), ...Array.from({ length: nowhere }, () => null)];
  const variants = ads.flatMap(({ variant }) => variant ?? []);
  const lengths = ads.flatMap(({ videoSeconds, videoCount }) => ((videoSeconds ?? videoCount) ? [videoSeconds] : []));
  const countWith = (value: (ad: AdRow) => number | null) => numberText(ads.filter((ad) => value(ad) !== null).length);
  const active = (state: number | null) => ads.filter((ad) => ad.active === state);
  const [running, ended, unknown] = [active(1).length, active(0).length, active(null).length];
  const lastSeen = seenDays(active(null));
  const advertisers = ads.map(({ pageName, pageId }) => pageName ?? pageId);
  const days = ads.map(({ daysRunning }) => daysRunning);
  return [
    `${count(ads.length, 'ad')}: ${numberText(running)} still running, ${numberText(ended)} ended, ${numberText(unknown)} unknown${lastSeen ? `, ${seenText(lastSeen)}` : ''}.`,
    countValues('Advertisers', advertisers, 10, quote),
    countValues('Formats', column('displayFormat'), 8, constant),
    countValues('Calls to action', column('ctaType'), 8, constant),
    countValues('Months started, newest first', column('startedMonth'), 18, word, newestFirst),
    countValues('Landing domains', column('landingDomain'), 10, word),
    ...(ads.some(({ landing }) => landing !== null) ? [countValues('Landing pages', column('landing'), 6, word)] : []),
    countValues('Countries (an ad may count for several)', places, 12, word),
    countValues('Languages of the copy', column('language'), 12, word),
    numbersText('Days running', days),
    ...(lengths.some((seconds) => seconds !== null) ? [numbersText('Seconds of video', lengths)] : []),
    `Ads with data: reach ${countWith(({ audienceReach }) => audienceReach)}, spend ${countWith(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax)}, revenue ${countWith(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax)}`,
    `Groups of near-identical copy: ${numberText(new Set(variants).size)}; ads without copy: ${numberText(ads.length - variants.length)}`,
    countValues('First lines', column('firstLine'), 6, quote),
    ...(expired > 0
      ? [`Pictures of ${count(expired, 'ad')} cannot be shown any more: their addresses have expired.`]
      : []),
  ];
}

type Order = (left: [value: string, ads: number], right: [value: string, ads: number]) => number;

const byName: Order = ([left], [right]) => (left < right ? -1 : 1);
const commonestFirst: Order = (left, right) => right[1] - left[1] || byName(left, right);
const newestFirst: Order = (left, right) => byName(right, left);

function countValues(
  label: string,
  values: readonly (string | null)[],
  max: number,
  show: (value: string) => string,
  order = commonestFirst,
): Line {
  const numbers = new Map<string, number>();
  for (const value of values) if (value !== null) numbers.set(value, (numbers.get(value) ?? 0) + 1);
  const sorted = [...numbers].sort(order);
  const none = values.length - sumOf(sorted.map(([, ads]) => ads));
  return (share) => {
    const shown = sorted.slice(0, Math.round(share * Math.min(max, sorted.length)));
    const others = sorted.slice(shown.length);
    const parts = [
      // Values are cut only now, because two values that differ behind the cut are different.
      ...shown.map(([value, ads]) => `${show(lineWithin(value, valueTokens))} ${numberText(ads)}`),
      ...(others.length > 0
        ? [`${count(others.length, 'other')} ${numberText(sumOf(others.map(([, ads]) => ads)))}`]
        : []),
      ...(none > 0 ? [`none ${numberText(none)}`] : []),
    ];
    return `${label} (${numberText(sorted.length)}): ${parts.join(', ') || 'none'}`;
  };
}

const valueTokens = 24;

function numbersText(label: string, values: readonly (number | null)[]): string {
  const inOrder = values.filter((value) => value !== null).sort((left, right) => left - right);
  const unknown = values.length - inOrder.length;
  const without = `unknown for ${count(unknown, 'ad')}`;
  if (inOrder.length === 0) return `${label}: ${without}`;
  const at = (index: number) => inOrder[index] ?? 0;
  const highest = `90th percentile ${at(Math.ceil(0.9 * inOrder.length) - 1)}, max ${at(inOrder.length - 1)}`;
  return `${label}: min ${at(0)}, median ${medianOf(inOrder)}, ${highest}${unknown > 0 ? `; ${without}` : ''}`;
}

/** Of numbers in order. */
export function medianOf(inOrder: readonly number[]): number {
  const middle = (inOrder.length - 1) / 2;
  return ((inOrder[Math.floor(middle)] ?? 0) + (inOrder[Math.ceil(middle)] ?? 0)) / 2;
}
