import { createHash } from 'node:crypto';
import type { MediaAsset } from '../../../api/schemas.ts';
import { findLandingDomain } from '../../../views/landing.ts';
import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { type ColumnValueParser, isMissing, type NumberRange } from '../values/column-value-parser.ts';
import { convertHtmlToText, decodeCharacterReferences } from '../values/markup.ts';
import { parseShare } from '../values/numbers.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { normalizeKey, SourceRecord, toCamelCase } from './source-record.ts';

/** Parses a value of a record. `name` is the key as the source spells it, for messages. */
type FieldParser = (value: unknown, name: string, parser: ColumnValueParser) => unknown;

const parseText: FieldParser = (value, _, parser) => decode(parser.parseText(value));
const parseFirstText: FieldParser = (value, _, parser) => decode(parser.parseTexts(value)?.[0]) || undefined;
const parseNames: FieldParser = (value, name, parser) => parser.parseNames(name, value);
const parseUpperCaseNames: FieldParser = (value, name, parser) =>
  parser.parseNames(name, value)?.map((item) => item.toUpperCase());
const parseUpperCaseText: FieldParser = (value, name, parser) =>
  String(parseText(value, name, parser) ?? '').toUpperCase() || undefined;
const parseDate: FieldParser = (value, name, parser) => parser.parseDate(name, value);
const parseCount: FieldParser = (value, name, parser) => parser.parseNumber(name, value, { isCount: true });
const parsePageName: FieldParser = (value, name, parser) => {
  const pageName = parseText(value, name, parser);
  return pageName === undefined ? undefined : { pageName };
};

/** Returns all versions of a text, if there is more than one. */
const parseVersions: FieldParser = (value, _, parser) => {
  const texts = parser.parseTexts(value);
  return texts && texts.length > 1 ? texts.map(decode) : undefined;
};

function decode<Text extends string | undefined>(text: Text): Text {
  return text === undefined ? text : (decodeCharacterReferences(text) as Text);
}

/**
 * Each field of an ad, with its parser and the keys from which it is made. The first key whose value can be parsed is
 * used.
 */
const fields: readonly (readonly [field: string, parse: FieldParser, ...keys: string[]])[] = [
  ['adArchiveId', parseId, 'adarchiveid', 'adid', 'libraryid', 'id'],
  ['pageId', parseId, 'pageid', 'snapshot.pageid'],
  ['sourcePageExternalId', parseText, 'pageid', 'snapshot.pageid'],
  ['page', parsePageName, 'pagename', 'snapshot.pagename', 'snapshot.currentpagename'],
  // A snapshot contains one version of each text, and the official API lists all versions. The ad shows the first
  // version and stores all versions beside it.
  ['headline', parseFirstText, 'snapshot.title', 'adcreativelinktitles', 'adcreativelinktitle', 'title', 'headline'],
  ['headlines', parseVersions, 'adcreativelinktitles'],
  ['body', parseBody, 'snapshot.body', 'adcreativebodies', 'adcreativebody', 'body'],
  ['bodies', parseVersions, 'adcreativebodies'],
  [
    ...(['linkDescription', parseFirstText, 'snapshot.linkdescription', 'adcreativelinkdescriptions'] as const),
    ...['adcreativelinkdescription', 'linkdescription'],
  ],
  ['linkDescriptions', parseVersions, 'adcreativelinkdescriptions'],
  ['offerLink', parseText, 'snapshot.linkurl', 'linkurl', 'offerlink'],
  ['displayUrl', parseFirstText, 'snapshot.caption', 'adcreativelinkcaptions', 'adcreativelinkcaption', 'caption'],
  ['displayUrls', parseVersions, 'adcreativelinkcaptions'],
  ['ctaType', parseText, 'snapshot.ctatype', 'ctatype'],
  ['displayFormat', parseUpperCaseText, 'snapshot.displayformat', 'displayformat'],
  ['cards', parseCards, 'snapshot.cards', 'cards'],
  ['startedAt', parseDate, 'startdate', 'addeliverystarttime'],
  ['endDate', parseDate, 'enddate', 'addeliverystoptime'],
  ['duplicates', parseCount, 'collationcount'],
  ['countries', parseNames, 'targetedorreachedcountries', 'reachedcountries'],
  ['publisherPlatform', parseUpperCaseNames, 'publisherplatform', 'publisherplatforms'],
  ['languages', parseNames, 'languages'],
  ['bylines', parseText, 'bylines', 'byline', 'snapshot.byline', 'fundingentity'],
  ['currency', parseText, 'currency'],
  ['audienceReach', parseCount, 'eutotalreach'],
  ['demographics', parseShares, 'demographicdistribution'],
  ['regions', parseShares, 'deliverybyregion', 'regiondistribution'],
  ['adSnapshotUrl', parseText, 'adsnapshoturl'],
];

