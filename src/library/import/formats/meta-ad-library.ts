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

/**
 * Ads of the Meta Ad Library: scraped pages (`ad_archive_id`, `snapshot`), answers of the official API
 * (`ad_creative_bodies`, `ad_delivery_start_time`), and tables that were made of either. README.md lists the mapping. A
 * value for which the API has no field is stored under its own name in camel case.
 */

type Read = (value: unknown, name: string, values: ColumnValueParser) => unknown;

const text: Read = (value, _, values) => decoded(values.text(value));
const firstText: Read = (value, _, values) => decoded(values.texts(value)?.[0]) || undefined;
const capitals: Read = (value, name, values) => values.names(name, value)?.map((one) => one.toUpperCase());
const names: Read = (value, name, values) => values.names(name, value);
const date: Read = (value, name, values) => values.parseDate(name, value);
const count: Read = (value, name, values) => values.parseNumber(name, value, { isCount: true });

/** All versions of a text, where there are several. */
const versions: Read = (value, _, values) => {
  const all = values.texts(value);
  return all && all.length > 1 ? all.map(decoded) : undefined;
};

function decoded<Text extends string | undefined>(value: Text): Text {
  return value === undefined ? value : (decodeCharacterReferences(value) as Text);
}

/** A field, how it is read, and the keys that it is made from: the first that can be read counts. */
const fields: readonly (readonly [field: string, read: Read, ...from: string[]])[] = [
  ['adArchiveId', idText, 'adarchiveid', 'adid', 'libraryid', 'id'],
  ['pageId', idText, 'pageid', 'snapshot.pageid'],
  ['sourcePageExternalId', text, 'pageid', 'snapshot.pageid'],
  ['page', (...given) => withName(text(...given)), 'pagename', 'snapshot.pagename', 'snapshot.currentpagename'],
  // A snapshot shows one version of the copy, the archive lists all of them; several are stored beside the first.
  ['headline', firstText, 'snapshot.title', 'adcreativelinktitles', 'adcreativelinktitle', 'title', 'headline'],
  ['headlines', versions, 'adcreativelinktitles'],
  ['body', bodyText, 'snapshot.body', 'adcreativebodies', 'adcreativebody', 'body'],
  ['bodies', versions, 'adcreativebodies'],
  [
    ...(['linkDescription', firstText, 'snapshot.linkdescription', 'adcreativelinkdescriptions'] as const),
    ...['adcreativelinkdescription', 'linkdescription'],
  ],
  ['linkDescriptions', versions, 'adcreativelinkdescriptions'],
  ['offerLink', text, 'snapshot.linkurl', 'linkurl', 'offerlink'],
  ['displayUrl', firstText, 'snapshot.caption', 'adcreativelinkcaptions', 'adcreativelinkcaption', 'caption'],
  ['displayUrls', versions, 'adcreativelinkcaptions'],
  ['ctaType', text, 'snapshot.ctatype', 'ctatype'],
  [
    'displayFormat',
    (...given) => String(text(...given) ?? '').toUpperCase() || undefined,
    'snapshot.displayformat',
    'displayformat',
  ],
  ['cards', cardsOf, 'snapshot.cards', 'cards'],
  ['startedAt', date, 'startdate', 'addeliverystarttime'],
  ['endDate', date, 'enddate', 'addeliverystoptime'],
  ['duplicates', count, 'collationcount'],
  ['countries', names, 'targetedorreachedcountries', 'reachedcountries'],
  ['publisherPlatform', capitals, 'publisherplatform', 'publisherplatforms'],
  ['languages', names, 'languages'],
  ['bylines', text, 'bylines', 'byline', 'snapshot.byline', 'fundingentity'],
  ['currency', text, 'currency'],
  ['audienceReach', count, 'eutotalreach'],
  ['demographics', sharesOf, 'demographicdistribution'],
  ['regions', sharesOf, 'deliverybyregion', 'regiondistribution'],
  ['adSnapshotUrl', text, 'adsnapshoturl'],
];

/** A pair of fields for the bounds of a range, the keys of the range, and whether it counts something. */
const ranges = [
  ['adSpend', ['spend'], false],
  ['impressions', ['impressions'], true],
  ['audienceSize', ['estimatedaudiencesize', 'potentialreach'], true],
] as const;
/** Tables write a range as two columns, such as `spend_lower` and `spend_upper`. */
const lowerEnds = ['lower', 'lowerbound', 'min'];
const upperEnds = ['upper', 'upperbound', 'max'];
const endsOf = (keys: readonly string[], ends: readonly string[]) =>
  keys.flatMap((key) => ends.map((end) => `${key}${end}`));

