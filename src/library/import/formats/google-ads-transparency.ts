import type { MediaAsset } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { fillMissingFields, findContradictoryResult, isOlderVersion } from '../ad-versions.ts';
import { type ColumnValueParser, isMissingValue, type NumberRange } from '../values/column-value-parser.ts';
import { findCountryCode, namibiaCode } from '../values/countries.ts';
import {
  type FieldParser,
  parseCount,
  parseDate,
  parseFirstText,
  parseId,
  parsePageName,
  parseText,
  parseUpperCaseText,
} from './field-parsers.ts';
import {
  checkRange,
  FieldReader,
  type FieldRule,
  isEmptyValue,
  listKeysByCamelCaseName,
  listKeysByField,
  type RangeRule,
} from './field-reader.ts';
import { collectFlatMedia, listMediaKeys, type MediaKeys } from './flat-media.ts';
import { collectOtherFields, readFlatRecord } from './flat-record.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computeAdId, computePageId } from './library-ids.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

const creativeUrlPattern = /^https?:\/\/adstransparency\.google\.com\/.{0,100}\/creative\/CR\d/;

/**
 * Parses the id of an ad, such as `CR123`, or extracts the id from the URL of the ad. Returns undefined for any other
 * text.
 */
const parseCreativeId: FieldParser = (sourceValue, keyName, parser) => {
  const idInUrl = /\/creative\/(CR\d{1,30})/.exec(String(sourceValue))?.[1];
  const id = idInUrl ?? String(parseId(sourceValue, keyName, parser));
  return /^(?:CR)?\d{1,30}$/.test(id) ? id : undefined;
};
/** Parses the id of an advertiser, such as `AR123`, or extracts the id from the URL of an ad. */
const parseAdvertiserId: FieldParser = (sourceValue, keyName, parser) =>
  /\/advertiser\/(AR\d{1,30})/.exec(String(sourceValue))?.[1] ??
  (isUrl(sourceValue) ? undefined : parseId(sourceValue, keyName, parser));
/** Parses the name of an advertiser. Ignores a URL, because some scrapers write the URL of a page into the same key. */
const parseAdvertiserName: FieldParser = (sourceValue, keyName, parser) =>
  isUrl(sourceValue) ? undefined : parsePageName(sourceValue, keyName, parser);
const isUrl = (value: unknown): boolean => /^\s*https?:\/\//i.test(String(value));
/**
 * Parses the URL of an ad in the Transparency Center. Ignores other URLs, because scrapers use the same keys for them.
 */
const parseTransparencyCenterUrl: FieldParser = (sourceValue, keyName, parser) =>
  /^https?:\/\/adstransparency\.google\.com\//.test(String(sourceValue))
    ? parseText(sourceValue, keyName, parser)
    : undefined;

const parseImpressions: FieldParser = (value, keyName, parser) => parser.parseRange(keyName, value, { isCount: true });

const urlKeys = ['creativepageurl', 'detailslink', 'adurl', 'creativeurl', 'transparencyurl'];
const sharedUrlKeys = ['url', 'sourceurl', 'detailurl', 'detailsurl'];
const fieldRules: readonly FieldRule[] = [
  ['adArchiveId', parseCreativeId, 'creativeid', 'adcreativeid', 'adid', 'id', ...urlKeys, ...sharedUrlKeys],
  ['sourcePageExternalId', parseAdvertiserId, 'advertiserid', ...urlKeys, ...sharedUrlKeys],
  ['page', parseAdvertiserName, 'advertiserdisclosedname', 'advertisername', 'advertiser', 'advertiserlegalname'],
  ['adSnapshotUrl', parseTransparencyCenterUrl, ...urlKeys, ...sharedUrlKeys],
  ['headline', parseFirstText, 'headline', 'title', 'headlines'],
  ['body', parseFirstText, 'body', 'description', 'descriptions', 'adtext'],
  ['offerLink', parseText, 'finalurl', 'destinationurl', 'landingpage', 'landingpageurl'],
  ['displayUrl', parseText, 'visibleurl', 'displayurl', 'targetdomain', 'domain'],
  ['displayFormat', parseUpperCaseText, 'adformattype', 'adformat', 'format', 'adtype'],
  ['startedAt', parseDate, 'firstshown', 'firstshownat', 'firstshowndatetime', 'firstshowndate', 'daterangestart'],
  ['lastSeenAt', parseDate, 'lastshown', 'lastshownat', 'lastshowndatetime', 'lastshowndate', 'daterangeend'],
  ['totalDaysShown', parseCount, 'totaldaysshown', 'numofdays'],
];
const rangeRules: readonly RangeRule[] = [['impressions', ['timesshown', 'impressions', 'overallimpressions'], true]];

