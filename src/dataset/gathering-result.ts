import { count } from '../present/list-text.ts';
import { sanitizeLine, word } from '../present/safe-text.ts';
import { truncate } from '../present/tokens.ts';
import { type DatasetContents, type Gathering, idKey } from '../state/dataset.ts';
import type { AdRowReader } from './ad-row-reader.ts';
import type { Row } from './columns.ts';
import { adIdsOf, differences, foundBy, foundInParts, isComplete, lastComplete } from './gatherings.ts';
import type { StopReason } from './stop.ts';
import { type GatheredRows, type SummaryRow, summarize, summaryRow } from './summary.ts';
import { summaryText } from './summary-text.ts';

/** How a gathering stands, as data. */
export interface GatheringResult {
  gathering: string;
  found: number | null;
  /** In words, where that is not known of all parts. */
  foundInParts?: string;
  read: number;
  added: number;
  updated: number;
  gone: string[] | null;
  complete: boolean;
  gatheredAt: string;
  /** Ads that were read and are no longer kept. */
  missing?: number;
  sinceLast?: SinceLast;
  summary: string;
}

/** What differs from the last complete gathering of the same question. */
export interface SinceLast {
  gatheredAt: string;
  fresh: number;
  updated: number;
  gone: number;
}

export interface ResultOptions {
  contents: DatasetContents;
  adRows: AdRowReader;
  tenantId: string;
  /** What there was before this call, and the ids of the ads that it has read. */
  before: DatasetContents;
  brought: ReadonlySet<string>;
}

/** Ids that are listed; the others are counted. */
const maxGone = 40;

export async function resultOf(gathering: Gathering, options: ResultOptions): Promise<GatheringResult> {
  const { contents, before, brought } = options;
  const ids = adIdsOf(gathering, contents);
  const read = contents.ads.filter(({ id }) => brought.has(idKey(id)));
  const earlier = new Map(before.ads.map(({ id, sinceOrder }) => [idKey(id), sinceOrder]));
  const rows = await rowsOf(ids, options);
  const inParts = foundInParts(gathering, contents);
  const missing = ids.size - rows.ads.length;
  const isWhole = isComplete(gathering, contents);
  const last = isWhole ? lastComplete(gathering, contents) : undefined;
  const changes = last && differences(last, gathering, contents);
  return {
    gathering: gathering.id,
    found: foundBy(gathering, contents),
    ...(inParts && { foundInParts: inParts }),
    read: ids.size,
    added: read.filter(({ id }) => !earlier.has(idKey(id))).length,
    updated: read.filter(({ id, sinceOrder }) => sinceOrder !== (earlier.get(idKey(id)) ?? sinceOrder)).length,
    gone: changes?.gone.slice(0, maxGone).map(cleanId) ?? null,
    complete: isWhole,
    gatheredAt: isoDate(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(changes && {
      sinceLast: {
        gatheredAt: isoDate(last.gatheredAt),
        fresh: changes.fresh.length,
        updated: changes.updated.length,
        gone: changes.gone.length,
      },
    }),
    summary: summaryText(summarize(rows)),
  };
}

async function rowsOf(ids: ReadonlySet<string>, { contents, adRows, tenantId }: ResultOptions): Promise<GatheredRows> {
  const ads: SummaryRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows.read(tenantId, contents, { json: false, ids }))
    for (const { ad, countries } of part) {
      ads.push(summaryRow(ad));
      places.push(...countries);
    }
  return { ads, countries: places };
}

const cleanId = (id: string) => truncate(sanitizeLine(id.slice(0, 200)), 60);

const isoDate = (at: number) => new Date(at).toISOString();

/** What a call of `gather_ads` gives, as data. */
export interface GatherOutput extends Omit<GatheringResult, 'gathering' | 'gatheredAt'> {
  gathering: string | null;
  gatheredAt?: string;
  stopped: StopReason;
  /** The kind of the error that stopped it, and what it says. */
  error?: string;
  problem?: string;
  /** How to continue. */
  next?: string;
  /** What came of an earlier one. */
  note?: string;
  /** `atMost` where the price of a page is known only within bounds. */
  estimate?: { ads: number | null; pages: number | null; credits: number | null; atMost?: number };
}

export function gatheringText(output: GatherOutput): string {
  const { estimate, summary, gathering, added, updated, sinceLast, gone, problem, next, note } = output;
  if (gathering === null) return [summary, next].filter(Boolean).join('\n');
  return [
    headline(output),
    estimate && 'Estimate: 0 credits, since nothing is left to read.',
    note,
    problem,
    next,
    `This call added ${count(added, 'ad')} to the dataset and updated ${updated}.`,
    sinceLast && changesText(sinceLast, gone ?? []),
    summary,
  ]
    .filter(Boolean)
    .join('\n');
}

function headline(output: GatherOutput): string {
  const { gathering, read, found, foundInParts, complete, stopped, gatheredAt = '', missing } = output;
  const total = found === null ? foundInParts : `${found} found`;
  const of = total === undefined ? 'total not stated' : `of ${total}`;
  const state = complete ? `complete, last read ${minute(gatheredAt)}` : `not complete, stopped: ${stopped}`;
  const lost = missing ? ` ${missing} of them are no longer kept.` : '';
  return `Gathering ${gathering}: ${read} ads read, ${of}; ${state}.${lost}`;
}

function changesText({ gatheredAt, fresh, updated, gone }: SinceLast, ids: readonly string[]): string {
  const listed = ids.length === 0 ? '' : `: ${ids.map(word).join(', ')}${gone > ids.length ? ' …' : ''}`;
  return `Since the last complete gathering of ${minute(gatheredAt)}: ${fresh} new, ${updated} changed, ${gone} not seen any more (which does not mean that they ended)${listed}`;
}

export const minute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

/** What to do when the service refuses to continue from where a gathering stands. */
export const startOver =
  'If the service no longer takes its own cursor, start over with fresh: true, which is charged again.';

export const beginsAnew =
  'The last one with fresh: true was stopped and is more than a day old, so this one started over.';

export const readAgain = 'To have them again, call with fresh: true, which is charged again.';

export const noRoom = (maxAds: number, isInParts: boolean) =>
  `There is no room for more than ${maxAds} ads of one gathering${isInParts ? ', counted in each of its parts' : ''}. Narrow the filters to read others.`;

/** How to continue after each way to stop. */
export const nextSteps: Record<StopReason, string | undefined> = {
  end: undefined,
  estimate: undefined,
  maxAds: 'To continue, call again with a larger maxAds. What was read is not charged again.',
  maxCredits: 'The next page may not fit into maxCredits. To continue, call again with the same question.',
  budget: "The next page does not fit into this server's budget. To continue later, call again with the same question.",
  usage_limit: 'To continue when the usage window has room, call again with the same question.',
  deadline: 'Time was short. To continue, call again with the same question. What was read is not charged again.',
  error: 'To continue, call again with the same question. What was read is not charged again.',
  shutdown: 'The server is shutting down. To continue, call again with the same question.',
};
