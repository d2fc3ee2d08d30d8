import * as z from 'zod';
import type { AdLibraryError } from '../api/errors.ts';
import { formatPrice } from '../credits/credit-text.ts';
import { getListOperationName } from '../dataset/ad-list-page.ts';
import { formatUnlistedAds } from '../dataset/coverage-notes.ts';
import { findFreshGathering } from '../dataset/gather.ts';
import {
  buildCreditRange,
  CounterChangesView,
  type EstimateView,
  errorFieldSchemas,
  noMatchText,
} from '../dataset/gathering-output.ts';
import { buildStopFields, formatDatasetLimitNote, startedOverNote } from '../dataset/gathering-report.ts';
import {
  countAdRepetitions,
  countUnlistedAds,
  findBroaderGathering,
  findGatherings,
  formatCounterChanges,
  getAdQueryKey,
} from '../dataset/gatherings.ts';
import { findRecordsByName } from '../dataset/named-records.ts';
import { determineMaxPageSize } from '../dataset/page-size.ts';
import { isCallAbandoned } from '../dataset/stops.ts';
import { formatIsoTime } from '../dataset/tables.ts';
import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { type ExportedFile, reportTtlMs } from '../storage/exports.ts';
import { formatDay, formatMinute } from '../views/dates.ts';
import { groupBy } from '../views/group-by.ts';
import { formatServiceNotes } from '../views/lists.ts';
import { formatCount, formatNumber, sumNumbers } from '../views/numbers.ts';
import { joinLines, quote } from '../views/safe-text.ts';
import { estimateTokens, sanitizeId } from '../views/tokens.ts';
import { buildChecksBoardData, type CheckWatchesResult } from '../watches/board-data.ts';
import { collectReportedAds, formatReportedAds } from '../watches/changes.ts';
import { type CheckedWatch, defaultMaxAdsPerCheck, findRecentStoredOutcome, runWatchChecks } from '../watches/check.ts';
import { parseWatches, pickAdQuery, saveChecks, type Watch } from '../watches/stored-watches.ts';
import { computeTypicalLaunches, formatTypicalLaunches, TypicalLaunchesView } from '../watches/typical-launches.ts';
import { freshSchema } from './arguments.ts';
import { assertReadingIsFree, estimateRemainingAds } from './gather-ads.ts';
import { loadThumbnails } from './thumbnails.ts';
import {
  buildFileLocationFields,
  defineTool,
  formatFileLocation,
  readOnlyAnnotations,
  type ToolContext,
} from './tool.ts';

const WatchCheckView = z
  .looseObject({
    name: z.string().describe('Name of the watch.'),
    new: z.array(z.string()).nullable().describe('Ids of new ads. null at the first check.'),
    changed: z
      .array(z.string())
      .nullable()
      .describe('Ids of ads that changed. Changes of counters do not count. null at the first check.'),
    counters: CounterChangesView,
    gone: z
      .array(z.string())
      .nullable()
      .describe('Ids of ads that are no longer listed. null unless both checks are complete.'),
    more: z.looseObject({}).optional().describe('For each list that was cut: number of ids that are left out.'),
    found: z.number().nullable().describe('Number of matching ads. An ad in two parts counts twice. null if unknown.'),
    repeats: z.number().optional().describe('Number of ads that found counts again, because parts overlap.'),
    read: z.number().describe('Number of ads that were read.'),
    complete: z.boolean().describe('true if all matching ads were read.'),
    stopped: z.string().describe('Why the check ended, as in gather_ads.'),
    ...errorFieldSchemas,
    since: z
      .string()
      .nullable()
      .describe('Time of the check that this check is compared with. null at the first check.'),
    usual: TypicalLaunchesView.optional().describe('Launches since then, compared with the weeks before.'),
    gathering: z.string().optional().describe('Id of the gathering that this check read.'),
    note: z.string().optional().describe('What limits this check or its comparison.'),
    notes: z.array(z.string()).optional().describe('Notes from the service.'),
  })
  .meta({ title: 'Check' });

