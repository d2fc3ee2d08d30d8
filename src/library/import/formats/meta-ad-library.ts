import type { MediaAsset } from '../../../api/schemas.ts';
import { findLandingDomain } from '../../../views/landing.ts';
import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { type ColumnValueParser, isMissingValue, type NumberRange } from '../values/column-value-parser.ts';
import { convertHtmlToText } from '../values/markup.ts';
import {
  createNumericIdParser,
  decodeText,
  type FieldParser,
  parseAlternativeTexts,
  parseApiConstant,
  parseBoolean,
  parseCount,
  parseDate,
  parseFirstText,
  parseId,
  parseNames,
  parsePageName,
  parseShares,
  parseText,
  parseUpperCaseNames,
  parseUpperCaseText,
} from './field-parsers.ts';
import {
  FieldReader,
  type FieldRule,
  isEmptyValue,
  listKeysByCamelCaseName,
  listKeysByField,
  type RangeRule,
} from './field-reader.ts';
import { collectFlatMedia, listMediaKeys, type MediaKeys } from './flat-media.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computeAdId } from './library-ids.ts';
import {
  parsePayers,
  parseReachBreakdown,
  parseReachByCountry,
  readTransparency,
  setCurrentPayer,
} from './meta-transparency.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

/**
 * Keys in which scrapers write the URL of an ad. They identify a record of the Meta Ad Library only if they really
 * contain such a URL.
 */
