import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { parseTime } from '../../views/dates.ts';
import { computeRunningTime } from '../../views/days-running.ts';
import { dayMs } from '../../views/durations.ts';
import { findLandingDomain } from '../../views/landing.ts';

/**
 * Describes how ads and advertiser pages can be searched. Searches filter both types of records by texts, by tags (sets
 * of values, e.g. countries) and by measures (numbers and dates).
 */

/**
 * A number by which a search can sort records and filter them with a lower and an upper bound. Dates are measures, too,
 * in Unix milliseconds.
 *
 * Some measures are ranges, e.g. from `adSpendMin` to `adSpendMax`. For them, `getValue` returns the upper bound and
 * `getLowerBound` the lower bound. A record matches if its range overlaps the range of the filter. `database.ts`
 * creates a column for each bound, and an index for each measure.
 */
export type Measure<LibraryRecord = unknown> = {
  key: string;
  /** The meaning of the number, e.g. `people reached`. This text becomes part of the filter descriptions. */
  description: string;
  isDate?: boolean;
  getValue(record: LibraryRecord): number | null | undefined;
  /** Returns the lower bound if the measure is a range. Must return a number for the same records as `getValue`. */
  getLowerBound?(record: LibraryRecord): number | null | undefined;
  /**
   * Returns an SQL expression for the value at a time in Unix milliseconds. Only defined for measures that change over
   * time.
   */
  getValueSql?(searchTimeMs: number): string;
};

/**
 * A filter by a tag, i.e. by a property with a set of values, such as the countries of a record. The filter finds
 * records that have at least one of the requested values.
 */
export type TagFilter<LibraryRecord = unknown> = {
  key: string;
  /** The meaning of the values, e.g. `the call to action`. This text becomes part of the filter description. */
  description: string;
  /** A short note about the filter, which AI models read in the tool description. */
  note?: string;
  /** The allowed values of the filter. If `open` is true, the list contains only the most common values. */
  values?: string[];
  /** True if the filter also accepts values that are not listed in `values`. */
  open?: boolean;
  /** True if every record has at most one value, e.g. only one currency. */
  hasSingleValue?: boolean;
  isBoolean?: boolean;
  /** True if a record must have all values of the filter, instead of at least one of them. */
  mustMatchAll?: boolean;
  /** Values that are not stored as tag values. To find them, `search.ts` checks a column of the record instead. */
  valuesFromColumns?: readonly string[];
  /** True if the values are ids. Ids are case-sensitive. For an unknown id, the search does not suggest similar ids. */
  isId?: boolean;
  /** True if the values are domains. A filter then also accepts a URL, and `müller.de` equals `xn--mller-kva.de`. */
  isDomain?: boolean;
  example?: unknown;
  /** Returns the values of a record, e.g. `DE` and `FR`, for filters, counts and suggestions. */
  getValues(record: LibraryRecord): (string | null | undefined)[];
  /**
   * Returns further values with which a filter finds the record, e.g. `example.com` for the domain `shop.example.com`.
   * Counts and suggestions ignore these values.
   */
  getExtraValues?(record: LibraryRecord): string[];
};

/** Returns the database columns of measures. A range has two columns, e.g. `adSpend` and `adSpendLow`. */
export const listMeasureColumns = (measures: Measure[]): string[] =>
  measures.flatMap(({ key, getLowerBound }) => (getLowerBound ? [key, `${key}Low`] : [key]));

/** The columns of the full-text index. `copy` contains the texts of an ad, or the name of an advertiser page. */
export const textColumns = ['copy', 'advertiser', 'bylines'] as const;
type TextColumn = (typeof textColumns)[number];
type OptionalTexts = (string | null | undefined)[];

/** A filter that searches for words in the texts of a record, such as the `query` filter. */
export type TextFilter = {
  key: string;
  description: string;
  /** The columns of the full-text index that the filter searches. */
  columns: TextColumn[];
  /** The fields of the record that the filter searches, e.g. `headline`. */
  fields?: string[];
  example?: string;
};

