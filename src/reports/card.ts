import { buildAdRows } from '../dataset/ad-rows.ts';
import { type AdCardContent, buildAdCardContent } from '../ui/ad-card.tsx';
import { describeCreative, selectPicture } from '../views/ad-media.ts';
import { readText, type UntypedFields } from '../views/view.ts';

/**
 * Builds the content of an ad card in a report. The card states why the picture is missing until the caller has fetched
 * the picture from `pictureUrl`. The result also contains the full ad text.
 */
export function buildReportCard(
  fields: UntypedFields,
  { id, at: readAt, now }: { id: string; at: number; now: number },
) {
  const { ad, cards } = buildAdRows(fields, { gatheredAt: readAt, json: '' });
  const picture = selectPicture(fields, { now });
  const cardContent = buildAdCardContent({
    id,
    pageName: toCardLine(ad.pageName),
    headline: toCardLine(ad.headline),
    firstLine: toCardLine(ad.firstLine),
    cards: [{ title: toCardLine(cards[0]?.title) }],
    displayFormat: toCardLine(ad.displayFormat),
    creative: toCardLine(describeCreative(fields)),
    domain: toCardLine(ad.landingDomain),
    startedAt: ad.startedAt ?? undefined,
    lastSeenAt: ad.lastSeenAt ?? undefined,
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    duplicates: ad.duplicates ?? undefined,
  });
  const missingPictureReason = 'reason' in picture ? picture : { reason: 'there was no time left for it' };
  const card: AdCardContent = { ...cardContent, picture: missingPictureReason };
  return { card, picture, pictureUrl: 'reason' in picture ? undefined : picture.url, adText: ad.text };
}

const maxLineTokens = 60;
const toCardLine = (text: string | null | undefined) => readText(text, maxLineTokens);
