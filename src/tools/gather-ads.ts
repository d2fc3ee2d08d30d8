import * as z from 'zod';
import { parseCount, readTotalHits } from '../api/counts.ts';
import { AdLibraryError, createInvalidRequestError } from '../api/errors.ts';
import { formatPrice } from '../credits/credit-text.ts';
import { freePriceBounds } from '../credits/prices.ts';
import { getListOperationName } from '../dataset/ad-list-page.ts';
import { buildGatheringNotes } from '../dataset/coverage.ts';
import { findKnownTotal, type GatherRequest, type OpenedGathering, withOpenedGathering } from '../dataset/gather.ts';
import { buildCreditRange, buildGatheringResult, GatherOutput } from '../dataset/gathering-output.ts';
import {
  buildStopFields,
  formatDatasetLimitNote,
  formatEstimate,
  formatGatherOutput,
  formatOutdatedPagesNote,
  readAgainHint,
  startedOverNote,
} from '../dataset/gathering-report.ts';
import {
  type AdQuery,
  findBroaderGathering,
  findOrCreateGathering,
  removeDuplicateParts,
} from '../dataset/gatherings.ts';
import { determineMaxPageSize } from '../dataset/page-size.ts';
import type { DatasetContents } from '../storage/dataset.ts';
import { formatMinute } from '../views/dates.ts';
import { dayMs } from '../views/durations.ts';
import { formatCount, sumNumbers } from '../views/numbers.ts';
import { adFiltersSchema, checkAdQueryArguments, collectionIdSchema, freshSchema, splitSchema } from './arguments.ts';
import { defineTool, readOnlyAnnotations, type ToolContext } from './tool.ts';

export const gatherAds = defineTool({
  name: 'gather_ads',
  title: 'Gather all ads that match',
  description:
    "Gather all ads of a question or a collection into the dataset and summarize them. Use it to analyze many ads: compare the messaging and campaigns of competitors, tear down or audit an advertiser's ad strategy, find hooks, offers and creative angles, or cover a whole ad landscape before a launch. First call it with maxCredits: 0 for an estimate of the price. Call it again to continue; it never pays twice.",
  usageHint:
    'Anything else about many ads: gather_ads, first with maxCredits: 0, which estimates the price; say it to the user, and gather once.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({ filters: { countries: ['DE'] }, maxAds: 50, maxCredits: 10 }),
  operations: ['searchAds', 'listCollectionItems', 'listCollections'],
  makesSeveralApiCalls: true,
  showsBoard: true,
  buildBoardData: (data) => {
    const { gathering, estimate, read } = data as { gathering: string | null; estimate?: object; read: number };
    return { gathering, ...(estimate && { estimate: { ...estimate, read } }) };
  },
  canReportProgress: true,
  inputSchema: z.strictObject({
    filters: adFiltersSchema,
    split: splitSchema,
    collectionId: collectionIdSchema.optional(),
    maxAds: z.int().min(1).max(10_000).optional().describe('Most ads to read. Default 1000.'),
    maxCredits: z
      .number()
      .min(0)
      .optional()
      .describe('Most credits to spend. 0 returns an estimate and makes at most one paid search for each part.'),
    fresh: freshSchema.describe('true reads everything again and reports changes.'),
  }),
  createOutputSchema: () => GatherOutput,
  async run({ filters, split, collectionId, maxAds = 1000, maxCredits, fresh = false }, context) {
    const adQuery = { filters, split, collectionId };
    checkAdQueryArguments(adQuery);
    return { data: await gather({ adQuery, maxAds, maxCredits, fresh }, context) };
  },
  render: formatGatherOutput,
});

