import { mediaOfCards } from './cards.ts';
import { type Fields, objects } from './copy-fields.ts';
import { mediaOf } from './creative.ts';
import { expiryOf } from './landing.ts';
import { count } from './list-text.ts';
import { dayOf } from './running.ts';

/** The address of the picture that stands for an ad, or why there is none. */
export type AdPicture = { address: string; shows: 'picture' | 'still' | 'portrait' | { card: number } } | Reason;
type Reason = { reason: string };

export interface PictureChoice {
  /** The card to show, counted from 1; without it the ad's own picture, or its first card. */
  card?: number | undefined;
  /** In milliseconds since the epoch: signed addresses stop working. */
  now: number;
}

/** Prefers the ad's own picture or the still of its video, then its cards, then the advertiser's portrait. */
export function pictureOf(ad: Fields, { card, now }: PictureChoice): AdPicture {
  const cards = mediaOfCards(ad);
  const ofCard = (number: number): AdPicture | undefined => {
    const found = firstWorking(cards[number - 1] ?? [], now);
    return found && ('address' in found ? { address: found.address, shows: { card: number } } : found);
  };
  if (card !== undefined) {
    if (cards.length === 0) return { reason: 'the ad has no cards' };
    if (card > cards.length) return { reason: `the ad has only ${count(cards.length, 'card')}` };
    return ofCard(card) ?? { reason: `card ${card} has no picture` };
  }
  const own = firstWorking(mediaOf(ad).own, now) ?? ofCard(1);
  return own ?? portraitOf(ad, now) ?? { reason: 'the ad has no picture' };
}

function portraitOf(ad: Fields, now: number): AdPicture | undefined {
  const found = firstWorking(objects(ad.media).filter(isPortrait), now);
  return found && ('address' in found ? { ...found, shows: 'portrait' } : found);
}

const isPortrait = ({ type }: Fields) => typeof type === 'string' && /^PA_/i.test(type);

type Found = { address: string; shows: 'picture' | 'still' };

/** Pictures come before stills. If all addresses have expired, says when; undefined if there is no address at all. */
function firstWorking(assets: readonly Fields[], now: number): Found | Reason | undefined {
  const isVideo = ({ type }: Fields) => typeof type === 'string' && /VID/i.test(type);
  const hasVideo = assets.some(isVideo);
  const found = [
    ...assets.filter((asset) => !isVideo(asset)).flatMap(({ url, urls }) => addresses(url, (urls as Fields)?.original)),
    ...assets.filter(isVideo).flatMap(({ urls }) => addresses((urls as Fields)?.preview)),
  ];
  const working = found.find((address) => !(Number(expiryOf(address)) <= now));
  if (working !== undefined) return { address: working, shows: hasVideo ? 'still' : 'picture' };
  const expired = dayOf(expiryOf(found[0] ?? ''));
  if (expired !== undefined) return { reason: `its address expired on ${expired}` };
  return hasVideo ? { reason: 'the video has no still' } : undefined;
}

/** Longer ones are no addresses. */
const WEB_ADDRESS = /^https?:\/\/\S{1,4000}$/i;

const addresses = (...found: unknown[]): string[] =>
  found.filter((address): address is string => typeof address === 'string' && WEB_ADDRESS.test(address));
