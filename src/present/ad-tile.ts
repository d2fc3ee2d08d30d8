import { viewAd } from './ad.ts';
import { factsOf } from './ad-facts.ts';
import type { AdPicture } from './ad-picture.ts';
import type { AdView } from './ad-view.ts';
import { mediaOfCards } from './cards.ts';
import type { Fields } from './copy-fields.ts';
import { quote, word } from './fence.ts';
import { fitsWithin } from './tokens.ts';

/** An ad on a sheet of pictures: what a reader needs to know it by, and what the picture is. */
export interface AdTile extends Partial<ShortFacts> {
  number: number;
  id: string;
  shown: boolean;
  /** Why it is not shown. */
  reason?: string;
  /** What the picture is, if not just the ad's. */
  picture?: string;
}

type ShortFacts = Pick<AdView, (typeof shortFacts)[number]>;

const shortFacts = [
  'pageName',
  'headline',
  'firstCard',
  'displayFormat',
  'creative',
  'startedAt',
  'lastSeen',
  'endDate',
  'daysRunning',
  'stillRunning',
] as const;

export function tileOf(
  ad: Fields,
  { number, picture, now }: { number: number; picture: AdPicture; now: number },
): AdTile {
  const view = viewAd(ad, { detail: 'brief', now });
  const facts = Object.fromEntries(
    shortFacts.flatMap((name) => (view[name] === undefined ? [] : [[name, view[name]]])),
  );
  const label = 'shows' in picture ? labelOf(picture.shows, ad) : undefined;
  return { number, id: view.id, shown: true, ...(label && { picture: label }), ...facts };
}

function labelOf(shows: Extract<AdPicture, { address: string }>['shows'], ad: Fields): string | undefined {
  if (typeof shows === 'object') return `card ${shows.card} of ${mediaOfCards(ad).length}`;
  return { picture: undefined, still: 'still of a video', portrait: "advertiser's portrait only" }[shows];
}

/** One line: `3. 6a1f… "Acme", VIDEO 15 s, 2026-07-01–2026-08-02: "Headline" (still of a video)`. */
export function tileText({ number, id, pageName, headline, firstCard, picture, reason, ...facts }: AdTile): string {
  const parts = [word(id), pageName === undefined ? '' : quote(pageName), ...factsOf({ id, ...facts })];
  const notes = [reason === undefined ? picture : `not shown: ${reason}`].filter((text) => text !== undefined);
  return [
    `${number}. ${parts.filter(Boolean).join(', ')}`,
    headline === undefined ? '' : `: ${quote(headline)}`,
    firstCard === undefined ? '' : ` card 1: ${quote(firstCard)}`,
    notes.length > 0 ? ` (${notes.join()})` : '',
  ].join('');
}

/** As many facts as there is room for: which ads are shown, and why others are not, comes first. */
export function tilesWithin(tiles: readonly AdTile[], tokens: number): AdTile[] {
  if (fitsWithin(JSON.stringify(tiles), tokens)) return [...tiles];
  return tiles.map(({ number, id, shown, reason }) => ({ number, id, shown, ...(reason && { reason }) }));
}
