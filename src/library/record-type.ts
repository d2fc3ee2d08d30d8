import type { ItemType } from '../api/item-type.ts';
import type { Ad, Page } from '../api/schemas.ts';

/**
 * The two types of record, and the measures and tags by which each can be searched.
 *
 * A measure is a number (dates are Unix milliseconds) that can be filtered by bounds and sorted by. Where the API gives a
 * range (`adSpendMin`, `adSpendMax`), `low` is its lower end: a record matches bounds that overlap its range. Each has a
 * column and an index, which migrations.ts must make. A tag is a set of values, kept in the full-text index; a filter
 * matches any of the values it lists.
 */
export type Measure<Item = unknown> = {
  key: string;
  about: string;
  date?: boolean;
  value(item: Item): number | null | undefined;
  low?(item: Item): number | null | undefined;
};

export type Tag<Item = unknown> = {
  key: string;
  about: string;
  values?: string[];
  boolean?: boolean;
  example?: unknown;
  of(item: Item): (string | null | undefined)[];
};

export type RecordType<Item = unknown> = {
  name: ItemType;
  measures: Measure<Item>[];
  tags: Tag<Item>[];
  /** What full-text search covers: the copy and, separately, the advertiser's name. */
  copy(item: Item): (string | null | undefined)[];
  advertiser(item: Item): string | null | undefined;
};

const day = 86_400_000;

/** Unix milliseconds, or null if absent or not a date. */
function time(text: string | null | undefined): number | null {
  const value = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(value) ? null : value;
}

/**
 * Calendar days in UTC from `startedAt` to `endDate`, or to `lastSeenAt` if there is none. Results count them in the same
 * way, so the number in a result matches the filter.
 */
function daysRunning(ad: Ad): number | null {
  const start = time(ad.startedAt);
  const end = time(ad.endDate) ?? time(ad.lastSeenAt);
  return start === null || end === null || end < start ? null : Math.floor(end / day) - Math.floor(start / day);
}

/** The longest valid domain. Without a limit, the parents of a longer text could fill the memory. */
const maxDomainLength = 253;

/** `www.example.com` is found by itself, by `example.com` and by `com`. */
function domainAndParents(domain: string | null | undefined): string[] {
  if (!domain || domain.length > maxDomainLength) return [];
  const labels = domain.split('.').filter(Boolean);
  return labels.map((_, at) => labels.slice(at).join('.'));
}

/** Videos come with still pictures, so an ad with both is a video. */
function mediaKind(media: Ad['media'] = []): string | null {
  if (media.some(({ type }) => type.includes('VID'))) return 'video';
  return media.some(({ type }) => /THUMB|IMG/.test(type)) ? 'image' : null;
}

const cardText = (cards: Ad['cards']) =>
  (cards ?? []).flatMap((card) =>
    ['title', 'body', 'link_description', 'linkDescription', 'description'].map((key) => {
      const text = card[key];
      return typeof text === 'string' ? text : null;
    }),
  );

/** Further versions of the copy and who paid for the ad, as imports from the public archive keep them. */
const archivedText = ({ headlines, bodies, linkDescriptions, bylines }: Ad) =>
  [headlines, bodies, linkDescriptions, bylines].flat().filter((text) => typeof text === 'string');

const disclaimersOf = ({ disclaimers }: Page) =>
  (Array.isArray(disclaimers) ? disclaimers : []).map((one) => (typeof one?.bylines === 'string' ? one.bylines : null));

const flag = (value: boolean | null | undefined) => [value == null ? null : String(value)];