async function gather(request: GatherRequest, context: ToolContext): Promise<GatherOutput> {
  const { adQuery, maxCredits } = request;
  const contentsBefore = await (await context.openDataset()).readContents();
  return withOpenedGathering(request, contentsBefore, context, async (openedGathering, readPages) => {
    const hasReadAllPages = openedGathering.parts.every(({ state }) => state.hasReadLastPage);
    if (maxCredits === undefined && !hasReadAllPages) await assertReadingIsFree(adQuery, context);
    if ((maxCredits === 0 || context.isEstimate) && !hasReadAllPages)
      return estimateGathering(request, openedGathering, context);
    const gatherResult = await readPages();
    const { gathering, stopInfo, idsReadByCall, contents } = gatherResult;
    if (gathering === undefined || (stopInfo.error && gatherResult.readCount === 0))
      throw stopInfo.error ?? createNothingReadError();
    const remainingPrice = await estimateRemainingAds(removeDuplicateParts(adQuery), contents, false, context);
    const rowReader = context.getAdRowReader();
    const { missingAdsNote, oneDayNote } = buildGatheringNotes(gathering, {
      contents,
      adFacts: await rowReader.readFacts(contents),
      ...(!gathering.isComplete && { listingOrders: await rowReader.readListingOrders(contents) }),
      ...(!stopInfo.resumptionBlocker && { remainingPrices: new Map([[gathering.id, remainingPrice]]) }),
    });
    const output = await buildGatheringResult(
      gathering,
      { contents, contentsBefore: openedGathering.contents, idsReadByCall, oneDayNote },
      context,
    );
    const next =
      formatDatasetLimitNote(stopInfo, request) ?? (hasReadAllPages && !output.complete ? readAgainHint : undefined);
    const note = gatherResult.hasStartedOver ? startedOverNote : formatOutdatedPagesNote(gathering);
    // Mark the result last. If the call is cancelled before this line, the next call with `fresh` continues this
    // gathering instead of paying for all pages again.
    if (!context.isEstimate) await gatherResult.markResultReturned();
    return {
      ...output,
      ...(missingAdsNote && { incomplete: missingAdsNote }),
      ...buildStopFields(stopInfo, context, maxCredits),
      ...(next && { next }),
      ...(note && { note }),
      ...(gatherResult.serviceNotes.length > 0 && { notes: [...gatherResult.serviceNotes] }),
      ...(remainingPrice &&
        (maxCredits === 0 || remainingPrice.pages !== 0) &&
        !stopInfo.resumptionBlocker && { estimate: remainingPrice }),
    };
  });
}

/**
 * Accepts a call without `maxCredits` only if reading the ads is free.
 * @throws AdLibraryError `invalid_request` if reading may cost credits
 */
export async function assertReadingIsFree(adQuery: AdQuery, { createCallBudget }: ToolContext): Promise<void> {
  if (await (await createCallBudget()).isFree(getListOperationName(adQuery))) return;
  throw createInvalidRequestError(
    'maxCredits is required, because reading may cost credits: 0 estimates the price, and any other number is the most that this call may spend.',
  );
}

const createNothingReadError = () =>
  new AdLibraryError({ kind: 'timeout', problem: 'There was no time to read a page.', wasSent: false });

/** The age of an ad count, in milliseconds, above which an estimate mentions when the ads were counted. */
const minMentionedCountAgeMs = dayMs;

type SearchPart = Awaited<ReturnType<typeof readSearchParts>>[number];

/**
 * Estimates the cost of reading the ads that are not in the dataset yet. If the number of matching ads is unknown,
 * first counts them with one paid search for each part of the search. For a collection, the list of collections
 * contains the number.
 */
async function estimateGathering(
  { adQuery, maxAds, fresh }: GatherRequest,
  openedGathering: OpenedGathering,
  context: ToolContext,
) {
  const parts = await readSearchParts(openedGathering, context);
  const partsWithoutTotal = parts.filter(({ total }) => total === undefined);
  for (const part of partsWithoutTotal) {
    const adCount = await countMatchingAds(part.adQuery, context);
    part.total = adCount === undefined ? undefined : { matchingCount: adCount, countedAt: context.now };
    part.isTotalKnown = (await findKnownTotal(part.adQuery, openedGathering.contents, context)) !== undefined;
    // If the service reports no total for one part of a split search, it reports none for the other parts either. Stop
    // searching to save credits.
    if (part.total === undefined) break;
  }
  const price = await estimateParts(adQuery, parts, context);
  const exceedsMaxAds = (price?.ads ?? 0) > maxAds;
  const priceUpToMaxAds = exceedsMaxAds
    ? await estimateParts(adQuery, parts, context, Math.max(0, maxAds - countReadAds(parts)))
    : undefined;
  // For the form that asks the user to confirm this call (`isEstimate`), use the price of at most `maxAds` ads. Other
  // callers plan ahead, so they need the price of all ads.
  const shownPrice = context.isEstimate && priceUpToMaxAds ? priceUpToMaxAds : price;
  const estimate = shownPrice ?? { ads: null, pages: null, credits: null, atLeast: 0 };
  const oldestCountedAt = Math.min(...parts.map(({ total }) => total?.countedAt ?? context.now));
  const readCount = sumNumbers(parts.map((part) => part.readCount));
  const summary = [
    price
      ? `Estimate: ${formatEstimate(price, readCount)}`
      : parts.some(hasWrongTotal)
        ? 'The service announces a further page although it has listed as many ads as it stated, so the number of remaining ads is unknown.'
        : 'The service does not say how many ads there are.',
    price?.credits === null && (await suggestReadingFirstPage(adQuery, parts, price.pages, context)),
    exceedsMaxAds && formatMaxAdsLimit(maxAds, priceUpToMaxAds),
    context.now - oldestCountedAt > minMentionedCountAgeMs &&
      `The number of ads is as of ${formatMinute(oldestCountedAt)}.`,
    partsWithoutTotal.length > 0 &&
      adQuery.collectionId === undefined &&
      `This estimate took ${formatCount(partsWithoutTotal.length, 'search', 'searches')}.`,
    // If the service reports no total or a wrong one, count_ads cannot count the ads either.
    price && price.atMost !== 0 && price.pages > 1 && (await suggestCounting(adQuery, context)),
    // With `fresh`, the caller wants to know what has changed since the stored ads were read.
    !fresh && price?.atMost !== 0 && suggestQueryAds(adQuery, openedGathering.contents),
  ];
  return {
    gathering: null,
    found: estimate.ads,
    read: readCount,
    added: 0,
    updated: 0,
    gone: null,
    complete: false,
    stopped: 'estimate',
    estimate,
    summary: summary.filter(Boolean).join(' '),
  };
}