const media = ['images', 'videos', 'cards', 'pageprofilepictureurl'];

/** Keys that the Meta Ad Library has and the API has no field for. They are stored under their own names. */
const others = `
  ad_creation_time ad_id_in_library ad_library_url age_country_gender_reach_breakdown archive_types beneficiary_payers
  br_total_reach categories collation_id contains_digital_created_media contains_sensitive_content entity_type fev_info
  finserv_ad_data gated_type has_user_reported hidden_safety_data hide_data_status impressions_with_index
  is_aaa_eligible menu_items page_is_deleted page_is_profile_page political_countries reach_estimate
  regional_regulation_data report_count state_media_label state_media_run_label target_ages target_gender
  target_locations total_active_time total_reach_by_location url snapshot_url
`;
const othersOfSnapshot = `
  ad_creative_id additional_info branded_content brazil_tax_id country_iso_code creation_time cta_text
  disclaimer_label dynamic_item_flags dynamic_versions ec_certificates edited_snapshots
  effective_authorization_category event extra_images extra_links extra_texts extra_videos has_user_reported
  instagram_actor_name instagram_handle instagram_profile_pic_url instagram_url is_reshared page_categories
  page_entity_type page_is_deleted page_is_profile_page page_like_count page_profile_uri page_welcome_message
  page_cover_photo page_verification root_reshared_post version welcome_message
`;

const columns: Record<string, readonly string[]> = {
  ...Object.fromEntries(fields.map(([field, , ...from]) => [field, from])),
  ...Object.fromEntries(
    ranges.flatMap(([field, keys]) => [
      [`${field}Min`, [...keys, ...endsOf(keys, lowerEnds)]],
      [`${field}Max`, endsOf(keys, upperEnds)],
    ]),
  ),
  media: media.flatMap((key) => [`snapshot.${key}`, key]),
  isActive: ['isactive', 'adactivestatus', 'activestatus'],
  ...Object.fromEntries(
    others
      .trim()
      .split(/\s+/)
      .map((name) => [toCamelCase(name), [normalizeKey(name)]]),
  ),
  ...Object.fromEntries(
    othersOfSnapshot
      .trim()
      .split(/\s+/)
      .map((name) => [`snapshot.${toCamelCase(name)}`, [`snapshot.${normalizeKey(name)}`]]),
  ),
  snapshot: ['snapshot'],
};
const knownKeys = new Set(Object.values(columns).flat());

const ids = ['adarchiveid', 'libraryid', 'adid', 'id'];
/** Keys of the official API that no other format has. */
const official = [
  ...['adsnapshoturl', 'adcreationtime', 'addeliverystarttime', 'addeliverystoptime'],
  ...['adcreativebodies', 'adcreativebody', 'adcreativelinktitles', 'adcreativelinktitle', 'adcreativelinkcaptions'],
  ...['adcreativelinkcaption', 'adcreativelinkdescriptions', 'adcreativelinkdescription'],
];
/** Keys that tell only beside an id that is no UUID, where no copy stands at the top level. */
const officialBesideId = [
  ...['demographicdistribution', 'deliverybyregion', 'regiondistribution', 'estimatedaudiencesize', 'eutotalreach'],
  ...['publisherplatforms', 'bylines', 'beneficiarypayers', 'targetlocations', 'targetages', 'targetgender'],
  ...['agecountrygenderreachbreakdown', 'totalreachbylocation', 'brtotalreach', 'impressions', 'snapshot'],
  ...['impressionslower', 'spendlower', 'estimatedaudiencesizelower', 'fundingentity', 'potentialreach'],
];

export const metaAdLibraryFormat: ImportFormat = {
  name: 'meta-ad-library',
  title: 'the Meta Ad Library: its API, scrapes of it, and tables of either',
  layouts: ['json', 'table'],
  keysByField: columns,
  hasColumnPaths: true,
  matches(record) {
    if (record.hasAny(['adarchiveid', 'libraryid'])) return true;
    const hasCopy = record.hasAny(['headline', 'body']);
    if (record.hasAny(official)) return record.hasAny(ids) || !hasCopy;
    const id = record.get('id') ?? record.get('adid');
    if (hasCopy || !record.hasAny(['id', 'adid']) || (typeof id === 'string' && isUuid(id))) return false;
    return (
      record.hasAny(officialBesideId) ||
      ['pagename', 'pageid'].some((key) => record.getSourceName(key).startsWith('page_')) ||
      Array.from(record.keys()).some((key) => key.startsWith('snapshot'))
    );
  },
  toAd,
};