/** Google states each amount in US dollars and in these currencies. Only the amounts in US dollars become fields. */
const otherCurrencies = 'eur gbp inr bgn hrk czk dkk huf pln ron sek nzd ils aud twd brl ars zar clp mxn cop'.split(
  ' ',
);

/**
 * Documented keys that have no corresponding field in the API. The import stores them under their own names, e.g.
 * `is_funded_by_google_ad_grants` as `isFundedByGoogleAdGrants`.
 */
const keyNamesWithoutField = `
  advertiser_legal_name advertiser_location advertiser_verification_status audience_selection_approach_info disapproval
  height is_funded_by_google_ad_grants serpapi_details_link topic width
  advertiser_regions public_ids_list elections ad_campaigns_list age_targeting gender_targeting geo_targeting_included geo_targeting_excluded
  spend_usd spend_range_min_usd spend_range_max_usd first_served_timestamp last_served_timestamp
  variations variants creative_regions image_width image_height
  ${otherCurrencies.map((currency) => `spend_${currency} spend_range_min_${currency} spend_range_max_${currency}`).join(' ')}
`;
/**
 * Documented keys of a region that have no corresponding field in the API. The import stores them with the results of
 * the region, under the key in camel case.
 */
const regionKeysWithoutField = ['timesshownstartdate', 'timesshownenddate', 'timesshownavailabilitydate'];
const regionKeys = ['regioncode', 'surfaceservingstats', ...regionKeysWithoutField];
const mediaKeys: MediaKeys = {
  pictureKeys: ['imagelink', 'image', 'imageurl', 'imageurls', 'images'],
  videoKeys: ['videolink', 'video', 'videourl', 'videourls', 'videos'],
  previewKeys: ['previewurl', 'videopreview', 'previewimageurl', 'thumbnail', 'thumbnailurl'],
};

const keysByCamelCaseName = listKeysByCamelCaseName(keyNamesWithoutField);
const keysByField: Record<string, readonly string[]> = {
  ...listKeysByField(fieldRules, rangeRules),
  media: [...listMediaKeys(mediaKeys), 'imagewidth', 'imageheight'],
  countries: ['regions', 'region'],
  adsAmount: ['totalcreatives'],
  regionStats: ['regionstats', ...regionKeys],
  ...keysByCamelCaseName,
};
const knownKeys = new Set(Object.values(keysByField).flat());
const keysWithoutField = new Set(Object.values(keysByCamelCaseName).flat());
const flattenedPaths = new Set(['advertiser', 'image', 'video']);

const googleKeys = [
  ...[
    'creativepageurl',
    'advertiserdisclosedname',
    'advertiserlegalname',
    'adformattype',
    'regionstats',
    'detailslink',
  ],
  ...[
    'targetdomain',
    'totaldaysshown',
    'firstshown',
    'lastshown',
    'firstshownat',
    'firstshowndatetime',
    'serpapidetailslink',
  ],
];

/**
 * Ads of the Google Ads Transparency Center, from any of these sources:
 * - The tables `creative_stats` and `removed_creative_stats` of the public BigQuery data set
 * `google_ads_transparency_center`, as JSON Lines or CSV. The table may also have one row for each region.
 * - The tables `creative_stats` and `advertiser_stats` of `google_political_ads`. The latter has advertisers and their
 * spend.
 * - Responses of SerpApi (https://serpapi.com/google-ads-transparency-center-api) and SearchApi
 * (https://www.searchapi.io/docs/google-ads-transparency-center-api).
 * - Flat records of other scrapers, which are not documented. Their keys are read if Google's sources use them as well,
 * or if only one meaning is possible, such as `firstShownAt` and `imageUrls`.
 *
 * Google documents no format for its own web page. Only scrapers that list the variations of an ad have its texts.
 */
