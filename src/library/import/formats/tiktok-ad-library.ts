import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import type { ColumnValueParser, NumberRange } from '../values/column-value-parser.ts';
import {
  createNumericIdParser,
  type FieldParser,
  parseApiConstant,
  parseBoolean,
  parseDate,
  parseFirstText,
  parseId,
  parseNames,
  parsePageName,
  parseText,
} from './field-parsers.ts';
import { type FieldRule, listKeysByCamelCaseName, listKeysByField, type RangeRule } from './field-reader.ts';
import { collectFlatMedia, listMediaKeys, type MediaKeys } from './flat-media.ts';
import { collectOtherFields, readFlatRecord } from './flat-record.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computeAdId, computePageId, computePageIdFromName } from './library-ids.ts';
import { isLinkedInAd } from './linkedin-ad-library.ts';
import type { SourceRecord } from './source-record.ts';

/** Returns each key with and without a prefix. Nested responses of the API have the prefix, and flat records do not. */
const listWithAndWithoutPrefix = (prefix: string, ...keys: string[]) => keys.flatMap((key) => [`${prefix}${key}`, key]);
const targetingPrefixes = ['adgrouptargetinginfo', 'targetinginfo', 'adgrouptarget', 'target'];

const parseCountryNames: FieldParser = (sourceValue, keyName, parser) => {
  const names = parser.parseNames(keyName, sourceValue)?.map((country) => country.toUpperCase());
  const countries = names?.filter((country) => /^[A-Z]{2}$/.test(country));
  return countries && countries.length > 0 ? countries : undefined;
};
/** Parses an object with an ad's reach by country, e.g. `{"GB": "18K"}`. Each value may be a number or a range. */
const parseReachByCountry: FieldParser = (sourceValue, keyName, parser) => {
  const reachByCountry = parser.parseStructure(sourceValue);
  if (!isObject(reachByCountry))
    throw new Error(`${keyName}: ${quoteValue(sourceValue)} is not an object such as {"GB": 1000}`);
  const entries = Object.entries(reachByCountry).flatMap(([country, count]) => {
    try {
      const range = parser.parseRange(keyName, count, { isCount: true });
      const hasValue = range?.min !== undefined || range?.max !== undefined;
      return hasValue ? [[country.toUpperCase(), range.min === range.max ? range.min : range] as const] : [];
    } catch (error) {
      parser.addValueError(error);
      return [];
    }
  });
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
};

/**
 * The normalized keys for the dates on which an ad was first and last shown. The API writes `first_shown_date` and
 * `last_shown_date`. Scrapers use other forms of these names.
 */
const firstShownKeys = ['firstshowndate', 'firstshowndatetime', 'firstshownat', 'firstshown'];
const lastShownKeys = ['lastshowndate', 'lastshowndatetime', 'lastshownat', 'lastshown'];

const fieldRules: readonly FieldRule[] = [
  ['adArchiveId', createNumericIdParser('Ad Library of TikTok'), 'adid', 'id'],
  ['sourcePageExternalId', parseId, ...listWithAndWithoutPrefix('advertiser', 'businessid'), 'advertiserid'],
  [
    ...(['page', parsePageName, ...listWithAndWithoutPrefix('advertiser', 'businessname')] as const),
    ...['advertisername', 'advertiseradvname', 'advertiser', 'creatorusername', 'name'],
  ],
  ['payer', parseText, ...listWithAndWithoutPrefix('advertiser', 'paidforby', 'paidby', 'sponsor')],
  ['headline', parseFirstText, ...listWithAndWithoutPrefix('ad', 'title')],
  ['offerLink', parseText, ...listWithAndWithoutPrefix('ad', 'externalurl', 'landingpageurl')],
  ['ctaType', parseApiConstant, ...listWithAndWithoutPrefix('ad', 'calltoaction')],
  ['body', parseFirstText, 'adtext', 'caption'],
  ['startedAt', parseDate, ...listWithAndWithoutPrefix('ad', ...firstShownKeys), 'createdate', 'createtimestamp'],
  ['lastSeenAt', parseDate, ...listWithAndWithoutPrefix('ad', ...lastShownKeys)],
  [
    'reachByCountry',
    parseReachByCountry,
    ...listWithAndWithoutPrefix('ad', ...listWithAndWithoutPrefix('reach', 'uniqueusersseenbycountry')),
  ],
  ['targetCountries', parseCountryNames, ...targetingPrefixes.map((prefix) => `${prefix}country`)],
  ['languages', parseNames, ...targetingPrefixes.map((prefix) => `${prefix}languages`)],
];
const rangeRules: readonly RangeRule[] = [
  ['reach', listWithAndWithoutPrefix('ad', ...listWithAndWithoutPrefix('reach', 'uniqueusersseen')), true],
  [
    'audienceSize',
    [
      ...targetingPrefixes.map((prefix) => `${prefix}numberofuserstargeted`),
      ...listWithAndWithoutPrefix('ad', 'estimatedaudience'),
      'audienceestimate',
    ],
    true,
  ],
];
const statusKeys = listWithAndWithoutPrefix('ad', 'status');
const mediaKeys: MediaKeys = {
  videoKeys: [...listWithAndWithoutPrefix('ad', 'videos'), 'videourls', 'videourl', 'videolink', 'video'],
  pictureKeys: [
    ...listWithAndWithoutPrefix('ad', 'imageurls'),
    'imageurl',
    'imagelinks',
    'imagelink',
    'images',
    'image',
  ],
  previewKeys: ['coverurl', 'coverimageurl', 'coverimage', 'coverimagelink', 'thumbnail', 'thumbnailurl'],
  profilePictureKeys: ['advertiseravatarurl', 'advertisertiktokaccountavatarurl', 'avatarurl'],
};