/** Describes how records of one type (ads or advertiser pages) are searched, filtered and sorted. */
export type RecordType<LibraryRecord = unknown> = {
  /** The type of the records. The names of their database tables begin with this text, e.g. `ads_json`. */
  itemType: ItemType;
  /** Functions that return the texts of a record, one for each column of the full-text index. */
  getTexts: {
    copy(record: LibraryRecord): OptionalTexts;
    advertiser(record: LibraryRecord): OptionalTexts;
    bylines(record: LibraryRecord): OptionalTexts;
  };
  textFilters: TextFilter[];
  tagFilters: TagFilter<LibraryRecord>[];
  measures: Measure<LibraryRecord>[];
};

/** Returns the texts in a value, which may be a single text or a list. Omits values that are not texts. */
export const collectTexts = (textOrList: unknown): string[] =>
  (Array.isArray(textOrList) ? textOrList : [textOrList]).filter((item) => typeof item === 'string');

/**
 * Defines a filter by a record field that contains a text or a list of texts. The filter and the field have the same
 * name.
 */
const defineFieldFilter = (
  key: string,
  description: string,
  options: Partial<TagFilter> = {},
): TagFilter<Record<string, unknown>> => ({
  key,
  description,
  ...options,
  getValues: (record) => collectTexts(record[key]),
});

/** Defines a filter by a boolean record field with the same name. */
const defineBooleanFilter = (key: string, description: string): TagFilter<Record<string, unknown>> => ({
  key,
  description,
  isBoolean: true,
  hasSingleValue: true,
  getValues: (record) => (typeof record[key] === 'boolean' ? [String(record[key])] : []),
});

/**
 * Adds the `missing` filter to a record type, which finds records without a value for the listed keys. Missing texts
 * and tags are stored as tag values. For missing numbers and dates, the search checks the columns instead.
 *
 * @param otherFields fields that `missing` accepts in addition to the keys of all tag filters and measures
 */
function addMissingFilter<LibraryRecord>(
  recordType: RecordType<LibraryRecord>,
  otherFields: Pick<TagFilter<LibraryRecord>, 'key' | 'getValues'>[] = [],
): RecordType<LibraryRecord> {
  const { itemType, tagFilters, measures } = recordType;
  const columnKeys = [...measures.map(({ key }) => key), ...(itemType === 'ads' ? ['active'] : [])];
  const checkedFields = [...otherFields, ...tagFilters];
  const missingFilter: TagFilter<LibraryRecord> = {
    key: 'missing',
    description: 'Keys for which a record has no value. A record matches if it lacks all of the listed keys.',
    note: 'no value for any of the listed keys',
    values: [...checkedFields.map(({ key }) => key), ...columnKeys],
    mustMatchAll: true,
    valuesFromColumns: columnKeys,
    getValues: (record) =>
      checkedFields.flatMap((field) => (field.getValues(record).some(isNonBlank) ? [] : field.key)),
  };
  return { ...recordType, tagFilters: [...tagFilters, missingFilter] };
}

/** Returns true if the text contains at least one character that is not whitespace. */
export const isNonBlank = (text: string | null | undefined): text is string => text != null && text.trim() !== '';

/**
 * The maximum length of a valid domain, in characters. A longer text could contain so many dots that its parent domains
 * exhaust the memory.
 */
const maxDomainLength = 253;

/** Returns the parent domains of a domain, e.g. `example.com` and `com` for `shop.example.com`. */
function listParentDomains(domain: string): string[] {
  const domainLabels = domain.length > maxDomainLength ? [] : domain.split('.').filter(Boolean);
  return domainLabels.slice(1).map((_, index) => domainLabels.slice(index + 1).join('.'));
}

