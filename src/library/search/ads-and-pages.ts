import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { computeRun, parseTime } from '../../views/dates.ts';
import { dayMs } from '../../views/durations.ts';
import { findLandingDomain } from '../../views/landing.ts';

/**
 * Describes the two types of record and how each can be searched.
 *
 * A measure is a number (dates are Unix milliseconds) that can be filtered by bounds and sorted by. Where the API gives a
 * range (`adSpendMin`, `adSpendMax`), `value` is its upper end and `low` its lower end: a record matches bounds that
 * touch its range. Each end has a column, and each measure an index; database.ts creates both. A tag is a set of values:
 * a filter matches the records that have any of the listed values. A text is searched by its words.
 */
export type Measure<Item = unknown> = {
  key: string;
  about: string;
  date?: boolean;
  value(item: Item): number | null | undefined;
  /** The lower end of a range. It has a value exactly where `value` has one. */
  low?(item: Item): number | null | undefined;
  /** Returns the SQL of the value at a time (Unix milliseconds), for a measure whose value depends on the time. */
  sql?(asOf: number): string;
};

export type Tag<Item = unknown> = {
  key: string;
  about: string;
  /** What a model reads beside the key. */
  note?: string;
  /** The only values, or with `open` the common ones. */
  values?: string[];
  open?: boolean;
  /** No record has two values. */
  single?: boolean;
  boolean?: boolean;
  /** A record matches if it has all of the values listed, not any. */
  all?: boolean;
  /** Values that are conditions on columns (see search.ts) and so are not stored for each record. */
  columnKeys?: readonly string[];
  /** Values are ids: they differ in case, and no other value is suggested for an unknown one. */
  opaque?: boolean;
  example?: unknown;
  /** Returns the values that counts list and notes suggest. */
  valuesOf(item: Item): (string | null | undefined)[];
  /** Returns further values under which the filter finds the record, such as the parent domains of its domain. */
  furtherValuesOf?(item: Item): string[];
};

export const columnsOf = (measures: Measure[]): string[] =>
  measures.flatMap(({ key, low }) => (low ? [key, `${key}Low`] : [key]));

/** The columns of the full-text index besides the tags. */
export const textColumns = ['copy', 'advertiser', 'bylines'] as const;
type TextColumn = (typeof textColumns)[number];
type Texts = (string | null | undefined)[];

export type TextFilter = { key: string; about: string; columns: TextColumn[]; fields?: string[]; example?: string };

export type RecordType<Item = unknown> = {
  name: ItemType;
  texts: { copy(item: Item): Texts; advertiser(item: Item): Texts; bylines(item: Item): Texts };
  textFilters: TextFilter[];
  tags: Tag<Item>[];
  measures: Measure<Item>[];
};

/** Lists of texts in fields that the API does not name. */
export const textsIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');

/** The tag of a field of the same name, a text or a list of texts. */
const field = (key: string, about: string, more: Partial<Tag> = {}): Tag<Record<string, unknown>> => ({
  key,
  about,
  ...more,
  valuesOf: (item) => textsIn(item[key]),
});

const flag = (key: string, about: string): Tag<Record<string, unknown>> => ({
  key,
  about,
  boolean: true,
  single: true,
  valuesOf: (item) => (typeof item[key] === 'boolean' ? [String(item[key])] : []),
});

/**
 * Adds the tag `missing`, which finds records by the keys for which they have no value. `others` are fields that are
 * neither tags nor measures. For measures, the columns tell it.
 */
function withMissing<Item>(
  type: RecordType<Item>,
  others: Pick<Tag<Item>, 'key' | 'valuesOf'>[] = [],
): RecordType<Item> {
  const { name, tags, measures } = type;
  const columnKeys = [...measures.map(({ key }) => key), ...(name === 'ads' ? ['active'] : [])];
  const fields = [...others, ...tags];
  const missing: Tag<Item> = {
    key: 'missing',
    about: 'keys without a value; a record lacks all that are listed',
    note: 'no value in any of them',
    values: [...fields.map(({ key }) => key), ...columnKeys],
    all: true,
    columnKeys,
    valuesOf: (item) => fields.flatMap(({ key, valuesOf }) => (valuesOf(item).some(isFilled) ? [] : key)),
  };
  return { ...type, tags: [...tags, missing] };
}

export const isFilled = (text: string | null | undefined): text is string => text != null && text.trim() !== '';

/** The longest valid domain. Without a limit, the parents of a longer text could fill the memory. */
const maxDomainLength = 253;