/** Documented keys that have no corresponding field in the API. The import stores them under their own names. */
const keyNamesWithoutField = `
  ad_status_statement status_statement ad_download_url download_url ad_advertising_objective advertising_objective
  ad_rejection_info rejection_info advertiser_follower_count follower_count advertiser_profile_url profile_url
  advertiser_country_code country_code label brand_names creator ad_url detail_url ad_audit_status audit_status type ad_type show_mode
  ${targetingPrefixes.flatMap((prefix) => ['age', 'gender', 'interest', 'videointeractions', 'creatorinteractions', 'audiencetargeting', 'audiencetargetingexclude', 'provinces', 'cities', 'devicemodels', 'operatingsystems', 'highspendingpower'].map((key) => `${prefix}${key}`)).join(' ')}
`;
const keysByCamelCaseName = listKeysByCamelCaseName(keyNamesWithoutField);
const keysByField: Record<string, readonly string[]> = {
  ...listKeysByField(fieldRules, rangeRules),
  isActive: statusKeys,
  media: listMediaKeys(mediaKeys),
  ...keysByCamelCaseName,
};
const knownKeys = new Set(Object.values(keysByField).flat());
const keysWithoutField = new Set(Object.values(keysByCamelCaseName).flat());
const flattenedPaths = new Set([
  ...['ad', 'advertiser', 'adgroup', 'adreach', 'reach', 'adgrouptargetinginfo', 'adgrouptarget', 'creator'],
  'advertisertiktokaccount',
]);
const unnamedContainers = new Set(['ad', 'adgroup']);

/**
 * Keys that identify a record with dates as a TikTok ad. The dates alone are not enough, because other formats have the
 * same date keys.
 */
const identifyingKeys = [
  ...['businessid', 'businessname', 'paidforby', 'imageurls', 'videos', 'statusstatement', 'estimatedaudience'],
  ...['reachuniqueusersseen', 'uniqueusersseen', 'reach', 'auditstatus', 'videourls', 'videolink'],
];
const dateKeys = ['firstshowndate', 'lastshowndate'];

/**
 * Ads of TikTok, from responses of the Commercial Content API (`/v2/research/adlib/`: ad/query, ad/detail,
 * advertiser/query, commercial_content/query) or tables of them. Responses of the website library.tiktok.com are not
 * documented. They are read in the forms that scrapers return, e.g. with `estimated_audience` and `videos[].video_url`,
 * or as flat records with `firstShownDate` and `videoUrls`.
 */
export const tikTokAdLibraryFormat: ImportFormat = {
  name: 'tiktok-ad-library',
  title: 'ads of TikTok: its Commercial Content API, and answers of its Ad Library',
  documentation: 'https://developers.tiktok.com/doc/commercial-content-api-query-ads',
  layouts: ['json', 'table'],
  keysByField,
  hasColumnPaths: true,
  matches(record) {
    // Exclude LinkedIn ads first, because their records may have the same keys for dates, ids and advertisers.
    if (isLinkedInAd(record)) return false;
    const ad = record.get('ad');
    if (isObject(ad))
      return nestedAdKeys.some((key) => key in ad) || ('id' in ad && isAdvertiserObject(record.get('advertiser')));
    if (record.has('adid') && record.hasAny(['advertiserbusinessid', 'advertiserbusinessname'])) return true;
    if (record.hasAny(['brandnames']) && record.hasAny(['createdate', 'createtimestamp'])) return record.has('creator');
    if (record.hasAny(['adfirstshowndate', 'adlastshowndate'])) return true;
    if (adUrlKeys.some((key) => adUrlPattern.test(String(record.get(key))))) return true;
    if (record.hasAny(['creativeid', 'adcreativeid'])) return false;
    if (record.hasAny([...firstShownKeys, ...lastShownKeys]))
      return (
        record.hasAny(['id', 'adid']) &&
        (record.hasAny(identifyingKeys) || (record.hasAny(dateKeys) && record.has('advertisername')))
      );
    return isAdvertiserRecord(record);
  },
  toAd,
  toPage,
};

