import type { MediaAsset } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { type ColumnValueParser, isMissingValue } from '../values/column-value-parser.ts';
import { decodeText } from './field-parsers.ts';
import { SourceRecord } from './source-record.ts';

/**
 * The keys of an imported record that contain URLs of videos and pictures. The keys are normalized: in lower case,
 * without separators.
 */
export interface MediaKeys {
  videoKeys: readonly string[];
  pictureKeys: readonly string[];
  /** Keys for the preview images of the videos. The images are in the same order as the videos. */
  previewKeys?: readonly string[];
  /** Keys for the profile picture of the advertiser, which does not belong to the ad. */
  profilePictureKeys?: readonly string[];
}

/** Returns all keys that contain media. An import format puts them into its `keysByField`. */
export const listMediaKeys = ({
  videoKeys,
  pictureKeys,
  previewKeys = [],
  profilePictureKeys = [],
}: MediaKeys): string[] => [...videoKeys, ...pictureKeys, ...previewKeys, ...profilePictureKeys];

/**
 * Keys of an object that describes a video or picture. One of the `urlKeys` contains the URL of the video or picture,
 * and one of the `previewUrlKeys` may contain the URL of the video's preview image.
 */
const urlKeys = ['url', 'videourl', 'videohdurl', 'videosdurl', 'originalimageurl', 'imageurl', 'link', 'src'];
const previewUrlKeys = ['coverimageurl', 'coverimg', 'videopreviewimageurl', 'previewurl', 'thumbnail', 'poster'];

/**
 * Collects the media of an ad from the keys that scrapers use. A key may contain a URL, an object with a URL, or a list
 * of these. A URL in several keys is returned once. Keys without a URL stay unused.
 */
export function collectFlatMedia(record: SourceRecord, keys: MediaKeys, parser: ColumnValueParser): MediaAsset[] {
  const collectMedia = (mediaKeys: readonly string[] = []) => {
    const media = mediaKeys.flatMap((key) => {
      const sourceValue = record.get(key);
      const mediaOfKey = readMedia(sourceValue, parser);
      if (mediaOfKey.length > 0) {
        record.markUsed(key);
        parser.addFieldSource('media', record.getSourceName(key));
      } else if (hasText(sourceValue))
        parser.addValueError(new Error(`${record.getSourceName(key)}: ${quoteValue(sourceValue)} contains no URL`));
      return mediaOfKey;
    });
    return [...new Map(media.map((medium) => [medium.url, medium])).values()];
  };
  const [videos, pictures, previews] = [
    collectMedia(keys.videoKeys),
    collectMedia(keys.pictureKeys),
    collectMedia(keys.previewKeys),
  ];
  // If the record has neither videos nor pictures, use the preview images as pictures.
  const picturesOrPreviews = videos.length > 0 || pictures.length > 0 ? pictures : previews;
  return [
    ...videos.map(({ url, previewUrl: ownPreviewUrl }, videoIndex) => {
      const preview = ownPreviewUrl ?? previews[videoIndex]?.url;
      return { type: 'VID', url, nr: videoIndex, ...(preview !== undefined && { urls: { preview } }) };
    }),
    ...picturesOrPreviews.map(({ url }, pictureIndex) => ({ type: 'THUMB', url, nr: pictureIndex })),
    ...collectMedia(keys.profilePictureKeys)
      .slice(0, 1)
      .map(({ url }) => ({ type: 'PA_PP', url, nr: null })),
  ];
}

/**
 * Returns true if a value is a text, or contains a text at any depth. Numbers, booleans and empty lists that are
 * written as text do not count.
 */
const hasText = (sourceValue: unknown): boolean =>
  typeof sourceValue === 'string'
    ? !isMissingValue(sourceValue) && !/^\s*(?:\[\s*\]|\{\s*\}|true|false|\d+)\s*$/i.test(sourceValue)
    : typeof sourceValue === 'object' && sourceValue !== null && Object.values(sourceValue).some(hasText);

interface MediaUrls {
  url: string;
  previewUrl?: string | undefined;
}

function readMedia(value: unknown, parser: ColumnValueParser): MediaUrls[] {
  if (isMissingValue(value)) return [];
  const mediaItems = parser.parseStructure(value) ?? splitUrls(value);
  return [mediaItems].flat().flatMap((item): MediaUrls[] => {
    const mediaRecord = isObject(item) ? new SourceRecord(Object.entries(item)) : undefined;
    const findUrl = (keys: readonly string[]) => keys.map((key) => toUrl(mediaRecord?.get(key), parser)).find(Boolean);
    const url = mediaRecord ? findUrl(urlKeys) : toUrl(item, parser);
    return url === undefined ? [] : [{ url, previewUrl: mediaRecord && findUrl(previewUrlKeys) }];
  });
}

/** Splits a table cell that lists several URLs. Splits only before `http`, because a URL itself may contain commas. */
const splitUrls = (cellValue: unknown): unknown =>
  typeof cellValue === 'string' ? cellValue.split(/(?<![\s,;|])[\s,;|]+(?=https?:\/\/)/i) : cellValue;

function toUrl(sourceValue: unknown, parser: ColumnValueParser): string | undefined {
  const url = decodeText(parser.parseText(sourceValue))?.trim();
  return url !== undefined && /^https?:/i.test(url) ? url : undefined;
}