export const checkWatches = defineTool({
  name: 'check_watches',
  title: 'Check what is new',
  description:
    'Check what you monitor: which ads (creatives) of a watch are new, changed or gone since the last complete check. Call it on a schedule, for example once a week, to track how the creatives of competitors shift week over week.',
  usageHint: 'What is new since the last time: check_watches.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({ maxCredits: 20 }),
  operations: ['searchAds', 'listCollectionItems'],
  makesSeveralApiCalls: true,
  storesUserData: true,
  showsBoard: true,
  buildBoardData: (data) => buildChecksBoardData(data as CheckWatchesResult),
  canReportProgress: true,
  inputSchema: z.strictObject({
    names: z.array(z.string()).min(1).optional().describe('Names of watches. Default: all.'),
    maxCredits: z.number().min(0).optional().describe('Most credits for the whole call. 0 returns an estimate.'),
    fresh: freshSchema.describe('true reads again, even if the question was read minutes ago.'),
  }),
  createOutputSchema: () =>
    z.looseObject({
      watches: z.array(WatchCheckView).describe('One entry for each checked watch.'),
      stopped: z.string().optional().describe('Why the call stopped, as in gather_ads.'),
      estimate: z.looseObject({}).optional().describe('Estimate as in gather_ads, with maxCredits 0.'),
      note: z.string().optional().describe('Why the results of the checks were not stored.'),
    }),
  async run({ names, maxCredits, fresh = false }, context) {
    const { userRecords } = await context.openDataset();
    const allWatches = parseWatches(await userRecords.read('watch'));
    const selectedWatches = names ? findRecordsByName('watch', allWatches, names) : allWatches;
    if (maxCredits === undefined)
      for (const watch of selectedWatches) await assertReadingIsFree(pickAdQuery(watch), context);
    if (maxCredits === 0 || context.isEstimate) return estimateChecks(selectedWatches, fresh, context);
    const { checkedWatches, callStopReason } = await runWatchChecks(selectedWatches, { maxCredits, fresh }, context);
    const failure = checkedWatches.find(({ stopInfo }) => stopInfo.error)?.stopInfo.error;
    if (failure && checkedWatches.every(({ check }) => check === undefined)) throw failure;
    const descriptions = await describeChecks(checkedWatches, context);
    const file = context.wantsHtml ? await writeMailFile(descriptions, context) : undefined;
    // Store the checks last. If the mail cannot be written, the user sees no result, so the next check must report the
    // same changes.
    const note = isCallAbandoned(context.signal) ? undefined : await storeChecksOrExplain(checkedWatches, context);
    const callFields = { ...(callStopReason && { stopped: callStopReason }), ...(note && { note }) };
    return buildChecksOutput(descriptions, file, callFields, context);
  },
});

/**
 * Estimates the cost of checking watches (repeated searches) without calling the service. The lower bound assumes that
 * as many ads match as at the last check. More ads may match today, so the upper bound follows from the limits of the
 * watches (`maxAds`, `maxCredits`).
 */
async function estimateChecks(selectedWatches: readonly Watch[], shouldReadAgain: boolean, context: ToolContext) {
  const contents = await (await context.openDataset()).readContents();
  const watchesToRead = selectedWatches.filter(
    (watch) => shouldReadAgain || !findRecentStoredOutcome(watch, contents, context),
  );
  // Watches with the same search share its estimate, because they share the ads that are read.
  const watchesByQuery = groupBy(watchesToRead, (watch) => getAdQueryKey(pickAdQuery(watch)));
  const estimates = new Map<string, CheckEstimate>();
  for (const [queryKey, watches] of watchesByQuery)
    estimates.set(queryKey, await estimateWatchesOfQuery(watches, contents, context));
  const queryEstimates = [...estimates.values()];
  const [pages, ads] = (['pages', 'ads'] as const).map((name) =>
    sumIfAllKnown(queryEstimates.map(({ remainingEstimate }) => remainingEstimate?.[name])),
  );
  const maxCharges = watchesToRead.map((watch) =>
    computeMaxCharge(watch, estimates.get(getAdQueryKey(pickAdQuery(watch)))?.remainingEstimate, context),
  );
  const atMost = sumIfAllKnown(await Promise.all(maxCharges));
  const atLeast = Math.min(
    sumNumbers(queryEstimates.map((queryEstimate) => queryEstimate.atLeast)),
    atMost ?? Infinity,
  );
  const estimate = { pages: pages ?? null, ...buildCreditRange(atLeast, atMost) };
  const hasRepeatedReading = atMost !== 0 && queryEstimates.some(({ hasStoredAds }) => hasStoredAds);
  const readCount = sumNumbers(queryEstimates.map((queryEstimate) => queryEstimate.readCount));
  const text =
    selectedWatches.length === 0
      ? 'There are no watches to check.'
      : `${formatChecksEstimate({ ads, readCount, ...estimate })}${hasRepeatedReading ? ` ${repeatedReadingNote}` : ''}`;
  return { data: { watches: [], estimate, stopped: 'estimate' }, text };
}