/**
 * Formats the number of ads after which the call stops (`maxAds`) and the price until then, e.g. `With maxAds: 100, it
 * stops after 100 ads (10 credits).`
 */
function formatMaxAdsLimit(maxAds: number, price: { atLeast?: number; atMost?: number } | undefined): string {
  const { atLeast = 0, atMost } = price ?? {};
  const priceText = atMost === undefined ? '' : ` (${formatPrice({ atLeast, atMost })})`;
  return `With maxAds: ${maxAds}, it stops after ${formatCount(maxAds, 'ad')}${priceText}.`;
}

/**
 * Suggests reading one page to learn the exact price. The service reveals a price only when it charges credits.
 * @param unreadPageCount the number of pages that are still to be read
 */
async function suggestReadingFirstPage(
  adQuery: AdQuery,
  parts: readonly SearchPart[],
  unreadPageCount: number,
  context: ToolContext,
) {
  const unfinishedPart = parts.find(({ hasReadLastPage }) => !hasReadLastPage);
  const pageSize = determineMaxPageSize(adQuery, context.adFilters);
  const unreadAdCount = Math.max(1, (unfinishedPart?.total?.matchingCount ?? 0) - (unfinishedPart?.listedCount ?? 0));
  const callBudget = await context.createCallBudget(0);
  const firstPagePrice = await callBudget.estimateCost({
    operation: getListOperationName(adQuery),
    totalItems: Math.min(pageSize, unreadAdCount),
    pageSize,
    isTotalKnown: unfinishedPart?.isTotalKnown ?? true,
  });
  const atMost = firstPagePrice?.atMost;
  if (atMost === undefined)
    return 'Call again with the same question and, as maxCredits, what the user accepts. The call reads as many ads as surely fit, and states the price of the rest.';
  const nextCall = `call again with maxCredits: ${Math.ceil(atMost)}.`;
  if (unreadPageCount === 1) return `To read this page, ${nextCall}`;
  return `Reading the first page costs at most ${formatPrice({ atLeast: atMost, atMost })} and shows the exact price of the rest: ${nextCall}`;
}

/** Suggests `count_ads`, which is cheaper than reading the ads, for users who need only totals. */
async function suggestCounting({ collectionId }: AdQuery, { createCallBudget, isToolOffered }: ToolContext) {
  if (collectionId !== undefined || !isToolOffered('count_ads')) return undefined;
  const countingSearch = { operation: 'searchAds', totalItems: 1, pageSize: 1, isTotalKnown: true } as const;
  const price = await (await createCallBudget(0)).estimateCost(countingSearch);
  const isSinglePrice = price !== undefined && price.atLeast === price.atMost && price.atMost > 0;
  const priceText = price === undefined ? 'one small search' : `${isSinglePrice ? 'about ' : ''}${formatPrice(price)}`;
  return `To count or compare totals only, use count_ads: ${priceText} for each value.`;
}

/**
 * Suggests `query_ads` if all ads of a broader search were read earlier, because the dataset then already contains
 * these ads.
 */
function suggestQueryAds(adQuery: AdQuery, contents: DatasetContents): string | undefined {
  const broaderGathering = findBroaderGathering(contents, adQuery);
  if (broaderGathering === undefined) return undefined;
  return `The dataset should have these ads already: gathering ${broaderGathering.id} of a broader question was complete on ${formatMinute(broaderGathering.gatheredAt)}. query_ads reads them for free.`;
}

/**
 * Estimates the price of the ads that are not in the dataset yet. Uses only totals that are already known. Returns
 * undefined if the total of a part of the search is unknown.
 * @param maxAds the number of ads, including the ads that are already read, after which the call stops reading
 */
