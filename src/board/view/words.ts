import type { CardAd } from '../../ui/ad-card.tsx';
import { constantText, countryText, countText, dayText, numberText, shortNumber } from '../../ui/formats.ts';
import type { BoardAd } from '../payload.ts';

/** An ad as the card of a page shows it; its picture comes later. */
export function cardOf(ad: BoardAd): CardAd {
  const { id, pageName, headline, firstLine, cards, startedAt, lastSeenAt, daysRunning, active } = ad;
  const title = [headline, firstLine, cards?.[0]?.title, pageName].find((text) => text && !text.includes('{{'));
  const labels = ad.labels?.map(({ label, value }) => (value === undefined ? label : `${label}: ${value}`));
  const run = { startedAt, lastSeenAt, daysRunning, active, copies: ad.duplicates };
  return { id, pageName, title, line: firstLine, format: formatOf(ad), labels, ...run };
}

/** `New · Video · 15 s`; just the cards of an ad with cards, and nothing for a picture, which can be seen. */
function formatOf({ displayFormat, creative, isNew }: BoardAd): string {
  const format = displayFormat === undefined || displayFormat === 'IMAGE' ? undefined : constantText(displayFormat);
  return [isNew && 'New', creative?.includes('card') ? undefined : format, creative].filter(Boolean).join(' · ');
}

/** The facts of an ad, each under its name; undefined where a fact is not known. */
export function factsOf(ad: BoardAd): [name: string, value: string | undefined][] {
  const { daysRunning, active, startedAt, lastSeenAt, endDate, countries, publisherPlatform, audienceReach } = ad;
  const { displayFormat, creative } = ad;
  const state = active === undefined ? 'unknown whether it still runs' : active ? 'running' : 'ended';
  const ran = daysRunning === 0 ? 'less than a day' : daysRunning && countText(daysRunning, 'day');
  return [
    ['Ran', [ran, state].filter(Boolean).join(', ')],
    ['Started', startedAt && dayText(startedAt)],
    ['Last seen', lastSeenAt && dayText(lastSeenAt)],
    [active === false ? 'Ended' : 'Ends', endDate && dayText(endDate)],
    ['Format', [displayFormat && constantText(displayFormat), creative].filter(Boolean).join(' · ')],
    ['Call to action', ad.ctaType && constantText(ad.ctaType)],
    ['Leads to', ad.landing],
    ['Countries', countries?.map(countryText).join(', ')],
    ['Platforms', publisherPlatform?.map(constantText).join(', ')],
    ['Reach', audienceReach === undefined ? undefined : shortNumber(audienceReach)],
    ['Spend, estimated', spendOf(ad)],
    ['Copies', ad.duplicates === undefined ? undefined : numberText(ad.duplicates)],
    ['Id', ad.id],
  ];
}

function spendOf({ adSpendMin, adSpendMax, currency = '' }: BoardAd): string | undefined {
  const range = [...new Set([adSpendMin, adSpendMax])].filter((value) => value !== undefined);
  return range.length === 0 ? undefined : `${range.map(numberText).join('–')} ${currency}`.trim();
}