/** Returns the sum of the numbers, or undefined if one of them is unknown. */
const sumIfAllKnown = (numbers: readonly (number | null | undefined)[]): number | undefined => {
  const knownNumbers = numbers.flatMap((number) => number ?? []);
  return knownNumbers.length < numbers.length ? undefined : sumNumbers(knownNumbers);
};

/** The estimate for all watches that have the same search. */
interface CheckEstimate {
  /** The price of the ads that the checks have to read, without the limits of the watches. */
  remainingEstimate: EstimateView | undefined;
  /** The lowest price of the checks within the limits of the watches, in credits. */
  atLeast: number;
  /** True if the dataset already contains ads of this search and a check reads them again. */
  hasStoredAds: boolean;
  /**
   * The number of ads that an unfinished check has read. The next check continues it and does not pay for them again.
   */
  readCount: number;
}

/** Estimates the checks of watches that have the same search. */
async function estimateWatchesOfQuery(
  watches: readonly Watch[],
  contents: DatasetContents,
  context: ToolContext,
): Promise<CheckEstimate> {
  const adQuery = pickAdQuery(watches[0] ?? {});
  // An estimate reads no pages, so the current contents are also the contents when the call arrived.
  const unfinishedGathering = findFreshGathering(adQuery, contents, contents, context.now);
  const startsOver = unfinishedGathering === undefined;
  const remainingEstimate = await estimateRemainingAds(adQuery, contents, startsOver, context);
  const maxAds = Math.max(...watches.map((watch) => watch.maxAds ?? defaultMaxAdsPerCheck));
  const remainingUpToMaxAds = await estimateRemainingAds(adQuery, contents, startsOver, context, maxAds);
  const maxCredits = sumNumbers(watches.map((watch) => watch.maxCredits));
  return {
    remainingEstimate,
    atLeast: Math.min(remainingUpToMaxAds?.atLeast ?? 0, maxCredits),
    hasStoredAds:
      startsOver &&
      (findGatherings(contents, adQuery).some(({ adIds }) => adIds.size > 0) ||
        findBroaderGathering(contents, adQuery) !== undefined),
    readCount: unfinishedGathering?.adIds.size ?? 0,
  };
}

/** Explains why a check costs credits although the dataset already contains some of its ads. */
const repeatedReadingNote =
  'A check reads stored ads again, because only a reading of the same question shows what is new.';

function formatChecksEstimate({
  ads,
  readCount,
  pages,
  ...price
}: Omit<EstimateView, 'ads' | 'pages'> & { ads?: number | undefined; readCount: number; pages: number | null }) {
  if (pages === 0) return 'Estimate: 0 credits, because all ads were read already.';
  const sizeText =
    pages === null || ads === undefined
      ? 'how many ads match is unknown for some watches'
      : `${readCount === 0 ? '' : `${formatNumber(Math.max(0, ads - readCount))} of `}${formatCount(ads, 'ad')} in ${formatCount(pages, 'page')}, as last counted`;
  const limitsText =
    price.credits === null && price.atMost !== undefined ? ' The limits of the watches allow no more.' : '';
  return `Estimate: ${sizeText}; ${formatPrice(price)}.${limitsText}`;
}

/**
 * Returns the maximum number of credits that one check of a watch can cost. This is `maxCredits` or, if lower, the
 * price of `maxAds` ads and one extra page. With `split`, only `maxCredits` counts, unless pages are free. Returns
 * undefined if a price is unknown, because the first page may then cost more than `maxCredits`.
 * @param remainingEstimate the estimate for the ads that the check has to read, if the number of these ads is known
 */