function toAd(record: SourceRecord, values: ColumnValueParser): JsonObject {
  const snapshot = snapshotOf(record, values);
  const find = (path: string): [SourceRecord, string] =>
    path.startsWith('snapshot.') ? [snapshot, path.slice('snapshot.'.length)] : [record, path];
  const ad: JsonObject = {};
  /** The value of the first key that can be read. A value that cannot be understood is reported. */
  function readFirst(from: readonly string[], read: Read): unknown {
    for (const path of from) {
      const [source, key] = find(path);
      const value = source.get(key);
      if (isMissing(value)) continue;
      try {
        const found = read(value, source.getSourceName(key), values);
        if (found === undefined) continue;
        for (const one of from) {
          const [used, usedKey] = find(one);
          used.markUsed(usedKey);
        }
        return found;
      } catch (error) {
        if (read === idText) throw error;
        values.addValueError(error);
      }
    }
    return undefined;
  }
  const set = (field: string, value: unknown) => {
    if (value !== undefined) ad[field] = value;
  };
  for (const [field, read, ...from] of fields) set(field, readFirst(from, read));
  for (const [field, keys, whole] of ranges) {
    const range = readFirst(keys, (value, name) => values.parseRange(name, value, { isCount: whole })) as
      | NumberRange
      | undefined;
    const bound = (ends: readonly string[]) =>
      readFirst(endsOf(keys, ends), (value, name) => values.parseNumber(name, value, { isCount: whole }));
    set(`${field}Min`, range ? range.min : bound(lowerEnds));
    set(`${field}Max`, range ? range.max : bound(upperEnds));
  }
  // Nobody has seen an ad after the import. An end in the future is planned.
  const end = ad.endDate as string | undefined;
  if (end !== undefined) ad.lastSeenAt = Date.parse(end) > values.now ? new Date(values.now).toISOString() : end;
  const isActive = readFirst(columns.isActive ?? [], (value, name) => values.parseBoolean(name, value));
  // The end date of an active ad is only the day when it was scraped.
  if (isActive === true) ad.endDate = null;
  if (!('endDate' in ad) && isActive === false) ad.isActive = false;
  const assets = mediaOf(snapshot, record, values);
  if (ad.adArchiveId === undefined && values.isDecided)
    throw new Error(`${record.getSourceName('adarchiveid')}: missing, so the ad has no identity`);
  record.markUsed('snapshot');
  const remainder = restOf(snapshot, 'snapshot.', {}, values);
  return {
    ...restOf(record, '', ad, values),
    ...(Object.keys(remainder).length > 0 && { snapshot: remainder }),
    ...ad,
    id: idOf(String(ad.adArchiveId)),
    website: websiteOf(ad),
    media: assets,
    cards: ad.cards ?? [],
  };
}

/** The snapshot of a scrape; tables have it as a text, or as columns such as `snapshot_title`. */
function snapshotOf(record: SourceRecord, values: ColumnValueParser): SourceRecord {
  const value = record.get('snapshot');
  const parsed = values.parseStructure(value);
  if (isObject(parsed))
    return new SourceRecord(Object.entries(parsed), { path: `${record.getSourceName('snapshot')}.` });
  if (!isMissing(value))
    values.addValueError(new Error(`${record.getSourceName('snapshot')}: no object; the ad has no copy of it`));
  const flat: [string, unknown][] = [];
  for (const key of record.keys()) {
    const name = key.startsWith('snapshot') ? flatNames[key.slice('snapshot'.length)] : undefined;
    if (name === undefined) continue;
    flat.push([name, name === 'body' ? { text: record.get(key) } : record.get(key)]);
    record.markUsed(key);
  }
  return new SourceRecord(flat, { path: 'snapshot_' });
}

/** The keys of columns such as `snapshot_body_text`, without `snapshot`. `snapshot_url` is the address of the snapshot. */
const flatNames: Record<string, string> = {
  ...Object.fromEntries(
    ['title', 'caption', 'linkurl', 'linkdescription', 'ctatype', 'displayformat', 'pagename', 'pageid'].map((key) => [
      key,
      key,
    ]),
  ),
  ...{ images: 'images', videos: 'videos', cards: 'cards', body: 'body', bodytext: 'body' },
};

/** Everything else that has a value, under its own name. */
function restOf(record: SourceRecord, prefix: string, ad: JsonObject, values: ColumnValueParser): JsonObject {
  const rest: [string, unknown][] = [];
  for (const { name, value } of record.getUnusedFields()) {
    if (isEmpty(value)) continue;
    const key = normalizeKey(name);
    const field = toCamelCase(name);
    if (!knownKeys.has(`${prefix}${key}`) && !knownKeys.has(key)) values.unusedKeys.push(`${prefix}${name}`);
    if (!Object.hasOwn(ad, field) && field !== 'id') rest.push([field, values.parseStructure(value) ?? value]);
  }
  return Object.fromEntries(rest);
}

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);

