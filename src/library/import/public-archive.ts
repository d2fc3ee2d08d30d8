import { createHash } from 'node:crypto';
import type { Ad, MediaAsset } from '../../api/schemas.ts';
import { domainOf } from '../../views/addresses.ts';
import { timeOf } from '../../views/dates.ts';
import { isObject } from '../../views/view.ts';

/**
 * Maps ads of the public ad library to the API's Ad, without claiming more than they say. There are two formats:
 * scraped pages (`ad_archive_id`, `snapshot`; snake or camel case) and answers of the official archive API
 * (`ad_creative_bodies`, `ad_delivery_start_time`, `ad_snapshot_url`). README.md lists the mapping. A value for which
 * the API has no field is stored under its own name in camel case.
 */
export const archiveKeys = [
  'ad_archive_id',
  'adArchiveID',
  'adArchiveId',
  'ad_snapshot_url',
  'ad_creative_bodies',
  'ad_delivery_start_time',
];

export const isPublicArchiveAd = (value: Json): boolean => archiveKeys.some((key) => key in value);

/** Reads JSON that follows no schema: what is not there or of another type is `undefined`, empty or left out. */
type Json = Record<string, unknown>;

const object = (value: unknown): Json => (isObject(value) ? value : {});

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

const firstText = (value: unknown) => text(Array.isArray(value) ? value[0] : value);

function texts(value: unknown): string[] | undefined {
  const found = [value].flat().filter((one) => typeof one === 'string' && (one !== '' || Array.isArray(value)));
  return found.length > 0 ? (found as string[]) : undefined;
}

function several(value: unknown): string[] | undefined {
  const all = texts(value);
  return all && all.length > 1 ? all : undefined;
}

const capitals = (value: unknown) => texts(value)?.map((name) => name.toUpperCase());

function numeric(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

const lower = (value: unknown) => numeric(camelCased(object(value)).lowerBound);
const upper = (value: unknown) => numeric(camelCased(object(value)).upperBound);

/** Unix seconds, unix milliseconds or a date text. */
function time(value: unknown): string | undefined {
  const number = numeric(value);
  const date = new Date((number === undefined ? timeOf(value) : number < 1e11 ? number * 1000 : number) ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

const withoutAbsent = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));

function shares(value: unknown): unknown {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const shareOf = ({ percentage, ...one }: Json) =>
    withoutAbsent({ ...one, percentage: numeric(percentage) ?? percentage });
  return texts(value) ?? value.map((one) => shareOf(object(one)));
}

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);

/** The same object with `page_id` and `pageID` as `pageId`. Of two spellings of one key the first with a value counts. */
function camelCased(value: Json): Json {
  const cased = new Map<string, unknown>();
  for (const [key, one] of Object.entries(value)) {
    const name = key.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
    cased.set(name, cased.get(name) ?? one);
  }
  return Object.fromEntries(cased);
}