async function computeMaxCharge(
  watch: Watch,
  remainingEstimate: EstimateView | undefined,
  { createCallBudget, adFilters }: ToolContext,
) {
  if (remainingEstimate?.pages === 0) return 0;
  const matchingCount = remainingEstimate?.ads ?? undefined;
  const adQuery = pickAdQuery(watch);
  const maxAds = watch.maxAds ?? defaultMaxAdsPerCheck;
  const pageSize = Math.min(maxAds, determineMaxPageSize(adQuery, adFilters));
  const budget = await createCallBudget(0);
  const getMaxPrice = async (itemCount: number) =>
    (
      await budget.estimateCost({
        operation: getListOperationName(adQuery),
        totalItems: itemCount,
        pageSize,
        isTotalKnown: true,
      })
    )?.atMost;
  const fullPrice = await getMaxPrice(maxAds);
  // If more ads match now than at the last count, the check reads one more page. Include the price of this page.
  const extraPagePrice =
    matchingCount === undefined || matchingCount >= maxAds
      ? 0
      : await getMaxPrice(Math.min(pageSize, Math.max(1, matchingCount)));
  if (fullPrice === undefined || extraPagePrice === undefined) return;
  const pagesPrice = fullPrice + extraPagePrice;
  // `maxAds` counts each ad once, but several parts of a split search may list the same ad. The number of pages then
  // has no upper bound, so only `maxCredits` limits the price, unless pages are free.
  const hasUnknownPageCount = adQuery.split !== undefined && pagesPrice > 0;
  return Math.min(watch.maxCredits, hasUnknownPageCount ? Infinity : pagesPrice);
}

/**
 * Stores the checks of watches (repeated searches). Then marks their gatherings (stored search results) as reported.
 * The next check therefore does not report the same changes again, unless the process ends between these two steps.
 * @returns a note for the caller if the checks could not be stored
 */
async function storeChecksOrExplain(
  checkedWatches: readonly CheckedWatch[],
  context: ToolContext,
): Promise<string | undefined> {
  const { userRecords } = await context.openDataset();
  try {
    await saveChecks(
      userRecords,
      checkedWatches.flatMap(({ check }) => check ?? []),
    );
  } catch (error) {
    const { text } = context.explainError(error as AdLibraryError);
    return `This check could not be stored, so the next one compares with the same earlier check. ${text}`;
  }
  for (const { outcome } of checkedWatches) await outcome?.markResultReturned();
  return;
}

/** The maximum number of ad ids in a result, for the lists of all watches together. */
const maxTotalListedIds = 600;

async function describeChecks(checkedWatches: readonly CheckedWatch[], context: ToolContext) {
  const nonEmptyIdLists = checkedWatches.flatMap(({ check }) => {
    const { newIds = [], updatedIds = [], goneIds = [] } = check?.changes ?? {};
    return [newIds, updatedIds, goneIds].filter(({ length }) => length > 0);
  });
  const maxListedIds = Math.max(4, Math.floor(maxTotalListedIds / Math.max(1, nonEmptyIdLists.length)));
  const descriptions: CheckDescription[] = [];
  for (const checkedWatch of checkedWatches)
    descriptions.push(await describeCheck(checkedWatch, maxListedIds, context));
  return descriptions;
}

function buildChecksOutput(
  descriptions: readonly CheckDescription[],
  file: ExportedFile | undefined,
  callFields: { note?: string },
  context: ToolContext,
) {
  const introductionText = descriptions.length === 0 ? 'There are no watches to check.' : callFields.note;
  const textWithoutAds = joinLines([introductionText, ...descriptions.flatMap(({ lines }) => lines)]);
  let remainingTokens = context.maxTextTokens - estimateTokens(textWithoutAds) - 20 * descriptions.length;
  let remainingAdsTextCount = descriptions.filter(({ groups }) => groups.length > 0).length;
  const watchTexts = descriptions.map(({ data: { name }, lines, groups }) => {
    const adsText =
      groups.length > 0 ? formatReportedAds(groups, Math.max(0, remainingTokens / remainingAdsTextCount--)) : '';
    remainingTokens -= estimateTokens(adsText);
    return joinLines([`${quote(name)}: ${lines.join('\n')}`, adsText]);
  });
  return {
    data: {
      watches: descriptions.map(({ data }) => data),
      ...callFields,
      ...(file && buildFileLocationFields(file, context)),
    },
    text: [introductionText, ...watchTexts, file && `As a mail: ${formatFileLocation(file, context)}.`]
      .filter(Boolean)
      .join('\n\n'),
  };
}

