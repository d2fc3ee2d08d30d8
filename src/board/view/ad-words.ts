import type { BoardAd } from '../payload.ts';
import { count, label } from './words.ts';

/** How an ad is called: by its headline, or by what stands in for it. */
export const titleOf = ({ headline, firstLine, cards, pageName }: BoardAd): string =>
  [headline, firstLine, cards?.[0]?.title, pageName].find((text) => text && !text.includes('{{')) ?? 'Ad without words';

/** `Video · 15 s`; just the cards of an ad with cards, and nothing for a picture, which can be seen. */
export function formatOf({ displayFormat, creative }: BoardAd): string {
  const format = displayFormat === undefined || displayFormat === 'IMAGE' ? undefined : label(displayFormat);
  return [creative?.includes('card') ? undefined : format, creative].filter(Boolean).join(' · ');
}

export const runOf = ({ daysRunning }: BoardAd): string => (daysRunning === undefined ? '' : count(daysRunning, 'day'));

export const stateOf = ({ active }: BoardAd): string => (active === undefined ? '' : active ? 'running' : 'ended');

/** The first letter of an advertiser, and a colour that stays the same for it. */
export function monogramOf({ pageName, id }: BoardAd): { initial: string; hue: number } {
  const name = pageName ?? id;
  let hash = 7;
  for (const character of name) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return { initial: pageName === undefined ? '' : ([...pageName][0] ?? '').toUpperCase(), hue: hash };
}