const withName = (pageName: unknown) => (pageName === undefined ? undefined : { pageName });

function websiteOf(ad: JsonObject): JsonObject {
  const siteDomain = findLandingDomain(ad);
  return siteDomain === undefined ? {} : { siteDomain };
}

/** The same archive id always gives the same UUID, so importing again replaces the ad. */
function idOf(archiveId: string): string {
  const hex = createHash('sha256').update(`public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** @throws Error when the id was rounded: another ad or page could have the same one */
function idText(value: unknown, name: string, values: ColumnValueParser): string | undefined {
  // Python writes the whole numbers of a column with gaps as `12.0`.
  const id = values
    .text(value)
    ?.trim()
    .replace(/^(\d{1,15})\.0$/, '$1');
  if ((typeof value === 'number' && !Number.isSafeInteger(value)) || /^\d(?:[.,]\d+)?e\+?\d+$/i.test(id ?? ''))
    throw new Error(`${name}: ${id} is rounded, so the id is lost; export it again as a text`);
  return id === '' ? undefined : id;
}

/** A body is a text, an object with a text or its HTML, or a list of versions. */
function bodyText(value: unknown, _: string, values: ColumnValueParser): string | undefined {
  const parsed = values.parseStructure(value);
  const body = isObject(parsed) && ['text', 'markup'].some((key) => key in parsed) ? parsed : value;
  if (!isObject(body)) return decoded(values.texts(body)?.[0]) || undefined;
  const plain = values.text(body.text);
  if (plain !== undefined && plain !== '') return decoded(plain);
  const html = values.text(isObject(body.markup) ? (body.markup.__html ?? body.markup.html) : body.markup);
  return html ? convertHtmlToText(html) : undefined;
}

function cardsOf(value: unknown, _: string, values: ColumnValueParser): JsonObject[] | undefined {
  const cards = values.parseStructure(value);
  if (!Array.isArray(cards) || cards.length === 0) return undefined;
  return cards.map((card) =>
    Object.fromEntries(
      Object.entries(isObject(card) ? card : {}).map(([key, one]) => [
        key,
        key === 'body' && isObject(one) ? bodyText(one, key, values) : typeof one === 'string' ? decoded(one) : one,
      ]),
    ),
  );
}

function sharesOf(value: unknown, _: string, values: ColumnValueParser): unknown {
  const shares = values.parseStructure(value);
  if (!Array.isArray(shares) || shares.length === 0) return undefined;
  return shares.map((share) => {
    if (!isObject(share) || !('percentage' in share)) return share;
    return { ...share, percentage: parseShare(share.percentage) ?? share.percentage };
  });
}

function mediaOf(snapshot: SourceRecord, record: SourceRecord, values: ColumnValueParser): MediaAsset[] {
  const assets = (key: string, type: string) => {
    const list = values.parseStructure(snapshot.get(key) ?? record.get(key));
    if (Array.isArray(list)) for (const source of [snapshot, record]) source.markUsed(key);
    return (Array.isArray(list) ? list : []).flatMap((entry, nr) => {
      const asset = new SourceRecord(isObject(entry) ? Object.entries(entry) : [['url', entry]]);
      const isVideo = type.endsWith('VID');
      const first = (...keys: string[]) =>
        keys.map((one) => decoded(values.text(asset.get(one)))).find((url) => url !== undefined && url !== '');
      const url = isVideo
        ? first('videohdurl', 'videosdurl', ...(key === 'videos' ? ['url'] : []))
        : first('originalimageurl', 'resizedimageurl', 'imageurl', ...(key === 'images' ? ['url'] : []));
      const preview = isVideo && first('videopreviewimageurl');
      return url ? [{ type, url, nr, ...(preview && { urls: { preview } }) }] : [];
    });
  };
  const portrait = decoded(values.text(snapshot.get('pageprofilepictureurl') ?? record.get('pageprofilepictureurl')));
  for (const source of [snapshot, record]) source.markUsed('pageprofilepictureurl');
  return [
    ...assets('videos', 'VID'),
    ...assets('images', 'THUMB'),
    ...assets('cards', 'CARD_VID'),
    ...assets('cards', 'CARD_THUMB'),
    ...(portrait ? [{ type: 'PA_PP', url: portrait, nr: null }] : []),
  ];
}
