import type { ErrorKind } from '../api/errors.ts';
import { formatPrice } from '../credits/credit-text.ts';
import type { Gathering } from '../storage/dataset.ts';
import { formatDay, formatMinute } from '../views/dates.ts';
import { formatServiceNotes } from '../views/lists.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinLines } from '../views/safe-text.ts';
import { formatUnlistedAds } from './coverage-notes.ts';
import type { EstimateView, GatherOutput } from './gathering-output.ts';
import { getFirstReadingTime, hasOutdatedPages } from './gatherings.ts';
import type { StopInfo } from './stops.ts';

/**
 * Formats the estimated price of reading the remaining ads, e.g. `267 ads in 3 pages, between 3 and 267 credits; the
 * first page tells.`
 */
export function formatEstimate({ ads, pages, credits, atLeast, atMost }: EstimateView, readCount: number): string {
  if (pages === 0) return '0 credits, because nothing is left to read.';
  const totalText = formatCount(ads ?? 0, 'ad');
  const countText =
    readCount === 0 ? totalText : `${formatNumber(Math.max(0, (ads ?? 0) - readCount))} of ${totalText}`;
  const price = formatPrice({ atLeast, atMost });
  return `${countText} in ${formatCount(pages ?? 0, 'page')}, ${price}${credits === null ? '; the first page tells' : ''}.`;
}

/**
 * Formats the result of the `gather_ads` tool as text for a model: how many ads were read, a summary of these ads, and
 * how to continue.
 */
export function formatGatherOutput(output: GatherOutput): string {
  const { estimate, summary, gathering, added, updated, problem, next, note, read, complete } = output;
  if (gathering === null) return joinLines([summary, next]);
  return joinLines([
    formatHeadline(output),
    estimate && (complete || estimate.pages === 0) && `Estimate: ${formatEstimate(estimate, read)}`,
    note,
    problem,
    next,
    `This call added ${formatCount(added, 'ad')} to the dataset and updated ${formatNumber(updated)}.`,
    ...formatServiceNotes(output),
    summary,
  ]);
}

/** Formats the first line of the text: how many ads were read, and whether the search has more ads. */
function formatHeadline(output: GatherOutput): string {
  const { gathering, read, found, foundInParts, stopped, gatheredAt = '', incomplete, unlisted, repeats } = output;
  const unlistedText = unlisted
    ? ` ${formatUnlistedAds(unlisted)}: fresh: true reads all again, and is charged again.`
    : '';
  // If a limit stopped the call, begin with this limit, the missing ads and the price of reading the missing ads.
  if (incomplete) return `Gathering ${gathering} is not complete, stopped: ${stopped}. ${incomplete}${unlistedText}`;
  const foundText = found === null ? foundInParts : `${formatNumber(found)} found`;
  const repeatsText = repeats ? ` (which counts ${formatCount(repeats, 'ad')} of several parts again)` : '';
  const totalText = foundText === undefined ? 'total not stated' : `of ${foundText}${repeatsText}`;
  return `Gathering ${gathering}: ${formatCount(read, 'ad')} read, ${totalText}; complete, last read ${formatMinute(gatheredAt)}.${unlistedText}`;
}

const startOverHint = 'To read the rest, start over with fresh: true, which is charged again.';

/**
 * A note for a call that read all ads from the beginning, because the last call with `fresh: true` was too old to be
 * continued.
 */
export const startedOverNote =
  'The last one with fresh: true was stopped and is more than a day old, so this one started over.';

/**
 * Formats a note that the first ads of a search were read long before the last ones. Returns undefined if all ads were
 * read within a day.
 */
export const formatOutdatedPagesNote = (gathering: Gathering): string | undefined =>
  hasOutdatedPages(gathering)
    ? `The first ads of this gathering were read on ${formatDay(getFirstReadingTime(gathering))}, so ads that appeared later may be missing. fresh: true reads all again, and is charged again.`
    : undefined;

/** Explains how to read the ads of a search again after they have all been read. */
export const readAgainHint = 'To read them again, call with fresh: true, which is charged again.';

/**
 * Formats a note that the dataset has no space for more ads of this search. Returns undefined if the call stopped for
 * another reason.
 */
export function formatDatasetLimitNote(
  { maxAds = Infinity, maxListedAds }: StopInfo,
  request: { maxAds: number },
): string | undefined {
  if (maxListedAds === undefined && maxAds >= request.maxAds) return;
  const limitText = `${formatCount(maxListedAds ?? maxAds, 'ad')} of this gathering${maxListedAds === undefined ? '' : ', counting each part'}`;
  return `The dataset has room for ${limitText}. Narrow the filters to read other ads.`;
}

/**
 * Builds the result fields that explain why the call stopped and how to continue.
 * @param maxCredits the maximum number of credits of the call, if the caller has passed one
 */
export function buildStopFields(
  { reason, error, resumptionBlocker }: StopInfo,
  { explainError }: ErrorExplainer,
  maxCredits?: number,
) {
  const isInterrupted = reason === 'deadline' || reason === 'error' || reason === 'shutdown';
  const creditsHint = isInterrupted && maxCredits !== undefined ? remainingCreditsHint : undefined;
  const continueHint =
    reason === 'error' && error?.failure.kind === 'payment_required'
      ? continueAfterPaymentHint
      : nextStepInstructions[reason];
  const instruction = [continueHint, creditsHint].filter(Boolean).join(' ');
  const next = resumptionBlocker ? startOverHint : instruction;
  const isLimitOfCall = reason === 'maxCredits' || reason === 'deadline' || reason === 'shutdown';
  const { kind, text } = error && !isLimitOfCall ? explainError(error) : { kind: undefined, text: undefined };
  return {
    stopped: reason,
    ...(reason === 'error' && kind && { error: kind }),
    ...(text && { problem: text }),
    ...(next && { next }),
  };
}

/**
 * Explains errors in words. The explanation is part of a result that also contains the ads that were read before the
 * error.
 */
export interface ErrorExplainer {
  explainError(error: unknown): { kind: ErrorKind; text: string };
}

const remainingCreditsHint =
  'Subtract the charge of this call from maxCredits. If nothing remains, or if the charge is unknown, ask the user.';

const continueAfterPaymentHint =
  'To continue when the account has credits or a subscription again, call again with the same question. Ads that were already read are not charged again.';

/** For each reason why a call stopped, an instruction for the caller on how to continue. */
const nextStepInstructions: Record<StopInfo['reason'], string | undefined> = {
  end: undefined,
  estimate: undefined,
  maxAds: 'To continue, call again with a larger maxAds. Ads that were already read are not charged again.',
  firstPage:
    'The person chose to read the first page only. To read the rest, ask the user, and then call again with the same question. Ads that were already read are not charged again.',
  maxCredits:
    'The next page may cost more than the rest of maxCredits. If the user accepts further credits, call again with the same question to continue.',
  budget:
    "The next page may cost more than the rest of this server's budget. To continue later, call again with the same question.",
  usage_limit: 'To continue when the usage window has credits again, call again with the same question.',
  deadline:
    'Time was short. To continue, call again with the same question. Ads that were already read are not charged again.',
  error: 'To continue, call again with the same question. Ads that were already read are not charged again.',
  shutdown: 'The server is shutting down. To continue, call again with the same question.',
};