/** Returns the parents of a domain: `example.com` and `com` for `shop.example.com`. */
function parentDomains(domain: string): string[] {
  const labels = domain.length > maxDomainLength ? [] : domain.split('.').filter(Boolean);
  return labels.slice(1).map((_, at) => labels.slice(at + 1).join('.'));
}

/** Videos come with still pictures, so an ad with both is a video. */
function mediaKind(media: Ad['media'] = []): string | null {
  if (media.some(({ type }) => type.includes('VID'))) return 'video';
  return media.some(({ type }) => /THUMB|IMG/.test(type)) ? 'image' : null;
}

const cardText = (cards: Ad['cards']) =>
  (cards ?? []).flatMap((card) =>
    ['title', 'body', 'link_description', 'linkDescription', 'description'].flatMap((key) => textsIn(card[key])),
  );

/** Returns the language of a language tag, without its region: `pt` for `pt_BR`. */
const withoutRegion = (language: string): string => language.split(/[-_]/, 1)[0] ?? '';

/** The tag of the field `languages`. Counts list languages without regions; the filter finds both `pt` and `pt_BR`. */
const languageTag = (key: string, about: string, example: string[]): Tag<Record<string, unknown>> => ({
  key,
  about,
  example,
  valuesOf: ({ languages }) => textsIn(languages).map(withoutRegion),
  furtherValuesOf: ({ languages }) => textsIn(languages),
});

/** SQL for the number of the day that holds a time. */
const dayOf = (time: string) => `floor(${time} / ${dayMs}.0)`;
const amount = (value: unknown) => (typeof value === 'number' ? value : null);

const number = (key: string, about: string): Measure<Record<string, unknown>> => ({
  key,
  about,
  value: (item) => amount(item[key]),
});

const date = (key: string, about: string): Measure<Record<string, unknown>> => ({
  key,
  about,
  date: true,
  value: (item) => parseTime(item[key] as string | null | undefined),
});

/**
 * The measure of two fields, the ends of a range. The highest bracket of an archive has a lower end alone: it reaches up
 * to any number, and so comes first in descending order. A range with an upper end alone begins at zero.
 */
const range = (key: string, about: string): Measure<Record<string, unknown>> => {
  const endsOf = (item: Record<string, unknown>) => [amount(item[`${key}Min`]), amount(item[`${key}Max`])] as const;
  return {
    key,
    about: `${about} (${key}Min to ${key}Max)`,
    value(item) {
      const [low, high] = endsOf(item);
      // Infinity cannot be written into the JSON of a cursor.
      return high ?? (low === null ? null : Number.MAX_VALUE);
    },
    low(item) {
      const [low, high] = endsOf(item);
      return low ?? (high === null ? null : Math.min(0, high));
    },
  };
};

const adBylines = (ad: Ad) => textsIn(ad.bylines);
const sale = 'summer sale -shoes';

