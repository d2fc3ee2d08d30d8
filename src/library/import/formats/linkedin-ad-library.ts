import { isObject } from '../../../views/view.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { findCountryCode } from '../values/countries.ts';
import {
  type FieldParser,
  parseApiConstant,
  parseBoolean,
  parseDate,
  parseEachObject,
  parseFirstText,
  parseId,
  parsePageName,
  parseText,
} from './field-parsers.ts';
import { type FieldRule, listKeysByCamelCaseName, listKeysByField, type RangeRule } from './field-reader.ts';
import { collectFlatMedia, listMediaKeys, type MediaKeys } from './flat-media.ts';
import { collectOtherFields, readFlatRecord } from './flat-record.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computeAdId, computePageId, computePageIdFromName } from './library-ids.ts';
import { SourceRecord } from './source-record.ts';

/** Matches the URL of a LinkedIn ad, e.g. `https://www.linkedin.com/ad-library/detail/1521996423`. */
const adUrlPattern = /^https?:\/\/(?:www\.)?linkedin\.com\/ad-library\/detail\/(\d{1,30})/;
/** Parses the id of an ad, or extracts the id from the URL of the ad. */
const parseAdId: FieldParser = (sourceValue, keyName, parser) =>
  adUrlPattern.exec(String(sourceValue))?.[1] ??
  (/^\d[\d.e+]*$/i.test(String(sourceValue)) ? parseId(sourceValue, keyName, parser) : undefined);
const parseAdUrl: FieldParser = (sourceValue, keyName, parser) =>
  adUrlPattern.test(String(sourceValue)) ? parseText(sourceValue, keyName, parser) : undefined;
/**
 * Extracts the id of an advertiser from the URL of its page, e.g. `1035` from `…/company/1035`, or `in/somebody` from
 * `…/in/somebody`. Also accepts a number, because some scrapers write only the id.
 */
