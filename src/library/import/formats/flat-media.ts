import type { MediaAsset } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { type ColumnValueParser, isMissing } from '../values/column-value-parser.ts';
import { decodeText } from './field-parsers.ts';
import { SourceRecord } from './source-record.ts';

/** The normalized keys of a record that contain the URLs of videos and pictures. */
export interface MediaKeys {
  videos: readonly string[];
  pictures: readonly string[];
  /** Keys with the preview images of the videos, in the same order as the videos. */
  previews?: readonly string[];
  /** Keys with the profile picture of the advertiser, which is not a picture of the ad. */
  profilePictures?: readonly string[];
}

/** Returns all keys that contain media. A format lists them in its `keysByField`. */
export const listMediaKeys = ({ videos, pictures, previews = [], profilePictures = [] }: MediaKeys): string[] => [
  ...videos,
  ...pictures,
  ...previews,
  ...profilePictures,
];

/**
 * If a video or picture is an object, its URL is in one of these keys. The URL of a video's preview image is in one of
 * `previewUrlKeys`.
 */
const urlKeys = ['url', 'videourl', 'videohdurl', 'videosdurl', 'originalimageurl', 'imageurl', 'link', 'src'];
const previewUrlKeys = ['coverimageurl', 'coverimg', 'videopreviewimageurl', 'previewurl', 'thumbnail', 'poster'];

/**
 * Collects the media of an ad from the keys that scrapers use. Each key may contain a URL, an object with a URL, or a
 * list of either. URLs that occur in several keys are returned once. Keys without any URL stay unused.
 */
export function collectFlatMedia(record: SourceRecord, keys: MediaKeys, parser: ColumnValueParser): MediaAsset[] {
  const collectMedia = (mediaKeys: readonly string[] = []) => {
    const media = mediaKeys.flatMap((key) => {
      const value = record.get(key);
      const mediaOfKey = readMedia(value, parser);
      if (mediaOfKey.length > 0) {
        record.markUsed(key);
        parser.addFieldSource('media', record.getSourceName(key));
      } else if (hasText(value))
        parser.addValueError(new Error(`${record.getSourceName(key)}: ${quoteValue(value)} contains no URL`));
      return mediaOfKey;
    });
    return [...new Map(media.map((medium) => [medium.url, medium])).values()];
  };
  const [videos, pictures, previews] = [
    collectMedia(keys.videos),
    collectMedia(keys.pictures),
    collectMedia(keys.previews),
  ];
  // If the record has neither videos nor pictures, show the preview images instead.
  const allPictures = videos.length > 0 || pictures.length > 0 ? pictures : previews;
  return [
    ...videos.map(({ url, previewUrl: ownPreview }, nr) => {
      const preview = ownPreview ?? previews[nr]?.url;
      return { type: 'VID', url, nr, ...(preview !== undefined && { urls: { preview } }) };
    }),
    ...allPictures.map(({ url }, nr) => ({ type: 'THUMB', url, nr })),
    ...collectMedia(keys.profilePictures)
      .slice(0, 1)
      .map(({ url }) => ({ type: 'PA_PP', url, nr: null })),
  ];
}

/** Returns true if a value is a text, or contains a text at any depth. */
const hasText = (value: unknown): boolean =>
  typeof value === 'string'
    ? !isMissing(value) && !/^\s*(?:\[\s*\]|\{\s*\}|true|false|\d+)\s*$/i.test(value)
    : typeof value === 'object' && value !== null && Object.values(value).some(hasText);

interface MediaUrls {
  url: string;
  previewUrl?: string | undefined;
}

function readMedia(value: unknown, parser: ColumnValueParser): MediaUrls[] {
  if (isMissing(value)) return [];
  const mediaItems = parser.parseStructure(value) ?? splitUrls(value);
  return [mediaItems].flat().flatMap((item): MediaUrls[] => {
    const mediaRecord = isObject(item) ? new SourceRecord(Object.entries(item)) : undefined;
    const findUrl = (keys: readonly string[]) => keys.map((key) => toUrl(mediaRecord?.get(key), parser)).find(Boolean);
    const url = mediaRecord ? findUrl(urlKeys) : toUrl(item, parser);
    return url === undefined ? [] : [{ url, previewUrl: mediaRecord && findUrl(previewUrlKeys) }];
  });
}

/**
 * Splits a table cell that lists several URLs. A separator only counts if `http` follows, because a URL itself may
 * contain commas.
 */
const splitUrls = (value: unknown): unknown =>
  typeof value === 'string' ? value.split(/(?<![\s,;|])[\s,;|]+(?=https?:\/\/)/i) : value;

function toUrl(value: unknown, parser: ColumnValueParser): string | undefined {
  const url = decodeText(parser.parseText(value))?.trim();
  return url !== undefined && /^https?:/i.test(url) ? url : undefined;
}