/**
 * The ranges of an ad: the prefix of the fields for their bounds, the keys of the range, and whether the range counts
 * something.
 */
const ranges = [
  ['adSpend', ['spend'], false],
  ['impressions', ['impressions'], true],
  ['audienceSize', ['estimatedaudiencesize', 'potentialreach'], true],
] as const;
/** The endings of column names in tables that write a range as two columns, such as `spend_lower` and `spend_upper`. */
const lowerBoundSuffixes = ['lower', 'lowerbound', 'min'];
const upperBoundSuffixes = ['upper', 'upperbound', 'max'];
const addSuffixes = (keys: readonly string[], suffixes: readonly string[]) =>
  keys.flatMap((key) => suffixes.map((suffix) => `${key}${suffix}`));

const mediaKeys = ['images', 'videos', 'cards', 'pageprofilepictureurl'];

/** Keys of the Meta Ad Library that the API has no field for. Their values are stored under their own names. */
const otherKeys = `
  ad_creation_time ad_id_in_library ad_library_url age_country_gender_reach_breakdown archive_types beneficiary_payers
  br_total_reach categories collation_id contains_digital_created_media contains_sensitive_content entity_type fev_info
  finserv_ad_data gated_type has_user_reported hidden_safety_data hide_data_status impressions_with_index
  is_aaa_eligible menu_items page_is_deleted page_is_profile_page political_countries reach_estimate
  regional_regulation_data report_count state_media_label state_media_run_label target_ages target_gender
  target_locations total_active_time total_reach_by_location url snapshot_url
`;
/** The same for the keys of a snapshot. */
const otherSnapshotKeys = `
  ad_creative_id additional_info branded_content brazil_tax_id country_iso_code creation_time cta_text
  disclaimer_label dynamic_item_flags dynamic_versions ec_certificates edited_snapshots
  effective_authorization_category event extra_images extra_links extra_texts extra_videos has_user_reported
  instagram_actor_name instagram_handle instagram_profile_pic_url instagram_url is_reshared page_categories
  page_entity_type page_is_deleted page_is_profile_page page_like_count page_profile_uri page_welcome_message
  page_cover_photo page_verification root_reshared_post version welcome_message
`;

const splitWords = (text: string) => text.trim().split(/\s+/);

const keysByField: Record<string, readonly string[]> = {
  ...Object.fromEntries(fields.map(([field, , ...keys]) => [field, keys])),
  ...Object.fromEntries(
    ranges.flatMap(([field, keys]) => [
      [`${field}Min`, [...keys, ...addSuffixes(keys, lowerBoundSuffixes)]],
      [`${field}Max`, addSuffixes(keys, upperBoundSuffixes)],
    ]),
  ),
  media: mediaKeys.flatMap((key) => [`snapshot.${key}`, key]),
  isActive: ['isactive', 'adactivestatus', 'activestatus'],
  ...Object.fromEntries(splitWords(otherKeys).map((name) => [toCamelCase(name), [normalizeKey(name)]])),
  ...Object.fromEntries(
    splitWords(otherSnapshotKeys).map((name) => [`snapshot.${toCamelCase(name)}`, [`snapshot.${normalizeKey(name)}`]]),
  ),
  snapshot: ['snapshot'],
};
const knownKeys = new Set(Object.values(keysByField).flat());