/**
 * Returns `video` or `image`, depending on the media of an ad, or null if the ad has neither. An ad with both is
 * classified as video, because a video usually comes with still images.
 */
function classifyMedia(media: Ad['media'] = []): string | null {
  if (media.some(({ type }) => type.includes('VID'))) return 'video';
  return media.some(({ type }) => /THUMB|IMG/.test(type)) ? 'image' : null;
}

const collectCardTexts = (cards: Ad['cards']) =>
  (cards ?? []).flatMap((card) =>
    ['title', 'body', 'link_description', 'linkDescription', 'description'].flatMap((key) => collectTexts(card[key])),
  );

/** Removes the region from a language code, e.g. returns `pt` for `pt_BR`. */
const removeRegion = (language: string): string => language.split(/[-_]/, 1)[0] ?? '';

/**
 * Defines a filter by the `languages` field. Counts combine all regions of a language, e.g. `pt_BR` counts as `pt`.
 * Both filter values `pt` and `pt_BR` find an ad in `pt_BR`.
 */
const defineLanguageFilter = (
  key: string,
  description: string,
  example: string[],
): TagFilter<Record<string, unknown>> => ({
  key,
  description,
  example,
  getValues: ({ languages }) => collectTexts(languages).map(removeRegion),
  getExtraValues: ({ languages }) => collectTexts(languages),
});

/** Returns an SQL expression that converts a time in Unix milliseconds to the number of days since 1970. */
const buildDayNumberSql = (timeSql: string) => `floor(${timeSql} / ${dayMs}.0)`;

const toNumberOrNull = (value: unknown) => (typeof value === 'number' ? value : null);

/** Defines a measure for a numeric record field with the same name. */
const defineNumberMeasure = (key: string, description: string): Measure<Record<string, unknown>> => ({
  key,
  description,
  getValue: (record) => toNumberOrNull(record[key]),
});

/**
 * Defines a measure for a date field with the same name, e.g. `startedAt`. Searches can sort and filter by a measure.
 */
const defineDateMeasure = (key: string, description: string): Measure<Record<string, unknown>> => ({
  key,
  description,
  isDate: true,
  getValue: (record) => parseTime(record[key] as string | null | undefined),
});

/**
 * Defines a measure for a range in two fields, e.g. `adSpendMin` and `adSpendMax`. In some ad archives, the highest
 * range has no upper bound, e.g. "over 1 million". Such a range comes first in descending order. A range without a
 * lower bound starts at zero.
 */
const defineRangeMeasure = (key: string, description: string): Measure<Record<string, unknown>> => {
  const readRange = (record: Record<string, unknown>) =>
    [toNumberOrNull(record[`${key}Min`]), toNumberOrNull(record[`${key}Max`])] as const;
  return {
    key,
    description: `${description} (${key}Min to ${key}Max)`,
    getValue(record) {
      const [lowerBound, upperBound] = readRange(record);
      // Use the largest number instead of Infinity. The value becomes part of a cursor, which contains JSON, and JSON
      // has no Infinity.
      return upperBound ?? (lowerBound === null ? null : Number.MAX_VALUE);
    },
    getLowerBound(record) {
      const [lowerBound, upperBound] = readRange(record);
      return lowerBound ?? (upperBound === null ? null : Math.min(0, upperBound));
    },
  };
};

const collectBylines = (ad: Ad) => collectTexts(ad.bylines);
const exampleQuery = 'summer sale -shoes';