const parseAdvertiserId: FieldParser = (sourceValue, keyName, parser) => {
  if (/^\d{1,15}$/.test(String(sourceValue))) return parseId(sourceValue, keyName, parser);
  const [, pageKind, id] =
    /linkedin\.com\/(company|school|showcase|in)\/([^/?#\s]{1,200})/.exec(String(sourceValue)) ?? [];
  return id === undefined ? undefined : pageKind === 'in' ? `in/${id}` : id;
};

/** The share of an ad's impressions in a country, from 0 to 1. A share such as `<1%` has only a `percentageMax`. */
interface CountryShare {
  region: string;
  percentage?: number;
  percentageMin?: number;
  percentageMax?: number;
}

/** Parses the list of impressions by country. LinkedIn's percentages from 0 to 100 become shares from 0 to 1. */
const parseCountryShares: FieldParser = (sourceValue, keyName, parser) =>
  parseEachObject(sourceValue, keyName, parser, (countryObject): CountryShare | undefined => {
    const countryText = String(countryObject.country ?? '');
    const region = /^(?:urn:li:country:)?([A-Za-z]{2})$/.exec(countryText)?.[1]?.toUpperCase() ?? countryText;
    const share =
      countryObject.impressionPercentage ??
      countryObject.impression_percentage ??
      countryObject.percentage ??
      countryObject.impressions;
    if (region === '') return undefined;
    try {
      const { min, max } =
        parser.parseRange(keyName, typeof share === 'string' ? share.replaceAll('%', '') : share) ?? {};
      const [percentageMin, percentageMax] = [toShare(min), toShare(max)];
      if (min === max) return { region, ...(percentageMin !== undefined && { percentage: percentageMin }) };
      return {
        region,
        ...(percentageMin !== undefined && { percentageMin }),
        ...(percentageMax !== undefined && { percentageMax }),
      };
    } catch (error) {
      parser.addValueError(error);
      return { region };
    }
  });

const toShare = (percentage: number | undefined): number | undefined =>
  percentage === undefined ? undefined : Number((percentage / 100).toPrecision(12));

/** Returns each key with and without the prefix `details`, the object that contains the key in some sources. */
const listWithAndWithoutDetailsPrefix = (...keys: string[]) => keys.flatMap((key) => [`details${key}`, key]);
/** Keys that contain the URL of an ad and that only records of the LinkedIn Ad Library have. */
const adUrlKeys = ['adurl', 'addetailurl', 'adlibraryurl'];
/**
 * Keys that contain a URL and that other formats have too. Such a key identifies a LinkedIn record only if its URL
 * leads to a LinkedIn ad.
 */
const sharedUrlKeys = ['link', 'url', 'detailurl', 'addetaillink'];
const urlKeys = [...adUrlKeys, ...sharedUrlKeys];
const advertiserUrlKeys = [
  ...listWithAndWithoutDetailsPrefix('advertiseradvertiserurl', 'advertiserurl'),
  ...['advertiserlink', 'advertiserlinkedinpage', 'companyurl'],
];
const fieldRules: readonly FieldRule[] = [
  ['adArchiveId', parseAdId, ...urlKeys, 'adid', 'id'],
  ['adSnapshotUrl', parseAdUrl, ...urlKeys],
  ['sourcePageExternalId', parseAdvertiserId, ...advertiserUrlKeys, 'advertiserid'],
  ['advertiserUrl', parseText, ...advertiserUrlKeys],
  [
    ...([
      'page',
      parsePageName,
      ...listWithAndWithoutDetailsPrefix('advertiseradvertisername', 'advertisername'),
    ] as const),
    ...['advertiser', 'poster', 'companyname'],
  ],
  [
    'payer',
    parseText,
    ...listWithAndWithoutDetailsPrefix('advertiseradpayer', 'adpayer'),
    'paidby',
    'payer',
    'payername',
    'paidforby',
    'promotedby',
    'advertiserpromotedby',
  ],
  ['adType', parseApiConstant, ...listWithAndWithoutDetailsPrefix('type'), 'adtype', 'adformat', 'format'],
  ['headline', parseFirstText, 'headline', 'contentheadline', 'contenttitle', 'title'],
  [
    ...(['body', parseFirstText, 'body', 'bodytext', 'primarytext', 'contenttext', 'contentbody'] as const),
    ...['text', 'adtext', 'creativetext', 'commentary', 'description', 'content'],
  ],
  [
    ...(['offerLink', parseText, 'landingpageurl', 'destinationurl', 'contentlink', 'externallink'] as const),
    'contentexternallink',
  ],
  ['ctaType', parseApiConstant, 'ctatext', 'calltoaction', 'contentcalltoaction', 'cta', 'contentcta'],
  [
    ...([
      'startedAt',
      parseDate,
      ...listWithAndWithoutDetailsPrefix('adstatisticsfirstimpressionat', 'firstimpressionat'),
    ] as const),
    ...['startdate', 'firstshowndate', 'firstshownat'],
  ],
  [
    ...([
      'lastSeenAt',
      parseDate,
      ...listWithAndWithoutDetailsPrefix('adstatisticslatestimpressionat', 'latestimpressionat'),
    ] as const),
    ...['enddate', 'lastshowndate', 'lastshownat'],
  ],
  [
    ...(['regions', parseCountryShares] as const),
    ...listWithAndWithoutDetailsPrefix(
      'adstatisticsimpressionsdistributionbycountry',
      'impressionsdistributionbycountry',
    ),
    'impressionsbycountry',
  ],
  ['isRestricted', parseBoolean, 'isrestricted'],
];
const rangeRules: readonly RangeRule[] = [
  ['impressions', listWithAndWithoutDetailsPrefix('adstatisticstotalimpressions', 'totalimpressions'), true],
];
/** Documented keys that have no corresponding field in the API. The import stores them under their own names. */
const keyNamesWithoutField =
  'restrictionDetails detailsAdTargeting adTargeting detailsAdRestrictionDetails targeting adDuration';
const mediaKeys: MediaKeys = {
  videoKeys: ['videourl', 'videourls', 'video', 'videos', 'contentvideo', 'contentvideos'],
  pictureKeys: [
    'imageurl',
    'imageurls',
    'primaryimageurl',
    'image',
    'images',
    'contentimage',
    'contentimages',
    'mediaurls',
  ],
  previewKeys: ['videoposterurl', 'thumbnail', 'contentthumbnail'],
  profilePictureKeys: ['advertiserlogo', 'advertiserlogourl', 'advertiserthumbnail'],
};

const keysByCamelCaseName = listKeysByCamelCaseName(keyNamesWithoutField);
const keysByField: Record<string, readonly string[]> = {
  ...listKeysByField(fieldRules, rangeRules),
  media: listMediaKeys(mediaKeys),
  ...keysByCamelCaseName,
};
const knownKeys = new Set(Object.values(keysByField).flat());
const keysWithoutField = new Set(Object.values(keysByCamelCaseName).flat());
const flattenedPaths = new Set([
  'details',
  'detailsadvertiser',
  'detailsadstatistics',
  'advertiser',
  'adstatistics',
  'content',
]);
const unnamedContainers = new Set(['details']);

/**
 * The `displayFormat` in the API for each of LinkedIn's ad types. The import stores any other type only as `adType`.
 */
const displayFormats: Record<string, string> = {
  SPONSORED_VIDEO: 'VIDEO',
  SPONSORED_UPDATE_CAROUSEL: 'CAROUSEL',
  VIDEO: 'VIDEO',
  IMAGE: 'IMAGE',
  CAROUSEL: 'CAROUSEL',
  SINGLE_IMAGE: 'IMAGE',
  SINGLE_IMAGE_AD: 'IMAGE',
  VIDEO_AD: 'VIDEO',
  CAROUSEL_AD: 'CAROUSEL',
};

/**
 * Ads of the LinkedIn Ad Library: responses of its API, flattened tables of these responses, and tables of the R
 * package liads. LinkedIn documents no CSV download. The API returns neither texts nor pictures.
 *
 * Scrapers return texts and pictures, in flat records that are not documented. The import recognizes these records by
 * the URL of the ad. SearchApi (https://www.searchapi.io/docs/linkedin-ad-library) returns this URL in `link`, and
 * ScrapeCreators returns it in `url`.
 */
export const linkedInAdLibraryFormat: ImportFormat = {
  name: 'linkedin-ad-library',
  title: 'ads of the LinkedIn Ad Library: its API, and tables of it',
  documentation: 'https://www.linkedin.com/ad-library/api/ads',
  layouts: ['json', 'table'],
  keysByField,
  hasColumnPaths: true,
  matches(record) {
    if (isLinkedInAd(record)) return true;
    const url = adUrlKeys.map((key) => record.get(key)).find((value) => value !== undefined);
    if (typeof url === 'string') return /linkedin\.com\/ad-library/.test(url);
    if (!record.hasAny(urlKeys)) return false;
    return record.hasAny(identifyingKeys) || Array.from(record.keys()).some((key) => key.startsWith('detailsad'));
  },
  toAd,
};

/** Returns true if the record, or the `ad` object in the record, contains the URL of a LinkedIn ad. */
export const isLinkedInAd = (record: SourceRecord): boolean =>
  // If the record has no object `ad`, both records are the same. The `Set` removes the duplicate.
  [...new Set([record, unwrapAd(record)])].some((candidate) =>
    urlKeys.some((key) => adUrlPattern.test(String(candidate.get(key)))),
  );

/**
 * Returns the `ad` object of a record, or the record itself if it has no such object. Responses of SearchApi with a
 * single ad contain the ad in this object.
 */
function unwrapAd(record: SourceRecord): SourceRecord {
  const ad = record.get('ad');
  return isObject(ad) ? new SourceRecord(Object.entries(ad), { keyPrefix: 'ad.' }) : record;
}

/** Keys that identify a LinkedIn ad, if the record also has a key for the URL of the ad. */
const identifyingKeys = [
  ...['isrestricted', 'adpayer', 'totalimpressionsfrom', 'firstimpressionat', 'latestimpressionat', 'details'],
  'impressionsdistributionbycountry',
  'addetailurl',
  'totalimpressions',
];

function toAd(source: SourceRecord, parser: ColumnValueParser): JsonObject {
  const { record, ad } = readFlatRecord(unwrapAd(source), { flattenedPaths, fieldRules, rangeRules }, parser);
  if (ad.adArchiveId === undefined && parser.areNotationsDecided)
    throw new Error(
      `${record.getSourceName('adurl')}: not the URL of an ad such as https://www.linkedin.com/ad-library/detail/1521996423`,
    );
  const media = collectFlatMedia(record, mediaKeys, parser);
  const regions = (ad.regions ?? []) as { region: string }[];
  const countries = regions.flatMap(({ region }) => findCountryCode(region) ?? []);
  const displayFormat = displayFormats[String(ad.adType)];
  const pageName = (ad.page as { pageName?: string } | undefined)?.pageName;
  const pageId =
    ad.sourcePageExternalId === undefined
      ? pageName && computePageIdFromName('linkedin', pageName)
      : computePageId('linkedin', String(ad.sourcePageExternalId));
  return {
    ...collectOtherFields(record, { ad, knownKeys, keysWithoutField, unnamedContainers }, parser),
    ...ad,
    id: computeAdId('linkedin', String(ad.adArchiveId)),
    adLibrary: 'linkedin',
    ...(pageId !== undefined && { pageId }),
    ...(displayFormat !== undefined && { displayFormat }),
    ...(countries.length > 0 && { countries }),
    media,
    cards: [],
  };
}