async function writeMailFile(descriptions: readonly CheckDescription[], context: ToolContext) {
  const ads = descriptions.flatMap(({ groups }) => groups.flatMap(({ ads }) => ads));
  const pictures = await loadThumbnails(
    ads.map(({ card, picture }) => ({ adId: card.id, picture })),
    context,
  );
  for (const [index, ad] of ads.entries()) ad.card = { ...ad.card, picture: pictures[index] };
  const { renderMail } = await import('../watches/mail.tsx');
  const watches = descriptions.map(({ data: { name }, lines, groups }) => ({ name, sentences: lines, groups }));
  const { now: checkedAt, isDemo, serverVersion } = context;
  return context.getExports().create({
    name: `check-${formatDay(checkedAt)}.html`,
    mimeType: 'text/html',
    ttlMs: reportTtlMs,
    write: (writeChunk) =>
      writeChunk(Buffer.from(renderMail({ writtenAt: checkedAt, isDemo, version: serverVersion, watches }))),
  });
}

type CheckDescription = Awaited<ReturnType<typeof describeCheck>>;

async function describeCheck(checkedWatch: CheckedWatch, maxListedIds: number, context: ToolContext) {
  const { watch, stopInfo, outcome, check } = checkedWatch;
  const contents = outcome?.contents;
  const typicalLaunches =
    check && contents && (await computeTypicalLaunches(pickAdQuery(watch), check, contents, context));
  const groups = check && contents ? collectReportedAds(check, contents, context.now) : [];
  const { gathering, previousCheck, previousGathering, changes } = check ?? {};
  const isComplete = gathering?.isComplete ?? false;
  const comparisonCheck = check ? previousCheck : watch.completeChecks[0];
  // A check that read no ads found no changes, so its lists are empty. Without an earlier check to compare with, the
  // changes are unknown, so there are no lists.
  const defaultIds = check === undefined && comparisonCheck !== undefined ? [] : undefined;
  const ids = {
    new: changes?.newIds ?? defaultIds,
    changed: changes?.updatedIds ?? defaultIds,
    gone: isComplete ? changes?.goneIds : undefined,
  };
  const counterChanges = changes && Object.keys(changes.counterChanges).length > 0 ? changes.counterChanges : undefined;
  const omittedIdCounts = Object.entries(ids).flatMap(([list, listedIds = []]) =>
    listedIds.length > maxListedIds ? [[list, listedIds.length - maxListedIds]] : [],
  );
  const listFirstIds = (ids: readonly string[] | undefined) => ids?.slice(0, maxListedIds).map(sanitizeId) ?? null;
  const { next: _, problem, ...stopFields } = buildStopFields(stopInfo, context);
  const matchingCount = gathering?.matchingCount ?? null;
  const readCount = gathering?.adIds.size ?? 0;
  const repeatCount = gathering && matchingCount !== null ? countAdRepetitions(gathering) : 0;
  const checkNotes = [
    gathering && isComplete && formatUnlistedAdsNote(gathering, ids.gone),
    previousGathering && ids.new?.length && formatEarlierUnlistedAdsNote(previousGathering),
    checkedWatch.usesStoredAds && gathering && formatReadingTimeNote(gathering),
  ].filter((note) => typeof note === 'string');
  const data = {
    name: watch.name,
    new: listFirstIds(ids.new),
    changed: listFirstIds(ids.changed),
    gone: listFirstIds(ids.gone),
    ...(counterChanges && { counters: counterChanges }),
    ...(omittedIdCounts.length > 0 && { more: Object.fromEntries(omittedIdCounts) as Partial<Record<'new', number>> }),
    found: matchingCount,
    ...(repeatCount > 0 && { repeats: repeatCount }),
    read: readCount,
    complete: isComplete,
    ...stopFields,
    ...(problem && !checkedWatch.isSkipped && { problem }),
    since: comparisonCheck ? formatIsoTime(comparisonCheck.readAt) : null,
    ...(typicalLaunches && { usual: typicalLaunches }),
    ...(checkNotes.length > 0 && { note: checkNotes.join(' ') }),
    ...(gathering && { gathering: gathering.id }),
    ...(outcome && outcome.serviceNotes.length > 0 && { notes: [...outcome.serviceNotes] }),
  };
  const changeTexts = previousCheck && [
    `${formatNumber(ids.new?.length ?? 0)} new`,
    `${formatNumber(ids.changed?.length ?? 0)} changed`,
    ...(ids.gone ? [`${formatNumber(ids.gone.length)} no longer listed`] : []),
  ];
  const changesText = changeTexts ? `${changeTexts.join(', ')} since ${formatMinute(previousCheck.readAt)}; ` : '';
  const sizeText = `${formatCount(readCount, 'ad')} read${matchingCount === null ? '' : ` of ${formatNumber(matchingCount)} found`}${repeatCount === 0 ? '' : ` (which counts ${formatCount(repeatCount, 'ad')} of several parts again)`}`;
  const completenessText = isComplete ? 'complete' : `not complete, stopped: ${stopInfo.reason}`;
  const statusSentences = [
    `${changesText}${sizeText}, ${completenessText}.`,
    ...listCheckNotes(checkedWatch),
    ...checkNotes,
    data.problem,
  ];
  const lines = [
    statusSentences.filter(Boolean).join(' '),
    isComplete && readCount === 0 && watch.collectionId === undefined && noMatchText,
    ...formatServiceNotes(data),
    check && typicalLaunches && formatTypicalLaunches(typicalLaunches, check),
    counterChanges && formatCounterChanges(counterChanges),
    data.more?.new &&
      context.isToolOffered('query_ads') &&
      `All new ids: query_ads: SELECT adId FROM gathered WHERE gatheringId = '${gathering?.id}' EXCEPT SELECT adId FROM gathered WHERE gatheringId = '${previousCheck?.gatheringId}'`,
  ].filter((line) => typeof line === 'string');
  return { data, lines, groups };
}

