import { buildAdRows } from '../dataset/ad-rows.ts';
import { type CardAd, buildCardAd as cardOfFacts } from '../ui/ad-card.tsx';
import { describeCreative, selectPicture } from '../views/ad-media.ts';
import { type Fields, readText } from '../views/view.ts';

/** Returns an ad of the API as a card, its picture, which the caller fetches, and the whole text of the ad. */
export function cardOf(fields: Fields, { id, at, now }: { id: string; at: number; now: number }) {
  const { ad, cards } = buildAdRows(fields, { gatheredAt: at, json: '' });
  const picture = selectPicture(fields, { now });
  const facts = cardOfFacts({
    id,
    pageName: line(ad.pageName),
    headline: line(ad.headline),
    firstLine: line(ad.firstLine),
    cards: [{ title: line(cards[0]?.title) }],
    displayFormat: line(ad.displayFormat),
    creative: line(describeCreative(fields)),
    domain: line(ad.landingDomain),
    startedAt: ad.startedAt ?? undefined,
    lastSeenAt: ad.lastSeenAt ?? undefined,
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    duplicates: ad.duplicates ?? undefined,
  });
  const reason = 'reason' in picture ? picture : { reason: 'there was no time left for it' };
  const card: CardAd = { ...facts, picture: reason };
  return { card, picture, address: 'reason' in picture ? undefined : picture.address, copy: ad.text };
}

const lineTokens = 60;
const line = (words: string | null | undefined) => readText(words, lineTokens);