export const googleAdsTransparencyFormat: ImportFormat = {
  name: 'google-ads-transparency',
  title: 'ads of the Google Ads Transparency Center: its BigQuery tables, and answers of SerpApi and SearchApi',
  documentation: 'https://cloud.google.com/bigquery/public-data (data set google_ads_transparency_center)',
  layouts: ['json', 'table'],
  keysByField,
  hasColumnPaths: true,
  matches(record) {
    if (record.has('estimatedaudience')) return false;
    if (isAdvertiserRow(record)) return true;
    const hasGoogleKey = record.hasAny(googleKeys);
    if (record.hasAny(['creativeid', 'adcreativeid']))
      return hasGoogleKey || /^CR\d/.test(String(record.get('creativeid') ?? record.get('adcreativeid')));
    if ([...urlKeys, ...sharedUrlKeys].some((key) => creativeUrlPattern.test(String(record.get(key))))) return true;
    if (record.has('creativepageurl')) return record.has('regionstats') || record.has('regioncode');
    if (record.has('daterangestart') && record.has('adid')) return record.has('advertiserid');
    const id = record.get('id');
    return record.has('id') && hasGoogleKey && (id === undefined || /^CR\d/.test(String(id)));
  },
  getIgnoreReason: (record) =>
    isAdvertiserRow(record) && record.hasAny(['weekstartdate', 'countrysubdivisionprimary'])
      ? 'they hold the spend of an advertiser in one week or region; the table advertiser_stats holds its whole spend'
      : undefined,
  toAd,
  toPage,
  combinePartialRecords(earlierAd, laterAd, reportProblem) {
    // Only results by region can be combined. For other rows, report results that contradict each other, because only
    // the results of the newer row are stored. A row is newer if its ad was last seen later. If these dates are
    // unknown, the later row in the source counts as newer.
    const contradiction = laterAd.regionStats ? undefined : findContradictoryResult(earlierAd, laterAd);
    if (contradiction) reportProblem(contradiction);
    const [newerAd, olderAd] = isOlderVersion(laterAd, earlierAd) ? [earlierAd, laterAd] : [laterAd, earlierAd];
    return applyRegionStats({
      ...fillMissingFields(newerAd, olderAd),
      ...combineRegionStats(earlierAd.regionStats, laterAd.regionStats),
    });
  },
};

/** Columns that contain the spend of a political advertiser. The first column with a value is used. */
const spendKeys = ['spendusd', 'spendeur', 'spendgbp', 'spendinr'];

/**
 * Returns true for a row about a political advertiser, i.e. a row of the tables `advertiser_stats`,
 * `advertiser_weekly_spend` and `advertiser_geo_spend`.
 */
const isAdvertiserRow = (record: SourceRecord): boolean =>
  record.has('advertiserid') &&
  record.has('advertisername') &&
  record.hasAny(['totalcreatives', ...spendKeys]) &&
  !record.hasAny(['adid', 'creativeid', 'adcreativeid', 'id', ...urlKeys]);

/** Converts a row of the `advertiser_stats` table to an advertiser page. Returns undefined for a row about an ad. */
function toPage(record: SourceRecord, parser: ColumnValueParser): JsonObject | undefined {
  if (!isAdvertiserRow(record)) return undefined;
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields([
    ['sourcePageExternalId', parseId, 'advertiserid'],
    ['pageName', parseText, 'advertisername'],
    ['adsAmount', parseCount, 'totalcreatives'],
    ['regions', (value, name) => parser.parseNames(name, value), 'regions'],
  ]);
  const { regions = [], ...page } = reader.ad as JsonObject & { regions?: string[] };
  const spendKey = spendKeys.find((key) => !isMissingValue(record.get(key))) ?? '';
  const spend = reader.parseFirstValue([spendKey], (value, name) => parser.parseNumber(name, value), 'adSpendMin');
  const countries = findCountryCodes(regions);
  if (page.sourcePageExternalId === undefined && parser.areNotationsDecided) throw new Error('advertiser_id: missing');
  return {
    ...collectOtherFields(record, { ad: page, knownKeys, keysWithoutField, unnamedContainers: new Set() }, parser),
    ...page,
    pageId: computePageId('google', String(page.sourcePageExternalId)),
    adLibrary: 'google',
    ...(countries.length > 0 && { countries }),
    ...(countries.length < regions.length && { regions }),
    ...(spend !== undefined && {
      ...{ adSpendMin: spend, adSpendMax: spend, currency: spendKey.slice('spend'.length).toUpperCase() },
    }),
  };
}

