import { adRows } from '../dataset/ad-rows.ts';
import type { CardAd } from '../ui/ad-card.tsx';
import { constantText } from '../ui/formats.ts';
import { creativeOf, pictureOf } from '../views/ad-media.ts';
import { type Fields, textOf } from '../views/view.ts';

/** An ad of the API as a card, its picture, which the caller fetches, and all of its words. */
export function cardOf(fields: Fields, { id, at, now }: { id: string; at: number; now: number }) {
  const { ad, cards } = adRows(fields, { gatheredAt: at, json: '' });
  const [picture, creative] = [pictureOf(fields, { now }), creativeOf(fields)];
  // `Video 15 s`; just the cards of an ad with cards.
  const format = creative?.includes('card') ? creative : [constantText(ad.displayFormat ?? ''), creative];
  const card: CardAd = {
    id,
    pageName: line(ad.pageName),
    title: line(ad.headline ?? cards[0]?.title),
    line: line(ad.firstLine),
    format: line([format].flat().filter(Boolean).join(' ')),
    domain: line(ad.landingDomain),
    startedAt: ad.startedAt ?? undefined,
    lastSeenAt: ad.lastSeenAt ?? undefined,
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    copies: ad.duplicates ?? undefined,
    picture: 'reason' in picture ? picture : { reason: 'there was no time left for it' },
  };
  return { card, picture, address: 'reason' in picture ? undefined : picture.address, copy: ad.text };
}

const lineTokens = 60;
const line = (words: string | null | undefined) => textOf(words, lineTokens);