const adType: RecordType<Ad> = {
  name: 'ads',
  texts: {
    copy(ad) {
      const texts = [ad.headline, ad.body, ad.linkDescription, ad.productTitle];
      // Further versions, as imports from the public archive keep them.
      const versions = [ad.headlines, ad.bodies, ad.linkDescriptions].flatMap(textsIn);
      return [...new Set([...texts, ...cardText(ad.cards), ...versions])];
    },
    advertiser: (ad) => [ad.page?.pageName],
    bylines: adBylines,
  },
  textFilters: [
    {
      key: 'query',
      about: 'the copy, headline, product, cards, advertiser name or bylines',
      columns: ['copy', 'advertiser', 'bylines'],
      fields: ['headline', 'body', 'linkDescription', 'productTitle', 'cards', 'pageName', 'bylines'],
      example: sale,
    },
    { key: 'advertiser', about: 'the name of the advertiser page', columns: ['advertiser'] },
    { key: 'bylines', about: 'the line that says who paid for the ad', columns: ['bylines'] },
  ],
  tags: [
    field('pageId', 'id of the advertiser page', { single: true, opaque: true }),
    {
      key: 'advertiserExact',
      about: 'whole name of the advertiser page',
      note: 'whole names',
      single: true,
      valuesOf: (ad) => [ad.page?.pageName],
    },
    field('countries', 'countries the ad ran in, ISO 3166 codes', { example: ['US', 'DE'] }),
    languageTag('language', 'language of the ad, ISO 639-1 codes: as the record says it, else as its copy tells', [
      'en',
      'ko',
    ]),
    field('publisherPlatform', 'where the ad ran', {
      values: ['FACEBOOK', 'INSTAGRAM', 'AUDIENCE_NETWORK', 'MESSENGER', 'THREADS'],
      open: true,
    }),
    field(
      'displayFormat',
      'format that the advertiser chose; mediaKind says what the media are, and a DCO, DPA or CAROUSEL ad may hold videos',
      {
        note: 'the format chosen, whatever the media are',
        values: ['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO', 'DPA'],
        open: true,
        single: true,
      },
    ),
    {
      key: 'mediaKind',
      about:
        'what the media of the record hold, whatever displayFormat says; with any video it is video, and a record without media has none',
      note: 'what the media hold; any video makes it video',
      values: ['image', 'video'],
      single: true,
      valuesOf: (ad) => [mediaKind(ad.media)],
    },
    field('ctaType', 'call to action', {
      values: ['LEARN_MORE', 'SHOP_NOW', 'SIGN_UP', 'DOWNLOAD', 'INSTALL_MOBILE_APP', 'ORDER_NOW', 'GET_OFFER'],
      open: true,
      single: true,
    }),
    {
      key: 'domain',
      about: 'domain the ad leads to, subdomains included',
      note: 'and subdomains',
      example: ['example.com'],
      valuesOf: (ad) => [findLandingDomain(ad)],
      furtherValuesOf: (ad) => [findLandingDomain(ad) ?? []].flat().flatMap(parentDomains),
    },
    field('currency', 'currency of the spend, ISO 4217 codes', { example: ['EUR'], single: true }),
    flag('isStorePlatformBestSeller', 'whether the product is a best seller of its shop'),
  ],
  measures: [
    date('startedAt', 'when the ad started'),
    date('lastSeenAt', 'when the ad was last seen'),
    date('endDate', 'when the ad ended'),
    {
      key: 'daysRunning',
      about: 'days from startedAt to endDate if past, else lastSeenAt; 0 on the same day',
      value: (ad) => computeRun(ad, Number.POSITIVE_INFINITY).daysRunning,
      /** The column counts every date. An end after `asOf` does not count yet, and nobody has seen an ad after `asOf`. */
      sql: (asOf) => {
        const lastSeen = `min(ads."lastSeenAt", ${asOf})`;
        const soFar = `nullif(max(${dayOf(lastSeen)} - ${dayOf('ads."startedAt"')}, -1), -1)`;
        const isPast = `ads."endDate" <= ${asOf} OR (ads."endDate" IS NULL AND ads."lastSeenAt" <= ${asOf})`;
        return `CASE WHEN ${isPast} THEN ads."daysRunning" ELSE ${soFar} END`;
      },
    },
    number('duplicates', 'copies of the ad, itself included'),
    number('audienceReach', 'people reached'),
    range('adSpend', 'ad spend'),
    range('revenue', 'revenue'),
    range('impressions', 'impressions'),
    range('audienceSize', 'size of the audience aimed at'),
    number('trendPublic', 'trend score'),
    number('performancePublic', 'performance score'),
    number('productPrice', 'price of the product'),
    date('productCreatedAt', 'when the product was first listed'),
  ],
};

const pageType: RecordType<Page> = {
  name: 'pages',
  texts: { copy: (page) => [page.pageName], advertiser: (page) => [page.pageName], bylines: () => [] },
  textFilters: [
    { key: 'query', about: 'the page name', columns: ['copy', 'advertiser'], fields: ['pageName'], example: sale },
  ],
  tags: [
    field('pageId', 'page id', { single: true, opaque: true }),
    field('countries', 'countries, ISO 3166 codes', { example: ['KR'] }),
    languageTag('languages', 'languages, ISO 639 codes', ['ko']),
    field('technologySlugs', 'technologies of the website', { example: ['live-chat'] }),
    flag('detailsEstimated', 'whether the details are estimates'),
  ],
  measures: [
    number('adsAmount', 'number of ads'),
    number('adsTotalDuplicates', 'copies over all ads'),
    number('averageDuplicates', 'copies per ad'),
    number('audienceReach', 'people reached'),
    number('pageLikes', 'likes of the page'),
    number('pageIgFollowers', 'Instagram followers'),
    number('trend', 'trend score'),
    number('performance', 'performance score'),
    date('pageCreatedAt', 'when the page was made'),
  ],
};

export const recordTypes: Record<ItemType, RecordType> = {
  ads: withMissing(adType, [
    { key: 'headline', valuesOf: (ad) => [ad.headline] },
    { key: 'body', valuesOf: (ad) => [ad.body] },
    { key: 'bylines', valuesOf: (ad) => adBylines(ad).slice(0, 1) },
  ]),
  pages: withMissing(pageType),
};
