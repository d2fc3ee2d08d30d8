import { type Fields, objects } from '../present/view.ts';

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
  const videos = places(media, /^VID/i);
  const cardVideos = places(media, /^CARD_VID/i);
  const cardImages = [...places(media, /^CARD_(?!VID)/i)].filter((place) => !cardVideos.has(place));
  const cardCount = Math.max(objects(ad.cards).length, places(media, /^CARD/i).size);
  const stills = videos.size > 0 || cardCount > 0 ? 0 : places(media, /^(?!CARD|PA_|VID)/i).size;
  return { cardCount, videoCount: videos.size + cardVideos.size, imageCount: stills + cardImages.length };
}

/** The places (`nr`) that assets of a role stand in. */
const places = (media: Fields[], role: RegExp): Set<unknown> =>
  new Set(
    media
      .filter(({ type }) => typeof type === 'string' && role.test(type))
      .map(({ nr, filename, url }) => nr ?? filename ?? url),
  );