const adRecordType: RecordType<Ad> = {
  itemType: 'ads',
  getTexts: {
    copy(ad) {
      const mainTexts = [ad.headline, ad.body, ad.linkDescription, ad.productTitle];
      // These fields contain alternative versions of the ad's texts. Ads from a public ad library may have several
      // versions.
      const alternativeTexts = [ad.headlines, ad.bodies, ad.linkDescriptions].flatMap(collectTexts);
      return [...new Set([...mainTexts, ...collectCardTexts(ad.cards), ...alternativeTexts])];
    },
    advertiser: (ad) => [ad.page?.pageName],
    bylines: collectBylines,
  },
  textFilters: [
    {
      key: 'query',
      description: 'the texts of the ad, its headline, product, cards, advertiser name or bylines',
      columns: ['copy', 'advertiser', 'bylines'],
      fields: ['headline', 'body', 'linkDescription', 'productTitle', 'cards', 'pageName', 'bylines'],
      example: exampleQuery,
    },
    { key: 'advertiser', description: 'the name of the advertiser', columns: ['advertiser'] },
    { key: 'bylines', description: 'the line that says who paid for the ad', columns: ['bylines'] },
  ],
  tagFilters: [
    defineFieldFilter('pageId', 'the id of the advertiser’s page', { hasSingleValue: true, isId: true }),
    {
      key: 'advertiserExact',
      description: 'the whole name of the advertiser',
      note: 'the whole name',
      hasSingleValue: true,
      getValues: (ad) => [ad.page?.pageName],
    },
    defineFieldFilter('countries', 'the countries in which the ad ran, as ISO 3166 codes', { example: ['US', 'DE'] }),
    defineLanguageFilter(
      'language',
      'the language of the ad, as an ISO 639-1 code. If the record names no language, it is detected from the texts',
      ['en', 'ko'],
    ),
    defineFieldFilter('publisherPlatform', 'the platforms on which the ad ran', {
      values: ['FACEBOOK', 'INSTAGRAM', 'AUDIENCE_NETWORK', 'MESSENGER', 'THREADS'],
      open: true,
    }),
    defineFieldFilter(
      'displayFormat',
      'the format that the advertiser chose. A DCO, DPA or CAROUSEL ad may hold videos: mediaKind says what the media are',
      {
        note: 'the format the advertiser chose',
        values: ['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO', 'DPA'],
        open: true,
        hasSingleValue: true,
      },
    ),
    {
      key: 'mediaKind',
      description:
        'the kind of media in the record, whatever displayFormat says. A record with any video is video; a record without media has no value',
      note: 'an ad with any video is video',
      values: ['image', 'video'],
      hasSingleValue: true,
      getValues: (ad) => [classifyMedia(ad.media)],
    },
    defineFieldFilter('adLibrary', 'the ad library from which an imported ad comes', {
      values: ['meta', 'google', 'tiktok', 'linkedin', 'own'],
      hasSingleValue: true,
    }),
    {
      key: 'payer',
      description: 'the whole name of who paid for the ad, or the disclaimer of a political ad',
      note: 'the whole name',
      hasSingleValue: true,
      getValues: (ad) => [collectTexts(ad.payer)[0] ?? collectBylines(ad)[0]],
    },
    defineFieldFilter('ctaType', 'the call to action', {
      values: ['LEARN_MORE', 'SHOP_NOW', 'SIGN_UP', 'DOWNLOAD'],
      open: true,
      hasSingleValue: true,
    }),
    {
      key: 'domain',
      description: 'the domain to which the ad leads. Subdomains are included',
      note: 'includes subdomains',
      isDomain: true,
      example: ['example.com'],
      getValues: (ad) => [findLandingDomain(ad)],
      getExtraValues: (ad) => [findLandingDomain(ad) ?? []].flat().flatMap(listParentDomains),
    },
    {
      key: 'question',
      description: 'the names of the questions that still list the ad (library import --question)',
      getValues: (ad) => collectTexts(ad.questions),
    },
    defineFieldFilter('currency', 'the currency of the spend, as an ISO 4217 code', {
      example: ['EUR'],
      hasSingleValue: true,
    }),
    defineBooleanFilter('isStorePlatformBestSeller', 'whether the product is a best seller of its shop'),
  ],
  measures: [
    defineDateMeasure('startedAt', 'when the ad started'),
    defineDateMeasure('lastSeenAt', 'when the ad was last seen'),
    defineDateMeasure('endDate', 'when the ad ended'),
    {
      key: 'daysRunning',
      description: 'days from startedAt to endDate, or to lastSeenAt if the ad has not ended; 0 on the same day',
      getValue: (ad) => computeRunningTime(ad, Number.POSITIVE_INFINITY).daysRunning,
      // The database column `daysRunning` counts the days up to the last date of the ad. If this date is later than the
      // time of the search (`searchTimeMs`), ignore the end date and count only the days up to `searchTimeMs`.
      getValueSql: (searchTimeMs) => {
        const lastSeenSql = `min(ads."lastSeenAt", ${searchTimeMs})`;
        const daysSoFarSql = `nullif(max(${buildDayNumberSql(lastSeenSql)} - ${buildDayNumberSql('ads."startedAt"')}, -1), -1)`;
        const isPastSql = `ads."endDate" <= ${searchTimeMs} OR (ads."endDate" IS NULL AND ads."lastSeenAt" <= ${searchTimeMs})`;
        return `CASE WHEN ${isPastSql} THEN ads."daysRunning" ELSE ${daysSoFarSql} END`;
      },
    },
    defineNumberMeasure('duplicates', 'duplicates of the ad, the ad itself included'),
    defineNumberMeasure('audienceReach', 'people reached'),
    defineRangeMeasure('adSpend', 'ad spend'),
    defineRangeMeasure('revenue', 'revenue'),
    defineRangeMeasure('impressions', 'impressions'),
    defineRangeMeasure('audienceSize', 'size of the target audience'),
    defineNumberMeasure('trendPublic', 'trend score'),
    defineNumberMeasure('performancePublic', 'performance score'),
    defineNumberMeasure('productPrice', 'price of the product'),
    defineDateMeasure('productCreatedAt', 'when the product was first listed'),
  ],
};