/**
 * Keys in which scrapers write the URL of an ad. They identify a TikTok record only if they really contain such a URL.
 */
const adUrlKeys = ['adurl', 'detailurl', 'adlibraryurl', 'url', 'link'];
const adUrlPattern = /^https?:\/\/library\.tiktok\.com\/ads\/detail\/?\?/;

/**
 * Keys that identify the nested object `ad` of a TikTok response. A single key is enough, because a response contains
 * only the requested fields.
 */
const nestedAdKeys = [
  ...['first_shown_date', 'last_shown_date', 'image_urls', 'videos', 'status_statement', 'rejection_info'],
  'reach',
];

const isAdvertiserObject = (value: unknown): boolean =>
  isObject(value) && ('business_id' in value || 'business_name' in value);

const isAdvertiserRecord = (record: SourceRecord): boolean =>
  record.has('businessid') && record.has('businessname') && !record.hasAny(['id', 'ad', 'adid']);

function toPage(record: SourceRecord, parser: ColumnValueParser): JsonObject | undefined {
  if (!isAdvertiserRecord(record)) return undefined;
  const id = parseId(record.get('businessid'), record.getSourceName('businessid'), parser);
  const country = parser.parseText(record.get('countrycode'))?.toUpperCase();
  return {
    pageId: computePageId('tiktok', String(id)),
    pageName: parser.parseText(record.get('businessname')),
    sourcePageExternalId: id,
    adLibrary: 'tiktok',
    ...(country !== undefined && { advertiserCountryCode: country }),
  };
}

function toAd(source: SourceRecord, parser: ColumnValueParser): JsonObject {
  const { record, reader, ad: adFields } = readFlatRecord(source, { flattenedPaths, fieldRules, rangeRules }, parser);
  const { targetCountries, reachMin, reachMax, ...ad } = adFields as JsonObject & NumberRange;
  if (ad.adArchiveId === undefined && parser.areNotationsDecided)
    throw new Error('id: missing; an ad of TikTok needs its id');
  const media = collectFlatMedia(record, mediaKeys, parser);
  const isActive = reader.parseFirstValue(statusKeys, parseBoolean, 'isActive');
  const reachCountries = Object.keys((ad.reachByCountry ?? {}) as object).filter((code) => /^[A-Z]{2}$/.test(code));
  const countries = reachCountries.length > 0 ? reachCountries : targetCountries;
  // Only paid posts of creators have brand names. TikTok numbers posts and ads separately, so a post may have the same
  // id as an ad. The publisher of a post is a creator and not an advertiser.
  const isAd = !record.hasAny(['brandnames']);
  const pageName = (ad.page as { pageName?: string } | undefined)?.pageName;
  const pageId =
    ad.sourcePageExternalId === undefined
      ? pageName && computePageIdFromName('tiktok', pageName, isAd ? 'page' : 'creator')
      : computePageId('tiktok', String(ad.sourcePageExternalId));
  return {
    ...collectOtherFields(record, { ad, knownKeys, keysWithoutField, unnamedContainers }, parser),
    ...ad,
    id: computeAdId('tiktok', `${isAd ? '' : 'commercial content '}${ad.adArchiveId}`),
    adLibrary: 'tiktok',
    // TikTok's public website has a page for each ad, but not for paid posts of creators.
    ...(isAd && {
      adSnapshotUrl: `https://library.tiktok.com/ads/detail/?ad_id=${encodeURIComponent(String(ad.adArchiveId))}`,
    }),
    ...(pageId !== undefined && { pageId }),
    ...(isActive !== undefined && { isActive }),
    // If an ad is no longer active, it ended on the day on which it was last shown.
    ...(isActive === false && ad.lastSeenAt !== undefined && { endDate: ad.lastSeenAt }),
    // The API returns the reach as a range. Store equal bounds in `audienceReach`, and different bounds in `reachMin`
    // and `reachMax`.
    ...(reachMin !== undefined && reachMin === reachMax && { audienceReach: reachMin }),
    ...(reachMin !== reachMax && {
      ...(reachMin !== undefined && { reachMin }),
      ...(reachMax !== undefined && { reachMax }),
    }),
    ...(countries !== undefined && { countries }),
    ...(targetCountries !== undefined && { targetCountries }),
    media,
    cards: [],
  };
}
