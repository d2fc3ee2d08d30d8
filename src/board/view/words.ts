import { constantText, countryText, type Formats } from '../../ui/formats.ts';
import type { BriefAd, FullAd } from '../payload.ts';

/** Returns the facts of an ad, each under its name; undefined where a fact is unknown or has not been read yet. */
export function factsOf(
  ad: BriefAd,
  full: FullAd | undefined,
  formats: Formats,
): [name: string, value: string | undefined][] {
  const { daysRunning, active, startedAt, lastSeenAt, endDate, countries, audienceReach } = full ?? ad;
  const { displayFormat, creative, ctaType, landing, duplicates } = full ?? ad;
  const { countText, dayText, numberText, shortNumber } = formats;
  const state = active === undefined ? 'unknown whether it still runs' : active ? 'running' : 'ended';
  const ran = daysRunning === 0 ? 'less than a day' : daysRunning && countText(daysRunning, 'day');
  return [
    ['Ran', [ran, state].filter(Boolean).join(', ')],
    ['Started', startedAt && dayText(startedAt)],
    ['Last seen', lastSeenAt && dayText(lastSeenAt)],
    [active === false ? 'Ended' : 'Ends', endDate && dayText(endDate)],
    ['Format', [displayFormat && constantText(displayFormat), creative].filter(Boolean).join(' · ')],
    ['Call to action', ctaType && constantText(ctaType)],
    ['Leads to', landing],
    ['Countries', countries?.map(countryText).join(', ')],
    ['Platforms', full?.publisherPlatform?.map(constantText).join(', ')],
    ['Reach', audienceReach === undefined ? undefined : shortNumber(audienceReach)],
    ['Spend, estimated', full && spendOf(full, formats)],
    ['Copies', duplicates === undefined ? undefined : numberText(duplicates)],
    ['Id', ad.id],
  ];
}

function spendOf({ adSpendMin, adSpendMax, currency = '' }: FullAd, { numberText }: Formats): string | undefined {
  const range = [...new Set([adSpendMin, adSpendMax])].filter((value) => value !== undefined);
  return range.length === 0 ? undefined : `${range.map(numberText).join('–')} ${currency}`.trim();
}