const adType: RecordType<Ad> = {
  name: 'ads',
  copy: (ad) => [
    ...new Set([ad.headline, ad.body, ad.linkDescription, ad.productTitle, ...cardText(ad.cards), ...archivedText(ad)]),
  ],
  advertiser: (ad) => ad.page?.pageName,
  measures: [
    { key: 'startedAt', about: 'when the ad started', date: true, value: (ad) => time(ad.startedAt) },
    { key: 'lastSeenAt', about: 'when the ad was last seen', date: true, value: (ad) => time(ad.lastSeenAt) },
    { key: 'endDate', about: 'when the ad ended', date: true, value: (ad) => time(ad.endDate) },
    { key: 'daysRunning', about: 'days from startedAt to endDate, else to lastSeenAt', value: daysRunning },
    { key: 'duplicates', about: 'number of ads with the same creative', value: (ad) => ad.duplicates },
    { key: 'audienceReach', about: 'people reached', value: (ad) => ad.audienceReach },
    {
      key: 'adSpend',
      about: 'ad spend (adSpendMin to adSpendMax)',
      value: (ad) => ad.adSpendMax,
      low: (ad) => ad.adSpendMin,
    },
    {
      key: 'revenue',
      about: 'revenue (revenueMin to revenueMax)',
      value: (ad) => ad.revenueMax,
      low: (ad) => ad.revenueMin,
    },
    { key: 'trendPublic', about: 'trend score', value: (ad) => ad.trendPublic },
    { key: 'performancePublic', about: 'performance score', value: (ad) => ad.performancePublic },
    { key: 'productPrice', about: 'price of the product', value: (ad) => ad.productPrice },
    {
      key: 'productCreatedAt',
      about: 'when the product was first listed',
      date: true,
      value: (ad) => time(ad.productCreatedAt),
    },
  ],
  tags: [
    { key: 'pageId', about: 'id of the advertiser page', of: (ad) => [ad.pageId] },
    {
      key: 'countries',
      about: 'countries the ad ran in, ISO 3166 codes',
      example: ['US', 'DE'],
      of: (ad) => ad.countries ?? [],
    },
    {
      key: 'publisherPlatform',
      about: 'where the ad ran',
      example: ['FACEBOOK', 'INSTAGRAM'],
      of: (ad) => ad.publisherPlatform ?? [],
    },
    { key: 'displayFormat', about: 'format of the ad', example: ['VIDEO'], of: (ad) => [ad.displayFormat] },
    { key: 'ctaType', about: 'call to action', example: ['SHOP_NOW'], of: (ad) => [ad.ctaType] },
    {
      key: 'domain',
      about: 'domain the ad leads to, subdomains included',
      example: ['example.com'],
      of: (ad) => domainAndParents(ad.website?.siteDomain ?? ad.displayUrl),
    },
    {
      key: 'mediaKind',
      about: 'kind of media; an ad with any video counts as video',
      values: ['image', 'video'],
      of: (ad) => [mediaKind(ad.media)],
    },
    {
      key: 'isStorePlatformBestSeller',
      about: 'whether the product is a best seller of its shop',
      boolean: true,
      of: (ad) => flag(ad.isStorePlatformBestSeller),
    },
  ],
};

const pageType: RecordType<Page> = {
  name: 'pages',
  copy: (page) => [page.pageName, ...disclaimersOf(page)],
  advertiser: (page) => page.pageName,
  measures: [
    { key: 'adsAmount', about: 'number of ads', value: (page) => page.adsAmount },
    { key: 'adsTotalDuplicates', about: 'duplicates over all ads', value: (page) => page.adsTotalDuplicates },
    { key: 'averageDuplicates', about: 'duplicates per ad', value: (page) => page.averageDuplicates },
    { key: 'audienceReach', about: 'people reached', value: (page) => page.audienceReach },
    { key: 'pageLikes', about: 'likes of the page', value: (page) => page.pageLikes },
    { key: 'pageIgFollowers', about: 'Instagram followers', value: (page) => page.pageIgFollowers },
    { key: 'trend', about: 'trend score', value: (page) => page.trend },
    { key: 'performance', about: 'performance score', value: (page) => page.performance },
    { key: 'pageCreatedAt', about: 'when the page was made', date: true, value: (page) => time(page.pageCreatedAt) },
  ],
  tags: [
    { key: 'pageId', about: 'page id', of: (page) => [page.pageId] },
    { key: 'countries', about: 'countries, ISO 3166 codes', example: ['KR'], of: (page) => page.countries ?? [] },
    { key: 'languages', about: 'languages, ISO 639 codes', example: ['ko'], of: (page) => page.languages ?? [] },
    {
      key: 'technologySlugs',
      about: 'technologies of the website',
      example: ['live-chat'],
      of: (page) => page.technologySlugs ?? [],
    },
    {
      key: 'detailsEstimated',
      about: 'whether the details are estimates',
      boolean: true,
      of: (page) => flag(page.detailsEstimated),
    },
  ],
};

export const recordTypes: Record<ItemType, RecordType> = { ads: adType, pages: pageType };
