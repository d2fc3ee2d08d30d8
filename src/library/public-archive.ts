import { createHash } from 'node:crypto';
import type { Ad, MediaAsset } from '../api/schemas.ts';

/**
 * Maps ads of the public ad library to the API's Ad, without claiming more than they say. There are two formats: scraped
 * pages (`ad_archive_id`, `snapshot`; snake or camel case) and answers of the official archive API
 * (`ad_creative_bodies`, `ad_delivery_start_time`, `ad_snapshot_url`). README.md in this folder lists the mapping.
 */
type Json = Record<string, unknown>;

export const isPublicArchiveAd = (value: Json): boolean =>
  [
    'ad_archive_id',
    'adArchiveID',
    'adArchiveId',
    'ad_snapshot_url',
    'ad_creative_bodies',
    'ad_delivery_start_time',
  ].some((key) => key in value);

/** @throws Error when the record has no archive id */
export function adFromPublicArchive(value: Json): Ad {
  const archiveId = text(first(value, 'ad_archive_id', 'adArchiveID', 'adArchiveId', 'id'));
  if (!archiveId) throw new Error('ad_archive_id: missing, so the ad has no identity');
  const snapshot = object(value.snapshot);
  const pageId = text(first(value, 'page_id', 'pageID', 'pageId') ?? snapshot.page_id);
  const link = text(first(snapshot, 'link_url', 'linkUrl'));
  const caption = text(snapshot.caption ?? firstOf(value.ad_creative_link_captions));
  return withoutAbsent({
    id: idOf(archiveId),
    adArchiveId: archiveId,
    pageId,
    sourcePageExternalId: pageId,
    headline: text(snapshot.title ?? firstOf(value.ad_creative_link_titles)),
    body: bodyOf(value, snapshot),
    linkDescription: text(
      first(snapshot, 'link_description', 'linkDescription') ?? firstOf(value.ad_creative_link_descriptions),
    ),
    offerLink: link,
    displayUrl: caption,
    ...times(value),
    duplicates: numeric(first(value, 'collation_count', 'collationCount')),
    audienceReach: numeric(value.eu_total_reach),
    adSpendMin: numeric(object(value.spend).lower_bound),
    adSpendMax: numeric(object(value.spend).upper_bound),
    ctaType: text(first(snapshot, 'cta_type', 'ctaType')),
    displayFormat: text(first(snapshot, 'display_format', 'displayFormat'))?.toUpperCase(),
    countries: texts(first(value, 'targeted_or_reached_countries', 'targetedOrReachedCountries')),
    publisherPlatform: texts(first(value, 'publisher_platform', 'publisherPlatform', 'publisher_platforms'))?.map(
      (name) => name.toUpperCase(),
    ),
    media: mediaOf(snapshot),
    cards: list(snapshot.cards).map(object),
    page: withoutAbsent({
      pageName: text(first(value, 'page_name', 'pageName') ?? first(snapshot, 'page_name', 'pageName')),
    }),
    website: withoutAbsent({ siteDomain: domainOf(link) ?? domainOf(caption && `https://${caption}`) }),
    currency: text(value.currency),
    impressions: value.impressions,
    languages: texts(value.languages),
  }) as Ad;
}

/** The same archive id always gives the same UUID, so importing again replaces the ad. */
function idOf(archiveId: string): string {
  const hex = createHash('sha256').update(`public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function bodyOf(value: Json, snapshot: Json): string | undefined {
  const body = object(snapshot.body);
  const markup = text(object(body.markup).__html)
    ?.replace(/<br\s*\/?>/gi, '\n')
    .replace(/<[^<>]+>/g, '');
  return text(body.text ?? markup ?? snapshot.body ?? firstOf(value.ad_creative_bodies));
}

/** The end date of an active ad is only the day when it was scraped. */
function times(value: Json) {
  const end = time(first(value, 'end_date', 'endDate', 'ad_delivery_stop_time'));
  const active = first(value, 'is_active', 'isActive') === true;
  return {
    startedAt: time(first(value, 'start_date', 'startDate', 'ad_delivery_start_time')),
    lastSeenAt: end,
    endDate: active ? null : end,
  };
}

function mediaOf(snapshot: Json): MediaAsset[] {
  const pictures = (from: unknown, type: string) =>
    list(from).flatMap((entry, nr) => {
      const one = object(entry);
      const url = text(first(one, 'original_image_url', 'originalImageUrl', 'resized_image_url', 'resizedImageUrl'));
      return url ? [{ type, url, nr }] : [];
    });
  const videos = (from: unknown, type: string) =>
    list(from).flatMap((entry, nr) => {
      const one = object(entry);
      const url = text(first(one, 'video_hd_url', 'videoHdUrl', 'video_sd_url', 'videoSdUrl'));
      const preview = text(first(one, 'video_preview_image_url', 'videoPreviewImageUrl'));
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  const portrait = text(first(snapshot, 'page_profile_picture_url', 'pageProfilePictureUrl'));
  return [
    ...videos(snapshot.videos, 'VID'),
    ...pictures(snapshot.images, 'THUMB'),
    ...videos(snapshot.cards, 'CARD_VID'),
    ...pictures(snapshot.cards, 'CARD_THUMB'),
    ...(portrait ? [{ type: 'PA_PP', url: portrait, nr: null }] : []),
  ];
}

const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const first = (value: Json, ...keys: string[]) => keys.map((key) => value[key]).find((one) => one != null);
const firstOf = (value: unknown) => list(value)[0];

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): string[] | undefined {
  const found = list(value).filter((one) => typeof one === 'string');
  return found.length > 0 ? found : undefined;
}

function numeric(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Unix seconds, unix milliseconds or a date text. */
function time(value: unknown): string | undefined {
  const number = numeric(value);
  const date = number === undefined ? Date.parse(text(value) ?? '') : number < 1e11 ? number * 1000 : number;
  return Number.isNaN(date) ? undefined : new Date(date).toISOString();
}

function domainOf(link: string | undefined): string | undefined {
  try {
    return link ? new URL(link).hostname.replace(/^www\./, '') || undefined : undefined;
  } catch {
    return undefined;
  }
}

const withoutAbsent = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
