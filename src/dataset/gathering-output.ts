import * as z from 'zod';
import { roundCredits } from '../credits/credit-text.ts';
import { type DatasetContents, type Gathering, idKey } from '../storage/dataset.ts';
import { hasSameContent } from '../storage/item-versions.ts';
import type { DataOf } from '../views/fields.ts';
import { linesOf } from '../views/safe-text.ts';
import { untrustedId } from '../views/tokens.ts';
import { type Gathered, stopReasons } from './gather.ts';
import { changesText, gatheredRows, type RowContext, summaryText } from './gathering-summary.ts';
import { differences, foundInParts, lastComplete, repeatsIn, unlistedBy } from './gatherings.ts';
import { isoTime } from './tables.ts';

const SinceLast = z.looseObject({
  gatheredAt: z.string().describe('of the last complete gathering of this question'),
  fresh: z.number(),
  updated: z.number(),
  gone: z.number().describe('no longer found'),
  counters: z.looseObject({}).optional(),
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

const maxGone = 40;

export async function resultOf(
  gathering: Gathering,
  { contents, before, readByCall }: Pick<Gathered, 'contents' | 'readByCall'> & { before: DatasetContents },
  context: RowContext,
) {
  const { adIds: ids, found, complete } = gathering;
  const [inParts, unlisted, repeats] = [foundInParts(gathering), unlistedBy(gathering), repeatsIn(gathering)];
  const read = contents.ads.filter(({ id }) => readByCall.has(idKey(id)));
  const earlier = new Map(before.ads.map((item) => [idKey(item.id), item]));
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
    updated: read.filter((item) => !hasSameContent(earlier.get(idKey(item.id)) ?? item, item)).length,
    gone: changes?.gone.slice(0, maxGone).map(untrustedId) ?? null,
    complete,
    gatheredAt: isoTime(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(unlisted > 0 && { unlisted }),
    ...(repeats > 0 && { repeats }),
    ...(changes && {
      sinceLast: {
        gatheredAt: isoTime(last.gatheredAt),
        fresh: changes.fresh.length,
        updated: changes.updated.length,
        gone: changes.gone.length,
        ...(Object.keys(changes.counters).length > 0 && { counters: changes.counters }),
      },
    }),
    summary: linesOf([changes && changesText(last.gatheredAt, changes), summaryText(rows)]),
  };
}