/** A field, how it is read, and the keys it is made from: the first that can be read counts. A dot is the snapshot. */
const fields: [field: string, read: (value: unknown) => unknown, ...from: string[]][] = [
  ['adArchiveId', (value) => idText('ad_archive_id', value), 'adArchiveId', 'id'],
  ['pageId', (value) => idText('page_id', value), 'pageId', '.pageId'],
  ['sourcePageExternalId', text, 'pageId', '.pageId'],
  ['page', (value) => text(value) && { pageName: text(value) }, 'pageName', '.pageName'],
  // A snapshot shows one version of the copy, the archive lists all of them; several are stored beside the first.
  ['headline', firstText, '.title', 'adCreativeLinkTitles'],
  ['headlines', several, 'adCreativeLinkTitles'],
  ['body', (value) => bodyText(value) ?? firstText(value), '.body', 'adCreativeBodies'],
  ['bodies', several, 'adCreativeBodies'],
  ['linkDescription', firstText, '.linkDescription', 'adCreativeLinkDescriptions'],
  ['linkDescriptions', several, 'adCreativeLinkDescriptions'],
  ['offerLink', text, '.linkUrl'],
  ['displayUrl', firstText, '.caption', 'adCreativeLinkCaptions'],
  ['displayUrls', several, 'adCreativeLinkCaptions'],
  ['ctaType', text, '.ctaType'],
  ['displayFormat', (value) => text(value)?.toUpperCase(), '.displayFormat'],
  ['cards', (value) => (Array.isArray(value) ? value.map(object) : undefined), '.cards'],
  ['startedAt', time, 'startDate', 'adDeliveryStartTime'],
  ['lastSeenAt', time, 'endDate', 'adDeliveryStopTime'],
  ['endDate', time, 'endDate', 'adDeliveryStopTime'],
  ['duplicates', numeric, 'collationCount'],
  ['countries', texts, 'targetedOrReachedCountries'],
  ['publisherPlatform', capitals, 'publisherPlatform', 'publisherPlatforms'],
  ['languages', texts, 'languages'],
  ['bylines', text, 'bylines', 'byline', '.byline'],
  ['currency', text, 'currency'],
  ['adSpendMin', lower, 'spend'],
  ['adSpendMax', upper, 'spend'],
  ['impressionsMin', lower, 'impressions'],
  ['impressionsMax', upper, 'impressions'],
  ['audienceSizeMin', lower, 'estimatedAudienceSize'],
  ['audienceSizeMax', upper, 'estimatedAudienceSize'],
  ['audienceReach', numeric, 'euTotalReach'],
  ['demographics', shares, 'demographicDistribution'],
  ['regions', shares, 'deliveryByRegion', 'regionDistribution'],
  ['adSnapshotUrl', (value) => text(value)?.replace(/([?&])access_token=[^&#]*&?/gi, '$1'), 'adSnapshotUrl'],
];

/** @throws Error when the record has no archive id */
export function adFromPublicArchive(source: Json): Ad {
  const { snapshot: scraped, ...value } = camelCased(source);
  const snapshot = camelCased(object(scraped));
  const at = (key: string) => (key.startsWith('.') ? snapshot[key.slice(1)] : value[key]);
  const made = new Set(['id', 'adSnapshotUrl', '.images', '.videos', '.pageProfilePictureUrl']);
  const ad: Json = {};
  for (const [field, read, ...from] of fields) {
    for (const key of from) {
      const found = at(key) == null ? undefined : read(at(key));
      if (found === undefined) continue;
      ad[field] = found;
      for (const one of from) made.add(one);
      break;
    }
  }
  if (ad.adArchiveId === undefined) throw new Error('ad_archive_id: missing, so the ad has no identity');
  // The end date of an active ad is only the day when it was scraped.
  if (value.isActive === true) ad.endDate = null;
  if ('endDate' in ad) made.add('isActive');
  const rest = (from: Json, dot: string) =>
    Object.entries(from).filter(([key, one]) => !isEmpty(one) && !made.has(dot + key) && !Object.hasOwn(ad, key));
  const left = Object.fromEntries(rest(snapshot, '.'));
  return {
    ...Object.fromEntries(rest(value, '')),
    ...(!isEmpty(left) && { snapshot: left }),
    ...ad,
    id: idOf(String(ad.adArchiveId)),
    website: withoutAbsent({ siteDomain: domainOf(text(ad.offerLink ?? ad.displayUrl)) }),
    media: mediaOf(snapshot),
    cards: ad.cards ?? [],
  } as Ad;
}

/** The same archive id always gives the same UUID, so importing again replaces the ad. */
function idOf(archiveId: string): string {
  const hex = createHash('sha256').update(`public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** @throws Error when the id was rounded: another ad or page could have the same one */
function idText(key: string, value: unknown): string | undefined {
  const id = text(value);
  if ((typeof value === 'number' && !Number.isSafeInteger(value)) || /^\d([.,]\d+)?e\+?\d+$/i.test(id ?? ''))
    throw new Error(`${key}: ${id} is rounded, so the id is lost; export it again as a text`);
  return id;
}

function bodyText(body: unknown): string | undefined {
  const { text: plain, markup } = object(body);
  const html = text(object(markup).__html)
    ?.replace(/<br\s*\/?>/gi, '\n')
    .replace(/<[^<>]+>/g, '');
  return text(plain ?? html);
}

function mediaOf(snapshot: Json): MediaAsset[] {
  const assets = (from: unknown, type: string) =>
    (Array.isArray(from) ? from : []).flatMap((entry, nr) => {
      const one = camelCased(object(entry));
      const isVideo = type.endsWith('VID');
      const url = text(isVideo ? (one.videoHdUrl ?? one.videoSdUrl) : (one.originalImageUrl ?? one.resizedImageUrl));
      const preview = isVideo && text(one.videoPreviewImageUrl);
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  const portrait = text(snapshot.pageProfilePictureUrl);
  return [
    ...assets(snapshot.videos, 'VID'),
    ...assets(snapshot.images, 'THUMB'),
    ...assets(snapshot.cards, 'CARD_VID'),
    ...assets(snapshot.cards, 'CARD_THUMB'),
    ...(portrait ? [{ type: 'PA_PP', url: portrait, nr: null }] : []),
  ];
}
