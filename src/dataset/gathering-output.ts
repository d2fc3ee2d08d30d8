import * as z from 'zod';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { hasSameContent } from '../storage/item-versions.ts';
import type { DataOf } from '../views/fields.ts';
import { roundCredits } from '../views/numbers.ts';
import { joinLines } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import { SplitMatchingCountText } from './coverage.ts';
import type { GatherOutcome } from './gather.ts';
import { type AdRowContext, formatDifferences, formatSummary, readGatheredRows } from './gathering-summary.ts';
import {
  compareGatherings,
  countAdRepetitions,
  countUnlistedAds,
  findPreviousCompleteGathering,
  formatSplitMatchingCount,
} from './gatherings.ts';
import { stopReasons } from './stops.ts';
import { formatIsoTime } from './tables.ts';

/**
 * Schema for changes of the counters that the service reports, such as reach. For example, `{ reach: { rose: 6, fell: 1
 * } }` means that the reach rose for 6 ads and fell for 1 ad.
 */
export const CounterChangesView = z
  .looseObject({})
  .optional()
  .describe('For each counter, such as duplicates: the number of ads for which it rose and fell.');

/** Schema for how the ads of a search changed since the search was last read completely. */
const ChangesSinceLastReadingView = z
  .looseObject({
    gatheredAt: z.string().describe('Time of the last complete gathering of this question.'),
    fresh: z.number().describe('Number of new ads.'),
    updated: z.number().describe('Number of ads that changed. Changes of counters do not count.'),
    gone: z.number().describe('Number of ads that no longer match.'),
    counters: CounterChangesView,
  })
  .meta({ title: 'SinceLast' });

/** Descriptions of the credit fields that the schemas of all price estimates share. */
export const creditDescriptions = {
  credits: 'Expected credits. null if unknown.',
  atLeast: 'Least credits that the calls may cost.',
  atMost: 'Most credits that the calls may cost. Missing if unknown.',
};

/** Schema for the estimated price of reading the remaining ads of a search. */
export const EstimateView = z
  .looseObject({
    ads: z
      .number()
      .nullable()
      .describe('Number of matching ads, including the ads that are already read. null if unknown.'),
    pages: z.number().nullable().describe('Number of calls. null if unknown.'),
    credits: z.number().nullable().describe(creditDescriptions.credits),
    atLeast: z.number().describe(creditDescriptions.atLeast),
    atMost: z.number().optional().describe(creditDescriptions.atMost),
  })
  .meta({ title: 'Estimate' });
export type EstimateView = DataOf<typeof EstimateView>;

/**
 * Builds the credit fields of an estimate. `credits` is null if the lowest and the highest price differ. The prices are
 * rounded, because sums of fractional credits contain floating-point errors.
 */
export function buildCreditRange(lowestPrice: number, highestPrice: number | undefined) {
  const [atLeast, atMost] = [
    roundCredits(lowestPrice),
    highestPrice === undefined ? undefined : roundCredits(highestPrice),
  ];
  return { credits: atLeast === atMost ? atMost : null, atLeast, ...(atMost !== undefined && { atMost }) };
}

/**
 * Schemas of the result fields that explain an error. The fields are set if an error ended the call before all ads were
 * read.
 */
export const errorFieldSchemas = {
  error: z.string().optional().describe('Kind of the error that ended the call.'),
  problem: z.string().optional().describe('Text of the error.'),
};

