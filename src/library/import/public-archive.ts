import { createHash } from 'node:crypto';
import type { Ad, MediaAsset, Page } from '../../api/schemas.ts';
import { domainOf, timeOf } from '../../present/values.ts';
import { isJsonObject } from '../service/request.ts';

/**
 * Maps ads of the public ad library to the API's Ad, without claiming more than they say. There are two formats: scraped
 * pages (`ad_archive_id`, `snapshot`; snake or camel case) and answers of the official archive API
 * (`ad_creative_bodies`, `ad_delivery_start_time`, `ad_snapshot_url`). README.md lists the mapping. What
 * the API has no field for is kept under its own name in camel case.
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

/** The fields made from a key. The key itself is kept if none of them could be made. */
const madeFrom: Record<string, string[]> = {
  adArchiveId: ['id'],
  pageId: ['pageId'],
  pageName: ['page'],
  adCreativeBodies: ['body'],
  adCreativeLinkTitles: ['headline'],
  adCreativeLinkCaptions: ['displayUrl'],
  adCreativeLinkDescriptions: ['linkDescription'],
  startDate: ['startedAt'],
  adDeliveryStartTime: ['startedAt'],
  endDate: ['lastSeenAt'],
  adDeliveryStopTime: ['lastSeenAt'],
  isActive: ['endDate'],
  collationCount: ['duplicates'],
  euTotalReach: ['audienceReach'],
  spend: ['adSpendMin', 'adSpendMax'],
  impressions: ['impressionsMin', 'impressionsMax'],
  estimatedAudienceSize: ['audienceSizeMin', 'audienceSizeMax'],
  demographicDistribution: ['demographics'],
  deliveryByRegion: ['regions'],
  regionDistribution: ['regions'],
  byline: ['bylines'],
  targetedOrReachedCountries: ['countries'],
  publisherPlatform: ['publisherPlatform'],
  publisherPlatforms: ['publisherPlatform'],
  // From the snapshot.
  title: ['headline'],
  body: ['body'],
  caption: ['displayUrl'],
  linkUrl: ['offerLink'],
  linkDescription: ['linkDescription'],
  ctaType: ['ctaType'],
  displayFormat: ['displayFormat'],
  images: ['media'],
  videos: ['media'],
  cards: ['cards'],
  pageProfilePictureUrl: ['media'],
};

/** What no field of the ad was made from. */
function rest(value: Json, ad: Json): Json {
  const isKept = (key: string) =>
    ![key, ...(Object.hasOwn(madeFrom, key) ? (madeFrom[key] ?? []) : [])].some((field) => Object.hasOwn(ad, field));
  return Object.fromEntries(Object.entries(value).filter(([key, one]) => !isEmpty(one) && isKept(key)));
}