function toAd(source: SourceRecord, parser: ColumnValueParser): JsonObject {
  const { record, reader, ad } = readFlatRecord(source, { flattenedPaths, fieldRules, rangeRules }, parser);
  if (ad.adArchiveId === undefined && parser.areNotationsDecided)
    throw new Error('creative_id: missing; an ad of the Google Ads Transparency Center needs its id, such as CR123');
  const regionStats = readRegionStats(record, parser);
  const regions = reader.parseFirstValue(
    ['regions', 'region'],
    (value, name) => parser.parseNames(name, value),
    'countries',
  );
  if (Array.isArray(regions)) {
    const countries = findCountryCodes(regions.map(String));
    if (countries.length > 0) ad.countries = countries;
    // A region such as `EU` is not a country, so also store the complete list of regions.
    if (countries.length < regions.length) ad.regions = regions;
  }
  readSpend(record, reader, parser);
  const domain = parser.parseText(record.get('targetdomain') ?? record.get('domain'));
  const variations = readVariations(record, parser);
  const media = collectFlatMedia(
    record,
    isScriptUrl(record.get('previewurl')) ? mediaKeysOfScripts : mediaKeys,
    parser,
  );
  const completeAd: JsonObject = {
    ...collectOtherFields(record, { ad, knownKeys, keysWithoutField, unnamedContainers: new Set() }, parser),
    ...variations.fields,
    ...ad,
    id: computeAdId('google', String(ad.adArchiveId)),
    adLibrary: 'google',
    ...(ad.sourcePageExternalId !== undefined && { pageId: computePageId('google', String(ad.sourcePageExternalId)) }),
    website: domain === undefined ? {} : { siteDomain: domain },
    media: media.length > 0 ? media : variations.media,
    cards: [],
    ...(regionStats.length > 0 && { regionStats }),
  };
  return applyRegionStats(completeAd);
}

/** Returns true for the URL of a script that shows the preview of an ad. Such a URL does not lead to a picture. */
const isScriptUrl = (url: unknown): boolean => /\/content\.js(?:\?|$)/.test(String(url));
const mediaKeysOfScripts: MediaKeys = { ...mediaKeys, previewKeys: [] };

const variationKeys = ['variations', 'variants'];
const variationFieldRules: readonly FieldRule[] = [
  ['headline', parseFirstText, 'headline', 'title', 'headlines'],
  ['body', parseFirstText, 'description', 'body', 'descriptions', 'text', 'alltext'],
  ['offerLink', parseText, 'destinationurl', 'finalurl', 'landingpageurl', 'url', 'link'],
];

/**
 * Reads the texts, links and media of an ad from the list of its variations, which some scrapers return. The list
 * itself is also stored, under its own name.
 */
function readVariations(record: SourceRecord, parser: ColumnValueParser): { fields: JsonObject; media: MediaAsset[] } {
  const variations = variationKeys.flatMap((key) => {
    const variationList = parser.parseStructure(record.get(key));
    if (!Array.isArray(variationList) && !isMissingValue(record.get(key)))
      parser.addValueError(
        new Error(`${record.getSourceName(key)}: ${quoteValue(record.get(key))} is not a list of variations`),
      );
    return (Array.isArray(variationList) ? variationList : []).filter(isObject).map((item) => {
      const variation = new SourceRecord(Object.entries(item), { keyPrefix: `${record.getSourceName(key)}.` });
      const reader = new FieldReader(parser, (path) => [variation, path]);
      reader.readFields(variationFieldRules);
      return { ...reader.ad, media: collectFlatMedia(variation, mediaKeys, parser) };
    });
  });
  const listTexts = (field: 'headline' | 'body' | 'offerLink') => [
    ...new Set(variations.flatMap((variation: JsonObject) => (variation[field] as string | undefined) ?? [])),
  ];
  const [headlines, bodies, links] = [listTexts('headline'), listTexts('body'), listTexts('offerLink')];
  const [offerLink, displayUrl] = [links.find(isUrl), links.find((link) => !isUrl(link))];
  const media = new Map(variations.flatMap((variation) => variation.media).map((asset) => [asset.url, asset]));
  return {
    fields: {
      ...(headlines.length > 0 && { headline: headlines[0] }),
      ...(headlines.length > 1 && { headlines }),
      ...(bodies.length > 0 && { body: bodies[0] }),
      ...(bodies.length > 1 && { bodies }),
      ...(offerLink !== undefined && { offerLink }),
      ...(displayUrl !== undefined && { displayUrl }),
    },
    media: [...media.values()].map((asset, nr) => ({ ...asset, nr })),
  };
}

