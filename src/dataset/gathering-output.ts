import * as z from 'zod';
import { roundCredits } from '../credits/credit-text.ts';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { hasSameContent } from '../storage/item-versions.ts';
import type { DataOf } from '../views/fields.ts';
import { joinLines } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import type { GatherOutcome } from './gather.ts';
import { formatDifferences, formatSummary, type RowContext, readGatheredRows } from './gathering-summary.ts';
import {
  compareGatherings,
  countRepeats,
  countUnlistedAds,
  findPreviousComplete,
  formatFoundInParts,
} from './gatherings.ts';
import { stopReasons } from './stops.ts';
import { formatIsoTime } from './tables.ts';

/** The changes since the last complete gathering of the same question. `fresh` counts new ads. */
const SinceLast = z.looseObject({
  gatheredAt: z.string().describe('of the last complete gathering of this question'),
  fresh: z.number(),
  updated: z.number(),
  gone: z.number().describe('no longer found'),
  counters: z.looseObject({}).optional(),
});

/** The estimated price of the ads that are not read yet. */
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

/**
 * Builds the credit fields of an estimate. The sums are rounded, because adding binary fractions leaves rounding
 * errors. `credits` is null if the two bounds differ.
 */
export function buildCreditRange(least: number, most: number | undefined) {
  const [atLeast, atMost] = [roundCredits(least), most === undefined ? undefined : roundCredits(most)];
  return { credits: atLeast === atMost ? atMost : null, atLeast, ...(atMost !== undefined && { atMost }) };
}

/** The structured result of `gather_ads`. */
export const GatherOutput = z.looseObject({
  gathering: z.string().nullable().describe('its id, in gatherings of SQL; null of an estimate'),
  gatheredAt: z.string().optional().describe('when its oldest part was read'),
  found: z.number().nullable().describe('ads that match; an ad in two parts counts twice'),
  foundInParts: z.string().optional().describe('in words'),
  read: z.number().describe('ads, by this call and those before'),
  added: z.number().describe('to the dataset'),
  updated: z.number().describe('ads that changed, counters aside'),
  gone: z.array(z.string()).nullable().describe('ids that the last gathering had; null unless both are complete'),
  missing: z.number().optional().describe('ads that were read and then removed'),
  unlisted: z.number().optional().describe('counted by the service, not listed'),
  repeats: z.number().optional().describe('ads that found counts again, because parts overlap'),
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

/** The most ids that `gone` lists. */
const maxListedGoneIds = 40;

/**
 * Builds the structured result of a call that gathered ads.
 * @param options `before`: the contents of the dataset when the call arrived
 */
export async function buildGatherOutput(
  gathering: Gathering,
  { contents, before, idsReadByCall }: Pick<GatherOutcome, 'contents' | 'idsReadByCall'> & { before: DatasetContents },
  context: RowContext,
) {
  const { adIds: ids, found, complete } = gathering;
  const [inParts, unlisted, repeats] = [
    formatFoundInParts(gathering),
    countUnlistedAds(gathering),
    countRepeats(gathering),
  ];
  const read = contents.ads.filter(({ id }) => idsReadByCall.has(normalizeAdId(id)));
  const earlierItems = new Map(before.ads.map((item) => [normalizeAdId(item.id), item]));
  const rows = await readGatheredRows(ids, contents, context);
  const missing = ids.size - rows.ads.length;
  const last = complete ? findPreviousComplete(gathering, contents) : undefined;
  const changes = last && compareGatherings(last, gathering, contents);
  return {
    gathering: gathering.id,
    found,
    ...(inParts && { foundInParts: inParts }),
    read: ids.size,
    added: read.filter(({ id }) => !earlierItems.has(normalizeAdId(id))).length,
    updated: read.filter((item) => !hasSameContent(earlierItems.get(normalizeAdId(item.id)) ?? item, item)).length,
    gone: changes?.goneIds.slice(0, maxListedGoneIds).map(sanitizeId) ?? null,
    complete,
    gatheredAt: formatIsoTime(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(unlisted > 0 && { unlisted }),
    ...(repeats > 0 && { repeats }),
    ...(changes && {
      sinceLast: {
        gatheredAt: formatIsoTime(last.gatheredAt),
        fresh: changes.newIds.length,
        updated: changes.updatedIds.length,
        gone: changes.goneIds.length,
        ...(Object.keys(changes.counters).length > 0 && { counters: changes.counters }),
      },
    }),
    summary: joinLines([changes && formatDifferences(last.gatheredAt, changes), formatSummary(rows)]),
  };
}
