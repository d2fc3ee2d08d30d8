import { type Fields, objects } from '../present/copy-fields.ts';

export interface MediaCounts {
  cardCount: number;
  videoCount: number;
  imageCount: number;
}

/**
 * How many cards, videos and images an ad shows. The still of a video, the advertiser's portrait and other sizes of the
 * same piece are not counted.
 */
export function mediaCounts(ad: Fields): MediaCounts {
  const media = objects(ad.media);
  const videos = positions(media, /^VID/i);
  const cardVideos = positions(media, /^CARD_VID/i);
  const cardImages = [...positions(media, /^CARD_(?!VID)/i)].filter((position) => !cardVideos.has(position));
  const cardCount = Math.max(objects(ad.cards).length, positions(media, /^CARD/i).size);
  const stills = videos.size > 0 || cardCount > 0 ? 0 : positions(media, /^(?!CARD|PA_|VID)/i).size;
  return { cardCount, videoCount: videos.size + cardVideos.size, imageCount: stills + cardImages.length };
}

/** The positions (`nr`) that assets of a role stand in. */
const positions = (media: Fields[], role: RegExp): Set<unknown> =>
  new Set(
    media
      .filter(({ type }) => typeof type === 'string' && role.test(type))
      .map(({ nr, filename, url }) => nr ?? filename ?? url),
  );