const idKeys = ['adarchiveid', 'libraryid', 'adid', 'id'];
/** Keys of the official API that no other format has. */
const officialApiKeys = [
  ...['adsnapshoturl', 'adcreationtime', 'addeliverystarttime', 'addeliverystoptime'],
  ...['adcreativebodies', 'adcreativebody', 'adcreativelinktitles', 'adcreativelinktitle', 'adcreativelinkcaptions'],
  ...['adcreativelinkcaption', 'adcreativelinkdescriptions', 'adcreativelinkdescription'],
];
/**
 * Keys that other formats have, too. They identify a record of the Meta Ad Library only if its id is not a UUID and it
 * has no headline and no body at the top level.
 */
const sharedKeys = [
  ...['demographicdistribution', 'deliverybyregion', 'regiondistribution', 'estimatedaudiencesize', 'eutotalreach'],
  ...['publisherplatforms', 'bylines', 'beneficiarypayers', 'targetlocations', 'targetages', 'targetgender'],
  ...['agecountrygenderreachbreakdown', 'totalreachbylocation', 'brtotalreach', 'impressions', 'snapshot'],
  ...['impressionslower', 'spendlower', 'estimatedaudiencesizelower', 'fundingentity', 'potentialreach'],
];

/**
 * Ads of the Meta Ad Library: scraped pages (`ad_archive_id`, `snapshot`), responses of the official API
 * (`ad_creative_bodies`, `ad_delivery_start_time`), and tables that were made from either. README.md of the library
 * lists how keys become fields. A value for which the API has no field is stored under its own name in camel case.
 */