const adUrlKeys = ['adlibraryurl', 'adurl', 'url'];
const adUrlPattern = /^https?:\/\/(?:[a-z-]{1,20}\.)?facebook\.com\/ads\/library\/?\?(?:[^#\s]{0,500}&)?id=(\d{1,30})/;
const archiveIdKeys = ['adarchiveid', 'adlibid', 'libraryid'];
const idKeys = [...archiveIdKeys, 'adid', 'id'];
const parseArchiveId = createNumericIdParser('Meta Ad Library');

/**
 * The fields of an ad. Each rule has the field, its parser, and the keys that may contain the field. The first key
 * whose value can be parsed is used.
 */
const fieldRules: readonly FieldRule[] = [
  ['pageId', parseId, 'pageid', 'snapshot.pageid'],
  ['sourcePageExternalId', parseId, 'pageid', 'snapshot.pageid'],
  ['page', parsePageName, 'pagename', 'snapshot.pagename', 'snapshot.currentpagename', 'advertisername'],
  // A scraped snapshot contains one version of each text, and the official API lists all versions. `headline` contains
  // the first version, and `headlines` contains all versions if there are several.
  [
    'headline',
    parseFirstText,
    'snapshot.title',
    'adcreativelinktitles',
    'adcreativelinktitle',
    'title',
    'headline',
    'linktitle',
  ],
  ['headlines', parseAlternativeTexts, 'adcreativelinktitles'],
  [
    ...(['body', parseBody, 'snapshot.body', 'adcreativebodies', 'adcreativebody', 'body'] as const),
    ...['primarytext', 'bodytext', 'adtext'],
  ],
  ['bodies', parseAlternativeTexts, 'adcreativebodies'],
  [
    ...(['linkDescription', parseFirstText, 'snapshot.linkdescription', 'adcreativelinkdescriptions'] as const),
    ...['adcreativelinkdescription', 'linkdescription', 'description'],
  ],
  ['linkDescriptions', parseAlternativeTexts, 'adcreativelinkdescriptions'],
  ['offerLink', parseText, 'snapshot.linkurl', 'linkurl', 'offerlink', 'landingpageurl', 'destinationurl'],
  [
    ...(['displayUrl', parseFirstText, 'snapshot.caption', 'adcreativelinkcaptions'] as const),
    ...['adcreativelinkcaption', 'caption', 'linkcaption'],
  ],
  ['displayUrls', parseAlternativeTexts, 'adcreativelinkcaptions'],
  ['ctaType', parseText, 'snapshot.ctatype', 'ctatype'],
  ['displayFormat', parseUpperCaseText, 'snapshot.displayformat', 'displayformat'],
  ['cards', parseCards, 'snapshot.cards', 'cards'],
  ['startedAt', parseDate, 'startdate', 'addeliverystarttime'],
  ['endDate', parseDate, 'enddate', 'addeliverystoptime'],
  ['duplicates', parseCount, 'collationcount'],
  ['countries', parseNames, 'targetedorreachedcountries', 'reachedcountries'],
  ['publisherPlatform', parseUpperCaseNames, 'publisherplatform', 'publisherplatforms', 'platforms'],
  ['languages', parseNames, 'languages'],
  ['bylines', parseText, 'bylines', 'byline', 'snapshot.byline', 'fundingentity'],
  ['currency', parseText, 'currency'],
  ['audienceReach', parseCount, 'eutotalreach'],
  ['demographics', parseShares, 'demographicdistribution'],
  ['regions', parseShares, 'deliverybyregion', 'regiondistribution'],
  ['adSnapshotUrl', parseText, 'adsnapshoturl'],
  ['beneficiaryPayers', parsePayers, 'beneficiarypayers'],
  ['payer', parseText, 'payer'],
  ['beneficiary', parseText, 'beneficiary'],
  ['ageCountryGenderReachBreakdown', parseReachBreakdown, 'agecountrygenderreachbreakdown'],
];

const rangeRules: readonly RangeRule[] = [
  ['adSpend', ['spend'], false],
  ['impressions', ['impressions'], true],
  ['audienceSize', ['estimatedaudiencesize', 'potentialreach'], true],
];

const mediaKeys = ['images', 'videos', 'cards', 'pageprofilepictureurl'];
/** Keys for the videos and pictures of scraped records without the nested object `snapshot`. */
const flatMediaKeys: MediaKeys = {
  videoKeys: ['videourls', 'videourl', 'videohdurl', 'videosdurl'],
  pictureKeys: ['imageurls', 'imageurl'],
  previewKeys: ['videopreviewimageurls', 'videopreviewimageurl', 'thumbnailurl'],
};
const activeKeys = ['isactive', 'adactivestatus', 'activestatus'];
/** Keys in which scrapers write `Active` or `Inactive`, but also other states. */
const statusKeys = ['status', 'adstatus'];
const ctaTextKeys = ['ctatext', 'calltoaction'];

/**
 * Keys of the Meta Ad Library that have no corresponding field in the API. The import stores them under their own
 * names.
 */
const keyNamesWithoutField = `
  aaa_info ad_creation_time ad_id_in_library ad_library_url archive_types end_date_formatted end_date_string input_url
  br_total_reach categories collation_id contains_digital_created_media contains_sensitive_content entity_type fev_info
  finserv_ad_data gated_type has_user_reported hidden_safety_data hide_data_status impressions_with_index
  is_aaa_eligible is_violating_eu_siep menu_items page_is_deleted page_is_profile_page political_countries reach_estimate
  regional_regulation_data report_count start_date_formatted start_date_string state_media_label state_media_run_label target_ages target_gender
  target_locations total total_active_time total_reach_by_location transparency_by_location uk_total_reach url snapshot_url
  verified_voice_context
`;
/**
 * Keys of the nested object `snapshot` that have no corresponding field in the API. The import stores them under their
 * own names.
 */
const snapshotKeyNamesWithoutField = `
  ad_creative_id additional_info branded_content brazil_tax_id country_iso_code creation_time cta_text
  disclaimer_label dynamic_item_flags dynamic_versions ec_certificates edited_snapshots
  effective_authorization_category event extra_images extra_links extra_texts extra_videos has_user_reported
  instagram_actor_name instagram_handle instagram_profile_pic_url instagram_url is_reshared page_categories
  page_entity_type page_is_deleted page_is_profile_page page_like_count page_profile_uri page_welcome_message
  page_cover_photo page_verification root_reshared_post version welcome_message
`;

const keysByCamelCaseName: Record<string, readonly string[]> = {
  ...listKeysByCamelCaseName(keyNamesWithoutField),
  ...Object.fromEntries(
    Object.entries(listKeysByCamelCaseName(snapshotKeyNamesWithoutField)).map(([field, keys]) => [
      `snapshot.${field}`,
      keys.map((key) => `snapshot.${key}`),
    ]),
  ),
};
const keysByField: Record<string, readonly string[]> = {
  adArchiveId: idKeys,
  ...listKeysByField(fieldRules, rangeRules),
  media: [...mediaKeys.flatMap((key) => [`snapshot.${key}`, key]), ...listMediaKeys(flatMediaKeys)],
  ctaType: ['snapshot.ctatype', 'ctatype', ...ctaTextKeys],
  isActive: [...activeKeys, ...statusKeys],
  ...keysByCamelCaseName,
  snapshot: ['snapshot'],
};
const knownKeys = new Set(Object.values(keysByField).flat());
const keysWithoutField = new Set(Object.values(keysByCamelCaseName).flat());

/** Keys that occur only in the official API of the Meta Ad Library. */
const officialApiKeys = [
  ...['adsnapshoturl', 'adcreationtime', 'addeliverystarttime', 'addeliverystoptime'],
  ...['adcreativebodies', 'adcreativebody', 'adcreativelinktitles', 'adcreativelinktitle', 'adcreativelinkcaptions'],
  ...['adcreativelinkcaption', 'adcreativelinkdescriptions', 'adcreativelinkdescription'],
];
/**
 * Keys that other formats have too. A record with such a key belongs to the Meta Ad Library only if its id is not a
 * UUID and it has no headline or body at the top level.
 */
const sharedKeys = [
  ...['demographicdistribution', 'deliverybyregion', 'regiondistribution', 'estimatedaudiencesize', 'eutotalreach'],
  ...['publisherplatforms', 'bylines', 'beneficiarypayers', 'targetlocations', 'targetages', 'targetgender'],
  ...['agecountrygenderreachbreakdown', 'totalreachbylocation', 'brtotalreach', 'impressions', 'snapshot'],
  ...['impressionslower', 'spendlower', 'estimatedaudiencesizelower', 'fundingentity', 'potentialreach'],
];

/**
 * Ads of the Meta Ad Library: scraped pages (`ad_archive_id`, `snapshot`), responses of the official API
 * (`ad_creative_bodies`, `ad_delivery_start_time`), and tables made from either. Some scrapers return flat records
 * instead of a snapshot, e.g. with `primaryText` and `imageUrls`. These records are not documented, so only keys with
 * one possible meaning are read. The library's README.md lists how keys become fields. Values without a corresponding
 * field in the API are stored under their own names in camel case.
 */
export const metaAdLibraryFormat: ImportFormat = {
  name: 'meta-ad-library',
  title: 'ads of the Meta Ad Library: its API, scrapes of it, and tables of either',
  documentation: 'https://developers.facebook.com/docs/graph-api/reference/archived-ad/',
  layouts: ['json', 'table'],
  keysByField,
  hasColumnPaths: true,
  matches(record) {
    if (record.hasAny(archiveIdKeys)) return true;
    if (adUrlKeys.some((key) => adUrlPattern.test(String(record.get(key))))) return true;
    const hasAdText = record.hasAny(['headline', 'body']);
    if (record.hasAny(officialApiKeys)) return record.hasAny(idKeys) || !hasAdText;
    const id = record.get('id') ?? record.get('adid');
    if (hasAdText || !record.hasAny(['id', 'adid']) || (typeof id === 'string' && isUuid(id))) return false;
    return (
      record.hasAny(sharedKeys) ||
      ['pagename', 'pageid'].some((key) => record.getSourceName(key).startsWith('page_')) ||
      Array.from(record.keys()).some((key) => key.startsWith('snapshot'))
    );
  },
  toAd,
};

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const snapshot = getSnapshot(record, parser);
  const resolvePath = (path: string): [record: SourceRecord, key: string] =>
    path.startsWith('snapshot.') ? [snapshot, path.slice('snapshot.'.length)] : [record, path];
  const reader = new FieldReader(parser, resolvePath);
  const { ad } = reader;
  readArchiveId(record, reader, parser);
  reader.readFields(fieldRules);
  reader.readRanges(rangeRules);
  readTransparency(record, reader, parser);
  setCurrentPayer(ad);
  reader.setField(
    'reachByCountry',
    parseWithoutMarkingUsed(record, 'totalreachbylocation', parseReachByCountry, parser),
  );
  if (ad.reachByCountry !== undefined)
    parser.addFieldSource('reachByCountry', record.getSourceName('totalreachbylocation'));
  readImpressionsText(record, reader, parser);
  // If the end date is in the future, the ad is still running, so it was last seen at the time of the import.
  const endDate = ad.endDate as string | undefined;
  if (endDate !== undefined)
    ad.lastSeenAt = Date.parse(endDate) > parser.importTimeMs ? new Date(parser.importTimeMs).toISOString() : endDate;
  const isActive =
    reader.parseFirstValue(activeKeys, parseBoolean, 'isActive') ??
    reader.parseFirstValue(statusKeys, parseActiveStatus, 'isActive');
  // Store `isActive` only if the record has no end date, because the end date also shows whether the ad is running.
  if (!('endDate' in ad) && isActive !== undefined) ad.isActive = isActive;
  // If the ad is running, ignore its end date, because scrapers write the current day there.
  if (isActive === true) ad.endDate = null;
  // Use the text of the button only if the record has no constant such as `SHOP_NOW`, because the text depends on the
  // language of the ad.
  if (ad.ctaType === undefined)
    reader.setField('ctaType', reader.parseFirstValue(ctaTextKeys, parseApiConstant, 'ctaType'));
  const media = [...collectMedia(snapshot, record, parser), ...collectFlatMedia(record, flatMediaKeys, parser)];
  if (ad.adArchiveId === undefined && parser.areNotationsDecided)
    throw new Error(
      `${record.getSourceName('adarchiveid')}: missing; an ad of the Meta Ad Library needs its archive id`,
    );
  record.markUsed('snapshot');
  const otherSnapshotFields = collectOtherFields(snapshot, 'snapshot.', {}, parser);
  return {
    ...collectOtherFields(record, '', ad, parser),
    ...(Object.keys(otherSnapshotFields).length > 0 && { snapshot: otherSnapshotFields }),
    ...ad,
    id: computeAdId('meta', String(ad.adArchiveId)),
    adLibrary: 'meta',
    website: getWebsite(ad),
    media,
    cards: ad.cards ?? [],
  };
}

/**
 * Reads the id of an ad. If the record has no archive id, the id in the URL of the ad takes precedence over the `id`
 * key, which may be a row number.
 */
function readArchiveId(record: SourceRecord, reader: FieldReader, parser: ColumnValueParser): void {
  const hasArchiveId = archiveIdKeys.some((key) => !isMissingValue(record.get(key)));
  const urlMatches = adUrlKeys.map((key) => adUrlPattern.exec(String(record.get(key))));
  const idInUrl = hasArchiveId ? undefined : urlMatches.find((match) => match)?.[1];
  if (idInUrl === undefined) reader.readFields([['adArchiveId', parseArchiveId, ...idKeys]]);
  else {
    reader.setField('adArchiveId', idInUrl);
    parser.addFieldSource('adArchiveId', record.getSourceName(adUrlKeys[urlMatches.findIndex((match) => match)] ?? ''));
    for (const key of idKeys) if (String(record.get(key)) === idInUrl) record.markUsed(key);
  }
}

/**
 * Parses the value of a key, but does not mark the key as used. The import therefore also stores the original value.
 */
function parseWithoutMarkingUsed(
  record: SourceRecord,
  key: string,
  parse: FieldParser,
  parser: ColumnValueParser,
): unknown {
  const value = record.get(key);
  if (isMissingValue(value)) return undefined;
  try {
    return parse(value, record.getSourceName(key), parser);
  } catch (error) {
    parser.addValueError(error);
    return undefined;
  }
}

/** Reads the impressions of a political ad from a scraped text, e.g. `{"impressions_text": "10K-15K"}`. */
function readImpressionsText(record: SourceRecord, { ad }: FieldReader, parser: ColumnValueParser): void {
  const impressionsText = parser.parseStructure(record.get('impressionswithindex'));
  if (ad.impressionsMin !== undefined || ad.impressionsMax !== undefined || !isObject(impressionsText)) return;
  const range = parseWithoutMarkingUsed(
    new SourceRecord([['impressions_text', impressionsText.impressions_text ?? impressionsText.impressionsText]]),
    'impressionstext',
    (value, keyName) => parser.parseRange(keyName, value, { isCount: true }),
    parser,
  ) as NumberRange | undefined;
  if (range?.min !== undefined) ad.impressionsMin = range.min;
  if (range?.max !== undefined) ad.impressionsMax = range.max;
}

/**
 * Returns the snapshot (the texts and pictures) of a scraped ad. A table has the snapshot as JSON text, or in several
 * columns such as `snapshot_title`.
 */
function getSnapshot(record: SourceRecord, parser: ColumnValueParser): SourceRecord {
  const snapshotValue = record.get('snapshot');
  const snapshot = parser.parseStructure(snapshotValue);
  const snapshotName = record.getSourceName('snapshot');
  if (isObject(snapshot)) return new SourceRecord(Object.entries(snapshot), { keyPrefix: `${snapshotName}.` });
  if (!isMissingValue(snapshotValue))
    parser.addValueError(new Error(`${snapshotName}: not an object, so the ad has no texts from its snapshot`));
  const snapshotFields: [string, unknown][] = [];
  for (const key of record.keys()) {
    const snapshotKey = key.startsWith('snapshot') ? snapshotKeyByColumn[key.slice('snapshot'.length)] : undefined;
    if (snapshotKey === undefined) continue;
    snapshotFields.push([snapshotKey, snapshotKey === 'body' ? { text: record.get(key) } : record.get(key)]);
    record.markUsed(key);
  }
  return new SourceRecord(snapshotFields, { keyPrefix: 'snapshot_' });
}

/**
 * Maps column names without the prefix `snapshot`, e.g. `bodytext` for `snapshot_body_text`, to the keys of a snapshot.
 * `snapshot_url` is missing, because it contains the URL of the snapshot itself.
 */
const snapshotKeyByColumn: Record<string, string> = {
  ...Object.fromEntries(
    ['title', 'caption', 'linkurl', 'linkdescription', 'ctatype', 'displayformat', 'pagename', 'pageid'].map((key) => [
      key,
      key,
    ]),
  ),
  ...{ images: 'images', videos: 'videos', cards: 'cards', body: 'body', bodytext: 'body' },
};

/**
 * Collects the values that no parser has used, under their own keys in camel case, so that the import loses no data.
 * Skips empty values. Adds unknown keys to the import report.
 * @param pathPrefix the path to the record in `knownKeys`, e.g. `snapshot.`
 * @param ad the fields that already have values, which are never replaced
 */
function collectOtherFields(
  record: SourceRecord,
  pathPrefix: string,
  ad: JsonObject,
  parser: ColumnValueParser,
): JsonObject {
  const otherFields: [string, unknown][] = [];
  for (const { name, value } of record.getUnusedFields()) {
    if (isEmptyValue(value) || name === '') continue;
    const key = normalizeKey(name);
    const field = toCamelCase(name);
    const isStored = !Object.hasOwn(ad, field) && field !== 'id';
    if (isStored) otherFields.push([field, parser.parseStructure(value) ?? value]);
    const keys = [`${pathPrefix}${key}`, key];
    if (keys.some((knownKey) => keysWithoutField.has(knownKey)) && isStored)
      parser.addFieldSource(`${pathPrefix}${field}`, `${pathPrefix}${name}`);
    else if (keys.some((knownKey) => knownKeys.has(knownKey)))
      parser.addAlternativeKey(`${pathPrefix}${name}`, isStored);
    else parser.unusedKeys.push(`${pathPrefix}${name}`);
  }
  return Object.fromEntries(otherFields);
}

function getWebsite(ad: JsonObject): JsonObject {
  const siteDomain = findLandingDomain(ad);
  return siteDomain === undefined ? {} : { siteDomain };
}

/**
 * Parses `Active` and `Inactive`. Returns undefined for any other state, which the import then stores under its own
 * name.
 */
function parseActiveStatus(status: unknown): boolean | undefined {
  const statusWord = String(status).trim().toLowerCase();
  return statusWord === 'active' ? true : statusWord === 'inactive' ? false : undefined;
}

/**
 * Parses the body of an ad, which may be a text, an object with text or HTML, or a list of versions. Returns the first
 * version of a list.
 */
function parseBody(sourceValue: unknown, _keyName: string, parser: ColumnValueParser): string | undefined {
  const structure = parser.parseStructure(sourceValue);
  const bodySource =
    isObject(structure) && ['text', 'markup'].some((key) => key in structure) ? structure : sourceValue;
  if (!isObject(bodySource)) return decodeText(parser.parseTexts(bodySource)?.[0]) || undefined;
  const plainText = parser.parseText(bodySource.text);
  if (plainText !== undefined && plainText !== '') return decodeText(plainText);
  const html = parser.parseText(
    isObject(bodySource.markup) ? (bodySource.markup.__html ?? bodySource.markup.html) : bodySource.markup,
  );
  return html ? convertHtmlToText(html) : undefined;
}

function parseCards(sourceValue: unknown, _keyName: string, parser: ColumnValueParser): JsonObject[] | undefined {
  const cards = parser.parseStructure(sourceValue);
  if (!Array.isArray(cards) || cards.length === 0) return undefined;
  const parseCardValue = (key: string, cardValue: unknown) => {
    if (key === 'body' && isObject(cardValue)) return parseBody(cardValue, key, parser);
    return typeof cardValue === 'string' ? decodeText(cardValue) : cardValue;
  };
  return cards.map((card) =>
    Object.fromEntries(
      Object.entries(isObject(card) ? card : {}).map(([key, cardValue]) => [key, parseCardValue(key, cardValue)]),
    ),
  );
}

/** Collects the media of an ad, followed by the media of its cards and the profile picture of the advertiser page. */
function collectMedia(snapshot: SourceRecord, record: SourceRecord, parser: ColumnValueParser): MediaAsset[] {
  const collectAssets = (key: string, type: string) => {
    const mediaList = parser.parseStructure(snapshot.get(key) ?? record.get(key));
    if (Array.isArray(mediaList)) for (const source of [snapshot, record]) source.markUsed(key);
    if (Array.isArray(mediaList) && mediaList.length > 0 && key !== 'cards')
      parser.addFieldSource('media', (snapshot.has(key) ? snapshot : record).getSourceName(key));
    return (Array.isArray(mediaList) ? mediaList : []).flatMap((item, nr) => {
      const assetRecord = new SourceRecord(isObject(item) ? Object.entries(item) : [['url', item]]);
      const isVideo = type.endsWith('VID');
      const findUrl = (...keys: string[]) =>
        keys
          .map((urlKey) => decodeText(parser.parseText(assetRecord.get(urlKey))))
          .find((url) => url !== undefined && url !== '');
      const url = isVideo
        ? findUrl('videohdurl', 'videosdurl', ...(key === 'videos' ? ['url'] : []))
        : findUrl('originalimageurl', 'resizedimageurl', 'imageurl', ...(key === 'images' ? ['url'] : []));
      const preview = isVideo && findUrl('videopreviewimageurl');
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  };
  const profilePicture = decodeText(
    parser.parseText(snapshot.get('pageprofilepictureurl') ?? record.get('pageprofilepictureurl')),
  );
  for (const source of [snapshot, record]) source.markUsed('pageprofilepictureurl');
  return [
    ...collectAssets('videos', 'VID'),
    ...collectAssets('images', 'THUMB'),
    ...collectAssets('cards', 'CARD_VID'),
    ...collectAssets('cards', 'CARD_THUMB'),
    ...(profilePicture ? [{ type: 'PA_PP', url: profilePicture, nr: null }] : []),
  ];
}