const pageRecordType: RecordType<Page> = {
  itemType: 'pages',
  getTexts: { copy: (page) => [page.pageName], advertiser: (page) => [page.pageName], bylines: () => [] },
  textFilters: [
    {
      key: 'query',
      description: 'the page name',
      columns: ['copy', 'advertiser'],
      fields: ['pageName'],
      example: exampleQuery,
    },
  ],
  tagFilters: [
    defineFieldFilter('pageId', 'the id of the page', { hasSingleValue: true, isId: true }),
    defineFieldFilter('countries', 'the countries of the page, as ISO 3166 codes', { example: ['KR'] }),
    defineLanguageFilter('languages', 'the languages of the page, as ISO 639 codes', ['ko']),
    defineFieldFilter('technologySlugs', 'the technologies of the website', { example: ['live-chat'] }),
    defineBooleanFilter('detailsEstimated', 'whether the details are estimates'),
  ],
  measures: [
    defineNumberMeasure('adsAmount', 'number of ads'),
    defineNumberMeasure('adsTotalDuplicates', 'duplicates of all ads'),
    defineNumberMeasure('averageDuplicates', 'duplicates per ad'),
    defineNumberMeasure('audienceReach', 'people reached'),
    defineNumberMeasure('pageLikes', 'likes of the page'),
    defineNumberMeasure('pageIgFollowers', 'Instagram followers'),
    defineNumberMeasure('trend', 'trend score'),
    defineNumberMeasure('performance', 'performance score'),
    defineDateMeasure('pageCreatedAt', 'when the page was created'),
  ],
};

/** Describes how the two types of records in a library (ads and advertiser pages) are searched. */
export const recordTypes: Record<ItemType, RecordType> = {
  ads: addMissingFilter(adRecordType, [
    { key: 'headline', getValues: (ad) => [ad.headline] },
    { key: 'body', getValues: (ad) => [ad.body] },
    { key: 'bylines', getValues: (ad) => collectBylines(ad).slice(0, 1) },
  ]),
  pages: addMissingFilter(pageRecordType),
};
