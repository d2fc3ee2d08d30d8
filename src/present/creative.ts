import { type Fields, isNumber, isObject, objects } from './copy-fields.ts';

/**
 * Describes the pictures, videos and cards of an ad: `15 s` for a VIDEO, `2 cards`, `8 cards (6 videos 14 s)`. Does not
 * repeat the service's own format, and says so if the media are of another kind: `(media: image)` for a VIDEO. The still
 * of a video, the advertiser's portrait and other sizes of the same piece are not counted.
 */
export function creativeOf(ad: Fields): string | undefined {
  const parts = mediaParts(ad).join(' + ');
  const kind = typeof ad.displayFormat === 'string' ? ad.displayFormat.toLowerCase() : '';
  if (parts === '') return;
  if (kind !== '' && (parts === kind || parts.startsWith(`${kind} `))) return parts.slice(kind.length + 1) || undefined;
  return (kind === 'video' || kind === 'image') && !parts.includes(kind) ? `(media: ${parts})` : parts;
}

function mediaParts(ad: Fields): string[] {
  const media = objects(ad.media);
  const videos = pieces(media, OWN_VIDEO);
  const stills = pieces(media, OWN_PICTURE);
  const cardVideos = pieces(media, CARD_VIDEO);
  const cards = cardCount(ad, media);
  const parts: string[] = [];
  if (videos.length > 0) parts.push(`${counted(videos.length, 'video')}${lengths(videos)}`);
  else if (stills.length > 0 && cards === 0) parts.push(counted(stills.length, 'image'));
  if (cards > 0) {
    const within = cardVideos.length > 0 ? ` (${counted(cardVideos.length, 'video')}${lengths(cardVideos)})` : '';
    parts.push((cards === 1 ? '1 card' : `${cards} cards`) + within);
  }
  return parts;
}

const OWN_VIDEO = /^VID/i;
const OWN_PICTURE = /^(?!CARD|PA_|VID)/i;
const CARD_VIDEO = /^CARD_VID/i;
const CARD_PICTURE = /^CARD(?!_VID)/i;

/** Some ads send the media of their cards, but no cards. */
const cardCount = ({ cards }: Fields, media: Fields[]) =>
  Math.max(Array.isArray(cards) ? cards.filter(isObject).length : 0, pieces(media, /^CARD/i).length);

/**
 * How many cards, videos and pictures `creativeOf` would find. The still of a card's video is not counted either. Null
 * where the answer brought none of the ad's media.
 */
export function mediaCounts(ad: Fields) {
  const media = objects(ad.media).filter(({ type }) => typeof type === 'string');
  const cards = cardCount(ad, media);
  const videos = pieces(media, OWN_VIDEO).length;
  const cardVideos = new Set(pieces(media, CARD_VIDEO).map(positionOf));
  const cardImages = pieces(media, CARD_PICTURE).filter((asset) => !cardVideos.has(positionOf(asset)));
  const stills = videos > 0 || cards > 0 ? 0 : pieces(media, OWN_PICTURE).length;
  if (pieces(media, /^(?!PA_)/i).length === 0) return { cardCount: cards, videoCount: null, imageCount: null };
  return { cardCount: cards, videoCount: videos + cardVideos.size, imageCount: stills + cardImages.length };
}

/** The pictures and videos of an ad, without the advertiser's portrait: its own, and those of each card in order. */
export interface Media {
  own: Fields[];
  ofCards: Fields[][];
}

export function mediaOf(ad: Fields): Media {
  const media = objects(ad.media);
  const own = [...pieces(media, OWN_VIDEO), ...pieces(media, OWN_PICTURE)];
  const ofCards: Fields[][] = Array.from({ length: cardCount(ad, media) }, () => []);
  const cardMedia = [...pieces(media, CARD_PICTURE), ...pieces(media, CARD_VIDEO)];
  const cardIndex = indexByPosition(cardMedia, ofCards.length);
  for (const asset of cardMedia) (ofCards[cardIndex(asset)] ?? own).push(asset);
  return { own, ofCards };
}

/**
 * The card that an asset belongs to. The document does not say where `nr` starts: if there are as many positions as
 * cards, their order decides.
 */
function indexByPosition(assets: Fields[], cards: number): (asset: Fields) => number {
  const positions = [...new Set(assets.map(positionOf))];
  if (positions.length !== cards) return ({ nr }) => (isNumber(nr) ? nr : -1);
  if (positions.every(isNumber)) positions.sort((a, b) => a - b);
  const ranks = new Map(positions.map((position, index) => [position, index]));
  return (asset) => ranks.get(positionOf(asset)) ?? -1;
}

const positionOf = (asset: Fields) => asset.nr ?? asset.filename ?? asset.url;

/** The assets of a role, one for each position. */
function pieces(media: Fields[], role: RegExp): Fields[] {
  const seen = new Set<unknown>();
  return media.filter((asset) => {
    const { type } = asset;
    if (!role.test(typeof type === 'string' ? type : '')) return false;
    const position = positionOf(asset);
    return !seen.has(position) && seen.add(position);
  });
}

const counted = (count: number, noun: string) => (count === 1 ? noun : `${count} ${noun}s`);

function lengths(videos: Fields[]): string {
  const seconds = videos.flatMap(({ durationSeconds: s }) => (isNumber(s) && s > 0 ? Math.round(s) : []));
  if (seconds.length === 0) return '';
  const min = seconds.reduce((a, b) => Math.min(a, b));
  const max = seconds.reduce((a, b) => Math.max(a, b));
  return min === max ? ` ${max} s` : ` ${min}–${max} s`;
}