/** Reads the spend of a political ad in US dollars, because this is the only currency that all rows have. */
function readSpend(record: SourceRecord, reader: FieldReader, parser: ColumnValueParser): void {
  const [minSpendKey, maxSpendKey] = ['spendrangeminusd', 'spendrangemaxusd'];
  if (!record.has(minSpendKey)) return;
  const parseBound = (key: string, field: string) =>
    reader.parseFirstValue([key], (value, keyName) => parser.parseNumber(keyName, value), field) as number | undefined;
  const [min, max] = [parseBound(minSpendKey, 'adSpendMin'), parseBound(maxSpendKey, 'adSpendMax')];
  try {
    checkRange('spend_range_usd', { min, max });
  } catch (error) {
    parser.addValueError(error);
    return;
  }
  reader.setField('adSpendMin', min);
  reader.setField('adSpendMax', max);
  reader.setField('currency', 'USD');
}

/** The results of an ad in one region, e.g. when and how often Google showed the ad there. */
interface RegionStats {
  regionCode: string;
  firstShown?: string;
  lastShown?: string;
  timesShownMin?: number;
  timesShownMax?: number;
  surfaceServingStats?: unknown;
  /** All other values of the region. Their names are the keys in camel case. */
  [name: string]: unknown;
}

/**
 * Reads the results of an ad by region from the `region_stats` list. In a table with a separate row for each region,
 * reads the region of the row.
 */
function readRegionStats(record: SourceRecord, parser: ColumnValueParser): RegionStats[] {
  const regionStatsCell = record.get('regionstats');
  const regionList = parser.parseStructure(regionStatsCell);
  const isRegionRow = record.has('regioncode');
  record.markUsed('regionstats');
  if (
    typeof regionStatsCell === 'string' &&
    regionStatsCell.trim() !== '' &&
    !Array.isArray(regionList) &&
    !isObject(regionList)
  )
    parser.addValueError(new Error(`region_stats: ${quoteValue(regionStatsCell)} is not a list of regions`));
  const entries = Array.isArray(regionList)
    ? regionList
    : isObject(regionList)
      ? [regionList]
      : isRegionRow
        ? [record.toObject()]
        : [];
  if (entries.length > 0)
    parser.addFieldSource('regionStats', record.getSourceName(isRegionRow ? 'regioncode' : 'regionstats'));
  if (isRegionRow) for (const key of regionKeys) record.markUsed(key);
  return entries.flatMap((entry): RegionStats[] => {
    if (!isObject(entry)) return [];
    const region = new SourceRecord(Object.entries(entry), { keyPrefix: isRegionRow ? '' : 'region_stats.' });
    const regionCell = region.get('regioncode') ?? region.get('region');
    const isNamibia = typeof regionCell === 'string' && regionCell.trim() === namibiaCode;
    const regionCode = isNamibia ? namibiaCode : parser.parseText(regionCell);
    if (regionCode === undefined) {
      parser.addValueError(new Error(`region_stats: ${quoteValue(entry)} has no region_code`));
      return [];
    }
    region.markUsed(region.has('regioncode') ? 'regioncode' : 'region');
    const readRegionField = (key: string, parse: FieldParser) => {
      if (isMissingValue(region.get(key))) return undefined;
      try {
        const parsedValue = parse(region.get(key), region.getSourceName(key), parser);
        region.markUsed(key);
        return parsedValue;
      } catch (error) {
        parser.addValueError(error);
        return undefined;
      }
    };
    const range = readRegionField('impressions', parseImpressions) as NumberRange | undefined;
    const surfaceServingStats = region.get('surfaceservingstats') ?? undefined;
    region.markUsed('surfaceservingstats');
    const knownValues = {
      firstShown: readRegionField('firstshown', parseDate),
      lastShown: readRegionField('lastshown', parseDate),
      timesShownMin: readRegionField('timesshownlowerbound', parseCount) ?? range?.min,
      timesShownMax: readRegionField('timesshownupperbound', parseCount) ?? range?.max,
      surfaceServingStats,
    };
    const definedValues = Object.entries(knownValues).filter(([, regionValue]) => regionValue !== undefined);
    const otherFields = region.getUnusedFields().filter(({ name, value }) => {
      const key = normalizeKey(name);
      // Skip the other columns of a table with one row per region, because they describe the ad and not the region.
      if (isEmptyValue(value) || (isRegionRow && !regionKeysWithoutField.includes(key))) return false;
      if (!regionKeysWithoutField.includes(key)) parser.unusedKeys.push(`region_stats.${name}`);
      return true;
    });
    return [
      {
        ...Object.fromEntries(otherFields.map(({ name, value }) => [toCamelCase(name), value])),
        regionCode,
        ...Object.fromEntries(definedValues),
      },
    ];
  });
}