export const metaAdLibraryFormat: ImportFormat = {
  name: 'meta-ad-library',
  title: 'ads of the Meta Ad Library: its API, scrapes of it, and tables of either',
  description: 'https://developers.facebook.com/docs/graph-api/reference/archived-ad/',
  layouts: ['json', 'table'],
  keysByField,
  hasColumnPaths: true,
  matches(record) {
    if (record.hasAny(['adarchiveid', 'libraryid'])) return true;
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
  const ad: JsonObject = {};
  /** Returns the value of the first key that can be parsed. A value that cannot be parsed is reported. */
  function parseFirst(paths: readonly string[], parse: FieldParser): unknown {
    for (const path of paths) {
      const [source, key] = resolvePath(path);
      const sourceValue = source.get(key);
      if (isMissing(sourceValue)) continue;
      try {
        const value = parse(sourceValue, source.getSourceName(key), parser);
        if (value === undefined) continue;
        for (const usedPath of paths) {
          const [usedSource, usedKey] = resolvePath(usedPath);
          usedSource.markUsed(usedKey);
        }
        return value;
      } catch (error) {
        // An ad without a reliable id cannot be stored.
        if (parse === parseId) throw error;
        parser.addValueError(error);
      }
    }
    return undefined;
  }
  const setField = (field: string, value: unknown) => {
    if (value !== undefined) ad[field] = value;
  };
  for (const [field, parse, ...keys] of fields) setField(field, parseFirst(keys, parse));
  for (const [field, keys, isCount] of ranges) {
    const range = parseFirst(keys, (value, name) => parser.parseRange(name, value, { isCount })) as
      | NumberRange
      | undefined;
    const parseBound = (suffixes: readonly string[]) =>
      parseFirst(addSuffixes(keys, suffixes), (value, name) => parser.parseNumber(name, value, { isCount }));
    setField(`${field}Min`, range ? range.min : parseBound(lowerBoundSuffixes));
    setField(`${field}Max`, range ? range.max : parseBound(upperBoundSuffixes));
  }
  // An end in the future is a planned end. The ad was then last seen at the time of the import.
  const endDate = ad.endDate as string | undefined;
  if (endDate !== undefined)
    ad.lastSeenAt = Date.parse(endDate) > parser.now ? new Date(parser.now).toISOString() : endDate;
  const isActive = parseFirst(keysByField.isActive ?? [], (value, name) => parser.parseBoolean(name, value));
  // In a scrape, the end date of an active ad is only the day of the scrape.
  if (isActive === true) ad.endDate = null;
  if (!('endDate' in ad) && isActive === false) ad.isActive = false;
  const media = collectMedia(snapshot, record, parser);
  if (ad.adArchiveId === undefined && parser.isDecided)
    throw new Error(
      `${record.getSourceName('adarchiveid')}: missing; an ad of the Meta Ad Library needs its archive id`,
    );
  record.markUsed('snapshot');
  const otherSnapshotFields = collectOtherFields(snapshot, 'snapshot.', {}, parser);
  return {
    ...collectOtherFields(record, '', ad, parser),
    ...(Object.keys(otherSnapshotFields).length > 0 && { snapshot: otherSnapshotFields }),
    ...ad,
    id: computeAdId(String(ad.adArchiveId)),
    website: getWebsite(ad),
    media,
    cards: ad.cards ?? [],
  };
}

/**
 * Returns the snapshot of a scrape. Tables contain the snapshot as a text, or as several columns such as
 * `snapshot_title`.
 */
function getSnapshot(record: SourceRecord, parser: ColumnValueParser): SourceRecord {
  const value = record.get('snapshot');
  const parsed = parser.parseStructure(value);
  const name = record.getSourceName('snapshot');
  if (isObject(parsed)) return new SourceRecord(Object.entries(parsed), { path: `${name}.` });
  if (!isMissing(value))
    parser.addValueError(new Error(`${name}: not an object, so the ad has no texts from its snapshot`));
  const snapshotFields: [string, unknown][] = [];
  for (const key of record.keys()) {
    const snapshotKey = key.startsWith('snapshot') ? snapshotKeyByColumn[key.slice('snapshot'.length)] : undefined;
    if (snapshotKey === undefined) continue;
    snapshotFields.push([snapshotKey, snapshotKey === 'body' ? { text: record.get(key) } : record.get(key)]);
    record.markUsed(key);
  }
  return new SourceRecord(snapshotFields, { path: 'snapshot_' });
}

/**
 * The key of a snapshot for each column such as `snapshot_body_text`, without the prefix `snapshot`. The column
 * `snapshot_url` is missing here, because it contains the URL of the snapshot itself.
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
 * Collects the fields that no parser used and that have a value, under their own names in camel case. Keys that are not
 * known are reported.
 * @param pathPrefix the path to the record in `knownKeys`
 * @param ad the fields that are already set, and are not replaced
 */
function collectOtherFields(
  record: SourceRecord,
  pathPrefix: string,
  ad: JsonObject,
  parser: ColumnValueParser,
): JsonObject {
  const otherFields: [string, unknown][] = [];
  for (const { name, value } of record.getUnusedFields()) {
    if (isEmpty(value)) continue;
    const key = normalizeKey(name);
    const field = toCamelCase(name);
    if (!knownKeys.has(`${pathPrefix}${key}`) && !knownKeys.has(key)) parser.unusedKeys.push(`${pathPrefix}${name}`);
    if (!Object.hasOwn(ad, field) && field !== 'id') otherFields.push([field, parser.parseStructure(value) ?? value]);
  }
  return Object.fromEntries(otherFields);
}

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);

function getWebsite(ad: JsonObject): JsonObject {
  const siteDomain = findLandingDomain(ad);
  return siteDomain === undefined ? {} : { siteDomain };
}