function listCheckNotes({ watch, stopInfo, outcome, check }: CheckedWatch): (string | false | undefined)[] {
  const { gathering, changes, incomparableCheck } = check ?? {};
  const isComplete = gathering?.isComplete;
  const limitNote =
    stopInfo.reason === 'maxAds' && 'More match than its maxAds: store it with a larger one, or narrower filters.';
  const continuationNote = stopInfo.resumptionBlocker
    ? 'It cannot be continued: the next check starts over and pays for all pages again.'
    : 'check_watches goes on with it within a day; later it starts over.';
  return [
    incomparableCheck &&
      `The ads of the check of ${formatMinute(incomparableCheck.readAt)} are no longer stored, so this check counts as the first.`,
    isComplete && !changes && !incomparableCheck && 'First check: the next one reports changes.',
    !isComplete && changes && 'Only what was read is compared.',
    !isComplete && check && !changes && !incomparableCheck && 'The check after the first complete one reports changes.',
    outcome?.hasStartedOver && startedOverNote,
    !isComplete &&
      check &&
      (formatDatasetLimitNote(stopInfo, { maxAds: watch.maxAds ?? defaultMaxAdsPerCheck }) ??
        (stopInfo.reason === 'end'
          ? 'Some ads it read were removed to make room: use narrower filters.'
          : limitNote || continuationNote)),
  ];
}

/**
 * Formats a note about ads that the service counted but did not list, e.g. because their order changed between two
 * pages. Returns undefined if there are none. Such ads seem to be gone although they still match.
 */
function formatUnlistedAdsNote(gathering: Gathering, goneIds: readonly string[] = []): string | undefined {
  const unlistedCount = countUnlistedAds(gathering);
  if (unlistedCount === 0) return undefined;
  const goneText = goneIds.length > 0 ? ', so some of those no longer listed may still match' : '';
  return `${formatUnlistedAds(unlistedCount)}${goneText}.`;
}

/**
 * Formats a note about ads that the service did not list at the last check. If this check lists them, they seem new.
 */
function formatEarlierUnlistedAdsNote(previousGathering: Gathering): string | undefined {
  const unlistedCount = countUnlistedAds(previousGathering);
  return unlistedCount === 0
    ? undefined
    : `At the last check, the service did not list ${formatCount(unlistedCount, 'ad')} that it counted, so some of the new ads may be older.`;
}

const formatReadingTimeNote = ({ gatheredAt }: Gathering) =>
  `Read at ${formatIsoTime(gatheredAt).slice(11, 16)} UTC; nothing was asked. To read the ads again now, set fresh: true.`;