function combineRegionStats(earlierStats: unknown, laterStats: unknown): { regionStats?: RegionStats[] } {
  const lists = [earlierStats, laterStats].flatMap((list) => (Array.isArray(list) ? (list as RegionStats[]) : []));
  const statsByRegion = new Map(lists.map((stats) => [stats.regionCode, stats]));
  return statsByRegion.size > 0 ? { regionStats: [...statsByRegion.values()] } : {};
}

/**
 * Returns the country codes of regions. A region may be a country code, a country name, or another area such as `EU`,
 * which is omitted.
 */
const findCountryCodes = (regions: readonly string[]): string[] =>
  regions.flatMap((region) => {
    const countryCode = findCountryCode(region);
    return countryCode !== undefined && isCountryCode(countryCode) ? [countryCode] : [];
  });

const isCountryCode = (regionCode: string): boolean => /^[A-Z]{2}$/.test(regionCode) && regionCode !== 'EU';

/** The countries of the European Economic Area. The results of the region `EEA` are the totals of these countries. */
const eeaCountries = new Set(
  'AT BE BG HR CY CZ DE DK EE ES FI FR GR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK'.split(' '),
);

/** Computes the countries, first and last dates, impressions and platforms of an ad from its results by region. */
function applyRegionStats(ad: JsonObject): JsonObject {
  const regions = (ad.regionStats ?? []) as RegionStats[];
  if (regions.length === 0) return ad;
  const countries = regions.map(({ regionCode }) => regionCode).filter(isCountryCode);
  const firstDays = regions.flatMap(({ firstShown }) => firstShown ?? []).sort();
  const lastDays = regions.flatMap(({ lastShown }) => lastShown ?? []).sort();
  // The results of the region `EEA` are the totals of its countries. If the ad has results for `EEA`, do not add the
  // results of the EEA countries, because each impression would count twice.
  const hasEea = regions.some(({ regionCode }) => regionCode === 'EEA');
  const countedRegions = regions.filter(({ regionCode }) => !hasEea || !eeaCountries.has(regionCode));
  const regionsWithImpressions = countedRegions.filter(
    ({ timesShownMin, timesShownMax }) => (timesShownMin ?? timesShownMax) !== undefined,
  );
  // Google counts impressions only in some regions. If the upper bound of one region is unknown, the upper bound of the
  // sum is unknown too.
  const hasOpenRange = countedRegions.some(({ timesShownMax }) => timesShownMax === undefined);
  const sumCounts = (counts: (number | undefined)[]) =>
    counts.reduce<number>((total, value) => total + (value ?? 0), 0);
  const surfaces = [...new Set(regions.flatMap(({ surfaceServingStats }) => listSurfaces(surfaceServingStats)))];
  const { impressionsMax: _, ...otherFields } = ad;
  return {
    ...(regionsWithImpressions.length > 0 ? otherFields : ad),
    ...(countries.length > 0 && { countries: [...new Set(countries)] }),
    ...(firstDays.length > 0 && { startedAt: firstDays[0] }),
    ...(lastDays.length > 0 && { lastSeenAt: lastDays.at(-1) }),
    ...(regionsWithImpressions.length > 0 && {
      impressionsMin: sumCounts(regionsWithImpressions.map(({ timesShownMin }) => timesShownMin)),
    }),
    ...(regionsWithImpressions.length > 0 &&
      !hasOpenRange && { impressionsMax: sumCounts(regionsWithImpressions.map(({ timesShownMax }) => timesShownMax)) }),
    ...(surfaces.length > 0 && { publisherPlatform: surfaces }),
  };
}

/**
 * Returns the surfaces on which Google showed an ad, e.g. `YOUTUBE`, from the nested lists of `surface_serving_stats`.
 */
function listSurfaces(servingStats: unknown): string[] {
  if (Array.isArray(servingStats)) return servingStats.flatMap(listSurfaces);
  if (!isObject(servingStats)) return [];
  const { surface } = servingStats;
  if (typeof surface === 'string') return [surface.toUpperCase()];
  return listSurfaces(servingStats.surface_serving_stats ?? servingStats.surfaceServingStats);
}