/** @throws Error when the record has no archive id */
export function adFromPublicArchive(source: Json): Ad {
  const { id, snapshot: scraped, adSnapshotUrl, ...value } = camelCased(source);
  const archiveId = idText('ad_archive_id', value.adArchiveId ?? id);
  if (!archiveId) throw new Error('ad_archive_id: missing, so the ad has no identity');
  const snapshot = camelCased(object(scraped));
  const ad = withoutAbsent({
    id: idOf(archiveId),
    adArchiveId: archiveId,
    ...creative(value, snapshot),
    ...transparency(value, snapshot),
    ...times(value),
    duplicates: numeric(value.collationCount),
    countries: texts(value.targetedOrReachedCountries),
    publisherPlatform: texts(first(value, 'publisherPlatform', 'publisherPlatforms'))?.map((name) =>
      name.toUpperCase(),
    ),
    languages: texts(value.languages),
    adSnapshotUrl: text(adSnapshotUrl)?.replace(/([?&])access_token=[^&#]*&?/gi, '$1'),
    ...pageOf(value, snapshot),
  });
  const left = rest(snapshot, ad);
  return { ...rest(value, ad), ...(!isEmpty(left) && { snapshot: left }), ...ad } as Ad;
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

/** A snapshot shows one version of the copy, the archive lists all of them; several are kept beside the first. */
function creative(value: Json, snapshot: Json): Json {
  const link = text(snapshot.linkUrl);
  const [bodies, titles, captions, descriptions] = [
    texts(value.adCreativeBodies),
    texts(value.adCreativeLinkTitles),
    texts(value.adCreativeLinkCaptions),
    texts(value.adCreativeLinkDescriptions),
  ];
  const several = (versions: string[] | undefined) => (versions && versions.length > 1 ? versions : undefined);
  const caption = text(snapshot.caption ?? firstOf(captions));
  return {
    headline: text(snapshot.title ?? firstOf(titles)),
    headlines: several(titles),
    body: bodyOf(snapshot) ?? text(firstOf(bodies)),
    bodies: several(bodies),
    linkDescription: text(snapshot.linkDescription ?? firstOf(descriptions)),
    linkDescriptions: several(descriptions),
    offerLink: link,
    displayUrl: caption,
    displayUrls: several(captions),
    ctaType: text(snapshot.ctaType),
    displayFormat: text(snapshot.displayFormat)?.toUpperCase(),
    media: mediaOf(snapshot),
    cards: list(snapshot.cards).map(object),
    website: withoutAbsent({ siteDomain: domainOf(link ?? caption) }),
  };
}

/** Who paid, what was spent, who saw the ad and whom it was meant for. */
function transparency(value: Json, snapshot: Json): Json {
  const shares = (entries: unknown) =>
    texts(entries) ??
    (list(entries).length > 0
      ? list(entries).map((entry) => {
          const { percentage, ...one } = object(entry);
          return withoutAbsent({ ...one, percentage: numeric(percentage) ?? percentage });
        })
      : undefined);
  return {
    bylines: text(first(value, 'bylines', 'byline') ?? snapshot.byline),
    currency: text(value.currency),
    ...range('adSpend', value, 'spend'),
    ...range('impressions', value, 'impressions'),
    ...range('audienceSize', value, 'estimatedAudienceSize'),
    audienceReach: numeric(value.euTotalReach),
    demographics: shares(value.demographicDistribution),
    regions: shares(first(value, 'deliveryByRegion', 'regionDistribution')),
  };
}

function range(name: string, value: Json, key: string): Json {
  const { lowerBound, upperBound } = camelCased(object(value[key]));
  return { [`${name}Min`]: numeric(lowerBound), [`${name}Max`]: numeric(upperBound) };
}

function pageOf(value: Json, snapshot: Json): Json {
  const pageId = idText('page_id', value.pageId ?? snapshot.pageId);
  const pageName = text(value.pageName ?? snapshot.pageName);
  return { pageId, sourcePageExternalId: pageId, page: withoutAbsent({ pageName }) };
}

function bodyOf({ body }: Json): string | undefined {
  const { text: plain, markup } = object(body);
  const html = text(object(markup).__html)
    ?.replace(/<br\s*\/?>/gi, '\n')
    .replace(/<[^<>]+>/g, '');
  return text(plain ?? html ?? body);
}

/** The end date of an active ad is only the day when it was scraped. */
function times(value: Json): Json {
  const end = time(first(value, 'endDate', 'adDeliveryStopTime'));
  return {
    startedAt: time(first(value, 'startDate', 'adDeliveryStartTime')),
    lastSeenAt: end,
    endDate: value.isActive === true ? null : end,
  };
}

function mediaOf(snapshot: Json): MediaAsset[] {
  const pictures = (from: unknown, type: string) =>
    list(from).flatMap((entry, nr) => {
      const url = text(first(camelCased(object(entry)), 'originalImageUrl', 'resizedImageUrl'));
      return url ? [{ type, url, nr }] : [];
    });
  const videos = (from: unknown, type: string) =>
    list(from).flatMap((entry, nr) => {
      const one = camelCased(object(entry));
      const url = text(first(one, 'videoHdUrl', 'videoSdUrl'));
      const preview = text(one.videoPreviewImageUrl);
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  const portrait = text(snapshot.pageProfilePictureUrl);
  return [
    ...videos(snapshot.videos, 'VID'),
    ...pictures(snapshot.images, 'THUMB'),
    ...videos(snapshot.cards, 'CARD_VID'),
    ...pictures(snapshot.cards, 'CARD_THUMB'),
    ...(portrait ? [{ type: 'PA_PP', url: portrait, nr: null }] : []),
  ];
}

const maxDisclaimers = 500;

export const isReportRow = (value: Json): boolean => columnOf(value, /^page id$/i) !== undefined;

/**
 * The page of a row of the public archive's report. The report has a row for each disclaimer of a page, so a row
 * replaces the one with the same disclaimer and adds to the others. A record of the page itself knows its other fields
 * better.
 * @throws Error when the page has no id or too many disclaimers
 */
export function pageOfReport(row: Json, pageById: (id: string) => Page | undefined): Page {
  const pageId = idText('Page ID', columnOf(row, /^page id$/i)?.cell);
  if (!pageId) throw new Error('Page ID: missing, so the page has no identity');
  const earlier = pageById(pageId);
  const disclaimer = disclaimerOf(row);
  const others = list(earlier?.disclaimers)
    .map(object)
    .filter(({ bylines }) => bylines !== disclaimer.bylines);
  if (others.length >= maxDisclaimers) throw new Error(`Disclaimer: more than ${maxDisclaimers} for one page`);
  const disclaimers = [...others, disclaimer];
  if (earlier && !earlier.detailsEstimated) return { ...earlier, disclaimers };
  const pageName = text(columnOf(row, /^page name$/i)?.cell) ?? pageId;
  const adsAmount = disclaimers.reduce((sum, one) => sum + (numeric(one.adsAmount) ?? 0), 0);
  return { ...earlier, pageId, pageName, adsAmount, detailsEstimated: true, disclaimers };
}

/** What was spent under one disclaimer; small amounts are only known to be at most 100. */
function disclaimerOf(row: Json): Json {
  const spent = columnOf(row, /^amount spent/i);
  const [, upTo, amount] = /^([≤<]?)\s*(\d[\d.,\s]*)$/.exec(String(spent?.cell ?? '').trim()) ?? [];
  const adSpendMax = numeric(amount?.replace(/[,\s]/g, ''));
  return withoutAbsent({
    bylines: text(columnOf(row, /^disclaimer$/i)?.cell),
    adsAmount: numeric(columnOf(row, /^number of ads/i)?.cell),
    adSpendMin: upTo ? 0 : adSpendMax,
    adSpendMax,
    currency: /\(([A-Z]{3})\)/.exec(spent?.name ?? '')?.[1],
  });
}

function columnOf(row: Json, pattern: RegExp): { name: string; cell: unknown } | undefined {
  const name = Object.keys(row).find((key) => pattern.test(key));
  return name === undefined ? undefined : { name, cell: row[name] };
}

/** Reads JSON that follows no schema: what is not there or of another type is `undefined`, empty or left out. */
export type Json = Record<string, unknown>;

export const object = (value: unknown): Json => (isJsonObject(value) ? value : {});

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const first = (value: Json, ...keys: string[]) => keys.map((key) => value[key]).find((one) => one != null);

const firstOf = (value: unknown) => list(value)[0];

export function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A list of texts, or one text alone. */
export function texts(value: unknown): string[] | undefined {
  const found = (typeof value === 'string' && value !== '' ? [value] : list(value)).filter(
    (one) => typeof one === 'string',
  );
  return found.length > 0 ? found : undefined;
}

function numeric(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Unix seconds, unix milliseconds or a date text. */
export function time(value: unknown): string | undefined {
  const number = numeric(value);
  const date = new Date((number === undefined ? timeOf(value) : number < 1e11 ? number * 1000 : number) ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

const withoutAbsent = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));

/** Null, an empty text, an empty list or an empty object. */
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