/** Schema for the structured result of the `gather_ads` tool. */
export const GatherOutput = z.looseObject({
  gathering: z
    .string()
    .nullable()
    .describe('Id of the gathering, as in the SQL table gatherings. null in an estimate.'),
  gatheredAt: z.string().optional().describe('Time when the oldest part of the gathering was read.'),
  found: z.number().nullable().describe('Number of matching ads. An ad in two parts counts twice. null if unknown.'),
  foundInParts: SplitMatchingCountText,
  read: z.number().describe('Number of ads that this call and earlier calls read.'),
  added: z.number().describe('Number of ads that were added to the dataset.'),
  updated: z.number().describe('Number of ads that changed. Changes of counters do not count.'),
  gone: z
    .array(z.string())
    .nullable()
    .describe('Ids of ads that only the last gathering listed. null unless both are complete.'),
  missing: z.number().optional().describe('Number of ads that were read and then removed to make room.'),
  unlisted: z.number().optional().describe('Number of ads that the service counts and did not list.'),
  repeats: z.number().optional().describe('Number of ads that found counts again, because parts overlap.'),
  sinceLast: ChangesSinceLastReadingView.optional().describe(
    'Changes since the last complete gathering of this question.',
  ),
  incomplete: z
    .string()
    .optional()
    .describe('If the gathering is not complete: what was read, what is missing, and the price of the rest, in words.'),
  complete: z.boolean().describe('true if all matching ads are read.'),
  stopped: z.string().describe(`Why reading ended: ${stopReasons.join(', ')}.`),
  ...errorFieldSchemas,
  next: z.string().optional().describe('How to continue.'),
  note: z.string().optional().describe('What happened to an earlier gathering, or how old the first ads are.'),
  notes: z.array(z.string()).optional().describe('Notes from the service.'),
  estimate: EstimateView.optional().describe('Estimate of the remaining ads, with maxCredits 0.'),
  summary: z.string().describe('Summary of the ads in words.'),
});
export type GatherOutput = DataOf<typeof GatherOutput>;

/** The maximum number of ad ids in the result field `gone`, which lists ads that no longer match the search. */
const maxListedGoneIds = 40;

/**
 * Builds the structured result of a tool call that read ads.
 * @param options `contentsBefore`: snapshot of the dataset from the beginning of the call; `oneDayNote`: the note of
 * `buildGatheringNotes`
 */
export async function buildGatheringResult(
  gathering: Gathering,
  {
    contents,
    contentsBefore,
    idsReadByCall,
    oneDayNote,
  }: Pick<GatherOutcome, 'contents' | 'idsReadByCall'> & {
    contentsBefore: DatasetContents;
    oneDayNote: string | undefined;
  },
  context: AdRowContext,
) {
  const { adIds: ids, matchingCount, isComplete } = gathering;
  const [foundInParts, unlisted, repeats] = [
    formatSplitMatchingCount(gathering),
    countUnlistedAds(gathering),
    countAdRepetitions(gathering),
  ];
  const itemsReadByCall = contents.ads.filter(({ id }) => idsReadByCall.has(normalizeAdId(id)));
  const earlierItems = new Map(contentsBefore.ads.map((item) => [normalizeAdId(item.id), item]));
  const rows = await readGatheredRows(ids, contents, context);
  const evictedCount = ids.size - rows.ads.length;
  const previousGathering = isComplete ? findPreviousCompleteGathering(gathering, contents) : undefined;
  const differences = previousGathering && compareGatherings(previousGathering, gathering, contents);
  return {
    gathering: gathering.id,
    found: matchingCount,
    ...(foundInParts && { foundInParts }),
    read: ids.size,
    added: itemsReadByCall.filter(({ id }) => !earlierItems.has(normalizeAdId(id))).length,
    updated: itemsReadByCall.filter((item) => !hasSameContent(earlierItems.get(normalizeAdId(item.id)) ?? item, item))
      .length,
    gone: differences?.goneIds.slice(0, maxListedGoneIds).map(sanitizeId) ?? null,
    complete: isComplete,
    gatheredAt: formatIsoTime(gathering.gatheredAt),
    ...(evictedCount > 0 && { missing: evictedCount }),
    ...(unlisted > 0 && { unlisted }),
    ...(repeats > 0 && { repeats }),
    ...(differences && {
      sinceLast: {
        gatheredAt: formatIsoTime(previousGathering.gatheredAt),
        fresh: differences.newIds.length,
        updated: differences.updatedIds.length,
        gone: differences.goneIds.length,
        ...(Object.keys(differences.counterChanges).length > 0 && { counters: differences.counterChanges }),
      },
    }),
    summary: joinLines([
      differences && formatDifferences(previousGathering, differences, gathering.filters),
      isComplete && ids.size === 0 && unlisted === 0 ? explainNoAds(gathering) : formatSummary(rows),
      oneDayNote,
    ]),
  };
}

/** The text of a result without ads, if all pages of the search were read. */
export const noMatchText = 'No ad matches these filters.';

const explainNoAds = ({ collectionId }: Gathering) =>
  collectionId === null
    ? noMatchText
    : 'The collection holds no ads. If it holds advertiser pages, search for these advertisers to read their ads.';