/**
 * Computes a UUID from an archive id. The same archive id always gives the same UUID, so a second import replaces the
 * ad.
 */
function computeAdId(archiveId: string): string {
  const hex = createHash('sha256').update(`public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Parses the id of an ad or a page.
 * @throws Error if a program rounded the id, because another ad or page may have the same rounded id
 */
function parseId(value: unknown, name: string, parser: ColumnValueParser): string | undefined {
  // Python writes whole numbers as `12.0` if any cell of the column is empty.
  const id = parser
    .parseText(value)
    ?.trim()
    .replace(/^(\d{1,15})\.0$/, '$1');
  if ((typeof value === 'number' && !Number.isSafeInteger(value)) || /^\d(?:[.,]\d+)?e\+?\d+$/i.test(id ?? ''))
    throw new Error(`${name}: ${id} is a rounded number, so the id is lost; export the ids again as text`);
  return id === '' ? undefined : id;
}

/** Parses a body: a text, an object with a text or with HTML, or a list of versions. */
function parseBody(value: unknown, _name: string, parser: ColumnValueParser): string | undefined {
  const parsed = parser.parseStructure(value);
  const body = isObject(parsed) && ['text', 'markup'].some((key) => key in parsed) ? parsed : value;
  if (!isObject(body)) return decode(parser.parseTexts(body)?.[0]) || undefined;
  const plainText = parser.parseText(body.text);
  if (plainText !== undefined && plainText !== '') return decode(plainText);
  const html = parser.parseText(isObject(body.markup) ? (body.markup.__html ?? body.markup.html) : body.markup);
  return html ? convertHtmlToText(html) : undefined;
}

function parseCards(value: unknown, _name: string, parser: ColumnValueParser): JsonObject[] | undefined {
  const cards = parser.parseStructure(value);
  if (!Array.isArray(cards) || cards.length === 0) return undefined;
  const parseCardValue = (key: string, cardValue: unknown) => {
    if (key === 'body' && isObject(cardValue)) return parseBody(cardValue, key, parser);
    return typeof cardValue === 'string' ? decode(cardValue) : cardValue;
  };
  return cards.map((card) =>
    Object.fromEntries(
      Object.entries(isObject(card) ? card : {}).map(([key, cardValue]) => [key, parseCardValue(key, cardValue)]),
    ),
  );
}

function parseShares(value: unknown, _name: string, parser: ColumnValueParser): unknown {
  const shares = parser.parseStructure(value);
  if (!Array.isArray(shares) || shares.length === 0) return undefined;
  return shares.map((share) => {
    if (!isObject(share) || !('percentage' in share)) return share;
    return { ...share, percentage: parseShare(share.percentage) ?? share.percentage };
  });
}

/** Collects the media of an ad: videos, images, the videos and images of cards, and the profile picture of the page. */
function collectMedia(snapshot: SourceRecord, record: SourceRecord, parser: ColumnValueParser): MediaAsset[] {
  const collectAssets = (key: string, type: string) => {
    const list = parser.parseStructure(snapshot.get(key) ?? record.get(key));
    if (Array.isArray(list)) for (const source of [snapshot, record]) source.markUsed(key);
    return (Array.isArray(list) ? list : []).flatMap((item, nr) => {
      const asset = new SourceRecord(isObject(item) ? Object.entries(item) : [['url', item]]);
      const isVideo = type.endsWith('VID');
      const findUrl = (...keys: string[]) =>
        keys
          .map((urlKey) => decode(parser.parseText(asset.get(urlKey))))
          .find((url) => url !== undefined && url !== '');
      const url = isVideo
        ? findUrl('videohdurl', 'videosdurl', ...(key === 'videos' ? ['url'] : []))
        : findUrl('originalimageurl', 'resizedimageurl', 'imageurl', ...(key === 'images' ? ['url'] : []));
      const preview = isVideo && findUrl('videopreviewimageurl');
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  };
  const profilePicture = decode(
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