export async function estimateRemainingAds(
  adQuery: AdQuery,
  contents: DatasetContents,
  shouldReadAgain: boolean,
  context: ToolContext,
  maxAds = Infinity,
) {
  const { parts } = findOrCreateGathering(adQuery, contents, shouldReadAgain, context.now);
  const searchParts = await readSearchParts({ parts, contents }, context);
  return estimateParts(adQuery, searchParts, context, Math.max(0, maxAds - countReadAds(searchParts)));
}

/** Returns the number of ads that were read for a search. An ad that several parts list counts once. */
const countReadAds = (parts: readonly SearchPart[]): number =>
  new Set(parts.flatMap(({ readIds }) => [...readIds])).size;

/**
 * Estimates the price of the unread ads in all parts of a split search. Returns undefined if the total of a part is
 * unknown or wrong.
 * @param maxAds the number of further ads after which the call stops reading
 */
async function estimateParts(adQuery: AdQuery, parts: readonly SearchPart[], context: ToolContext, maxAds = Infinity) {
  if (parts.some((part) => part.total === undefined || hasWrongTotal(part))) return undefined;
  const pageSize = determineMaxPageSize(adQuery, context.adFilters);
  const operation = getListOperationName(adQuery);
  // Create the budget after the searches, because their charges may have revealed a price.
  const callBudget = await context.createCallBudget(0);
  // Even if no ad matches, one page must be read, so count at least one ad.
  let remainingMaxAds = maxAds;
  const remainingCounts = parts.map(({ total, listedCount, hasReadLastPage }) => {
    const count = hasReadLastPage
      ? 0
      : Math.min(remainingMaxAds, Math.max(1, (total?.matchingCount ?? 0) - listedCount));
    remainingMaxAds -= count;
    return count;
  });
  const prices = await Promise.all(
    parts.map(({ isTotalKnown }, index) => {
      const itemCount = remainingCounts[index] ?? 0;
      return itemCount === 0
        ? freePriceBounds
        : callBudget.estimateCost({ operation, totalItems: itemCount, pageSize, isTotalKnown });
    }),
  );
  const knownPrices = prices.filter((price) => price !== undefined);
  const atLeast = sumNumbers(knownPrices.map((price) => price.atLeast));
  const atMost = knownPrices.length < prices.length ? undefined : sumNumbers(knownPrices.map((price) => price.atMost));
  return {
    ads: sumNumbers(parts.map(({ total, readCount }) => Math.max(total?.matchingCount ?? 0, readCount))),
    pages: sumNumbers(remainingCounts.map((count) => Math.ceil(count / pageSize))),
    ...buildCreditRange(atLeast, atMost),
  };
}

/** Returns true if the service announced a further page although it had already listed as many ads as its total. */
const hasWrongTotal = ({ total, listedCount, hasReadLastPage }: SearchPart): boolean =>
  !hasReadLastPage && listedCount > 0 && total !== undefined && listedCount >= total.matchingCount;

const readSearchParts = ({ parts, contents }: Pick<OpenedGathering, 'parts' | 'contents'>, context: ToolContext) =>
  Promise.all(
    parts.map(async ({ adQuery, state, storedGathering }) => {
      const { hasReadLastPage } = state;
      const readIds: ReadonlySet<string> = storedGathering?.adIds ?? new Set();
      const readCount = readIds.size;
      const storedTotal = storedGathering?.matchingCount ?? (hasReadLastPage ? readCount : null);
      const total =
        storedTotal === null
          ? await findKnownTotal(adQuery, contents, context)
          : { matchingCount: storedTotal, countedAt: state.gatheredAt };
      /**
       * The number of ads that the service has listed for this part of the search, including ads that were later
       * removed from the dataset.
       */
      const listedCount = Math.max(readCount, state.listedCount);
      /** True if the total is known before the first page is read. The estimated price is then more exact. */
      const isTotalKnown = total !== undefined;
      return { adQuery, readIds, readCount, listedCount, hasReadLastPage, total, isTotalKnown };
    }),
  );

async function countMatchingAds({ filters, collectionId }: AdQuery, { api }: ToolContext) {
  if (collectionId === undefined) return readTotalHits(await api.searchAds({ body: { ...filters, limit: 1 } }));
  const { validatedBody, rawBody } = await api.listCollections();
  const collection = validatedBody.items.find(({ id }) => id?.toLowerCase() === collectionId);
  // According to the API document, this list has no further pages. If the response announces another page anyway, that
  // page may contain the collection, so do not report an error.
  const { hasMore, cursor } = rawBody as { hasMore?: unknown; cursor?: unknown };
  const problem = 'There is no collection with this id in the list of collections.';
  if (collection === undefined && !hasMore && !cursor) throw new AdLibraryError({ kind: 'not_found', problem });
  return parseCount(collection?.adCount);
}
