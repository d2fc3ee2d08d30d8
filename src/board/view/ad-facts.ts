import { type Formatters, formatConstant, formatCountry } from '../../ui/formats.ts';
import type { BriefAd, FullAd } from '../payload.ts';

/**
 * Returns the facts that the board lists about an ad, e.g. *Format*, each with its name. A fact is undefined if it is
 * unknown or not loaded yet.
 */
export function listFacts(
  ad: BriefAd,
  fullAd: FullAd | undefined,
  formatters: Formatters,
): [name: string, value: string | undefined][] {
  const { daysRunning, active, startedAt, lastSeenAt, endDate, countries, audienceReach } = fullAd ?? ad;
  const { displayFormat, creative, ctaType, landing, duplicates } = fullAd ?? ad;
  const { formatCount, formatDay, formatNumber, formatShortNumber } = formatters;
  const runStateText = active === undefined ? 'unknown whether it still runs' : active ? 'running' : 'ended';
  const runLengthText = daysRunning === 0 ? 'less than a day' : daysRunning && formatCount(daysRunning, 'day');
  return [
    ['Ran', [runLengthText, runStateText].filter(Boolean).join(', ')],
    ['Started', startedAt && formatDay(startedAt)],
    ['Last seen', lastSeenAt && formatDay(lastSeenAt)],
    [active === false ? 'Ended' : 'Ends', endDate && formatDay(endDate)],
    ['Format', [displayFormat && formatConstant(displayFormat), creative].filter(Boolean).join(' · ')],
    ['Call to action', ctaType && formatConstant(ctaType)],
    ['Leads to', landing],
    ['Countries', countries?.map(formatCountry).join(', ')],
    ['Platforms', fullAd?.publisherPlatform?.map(formatConstant).join(', ')],
    ['Reach', audienceReach === undefined ? undefined : formatShortNumber(audienceReach)],
    ['Spend, estimated', fullAd && formatSpend(fullAd, formatters)],
    ['Copies', duplicates === undefined ? undefined : formatNumber(duplicates)],
    ['Id', ad.id],
    ['Page id', ad.pageId],
  ];
}

/** Formats the estimated spend, e.g. `100–500 EUR`. If only one bound is known, says which, e.g. `up to 500 EUR`. */
function formatSpend(
  { adSpendMin, adSpendMax, currency = '' }: FullAd,
  { formatNumber }: Formatters,
): string | undefined {
  const [min, max] = [adSpendMin, adSpendMax].map((amount) => amount !== undefined && formatNumber(amount));
  if (!min && !max) return undefined;
  const range = !min ? `up to ${max}` : !max ? `from ${min}` : min === max ? min : `${min}–${max}`;
  return `${range} ${currency}`.trim();
}
