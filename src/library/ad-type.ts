import type { Ad } from '../api/schemas.ts';
import { landingDomainOf } from '../present/ad.ts';
import { runOf, timeOf } from '../present/dates.ts';
import { flag, missing, type RecordType, textsIn } from './record-type.ts';

/** The longest valid domain. Without a limit, the parents of a longer text could fill the memory. */
const maxDomainLength = 253;

/** `www.example.com` is found by itself, by `example.com` and by `com`. */
function domainAndParents(domain: string | undefined): string[] {
  if (domain === undefined || domain.length > maxDomainLength) return [];
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

/** `pt_BR` is found by `pt`, too. */
const languageAndParent = (language: string) => [language, ...language.split(/[-_]/, 1)];

/** The number of a day. */
const dayOf = (column: string) => `CAST(ads."${column}" AS INTEGER) / 86400000`;
/** A number in a field that the API does not name. */
const amount = (value: unknown) => (typeof value === 'number' ? value : null);

const parts: Pick<RecordType<Ad>, 'tags' | 'measures'> = {
  tags: [
    { key: 'pageId', about: 'id of the advertiser page', single: true, opaque: true, of: (ad) => [ad.pageId] },
    {
      key: 'advertiserExact',
      about: 'whole name of the advertiser page',
      note: 'whole names',
      single: true,
      of: (ad) => [ad.page?.pageName],
    },
    {
      key: 'countries',
      about: 'countries the ad ran in, ISO 3166 codes',
      example: ['US', 'DE'],
      of: (ad) => ad.countries ?? [],
    },
    {
      key: 'language',
      about: 'language of the ad, ISO 639-1 codes: as the record says it, else as its copy tells',
      example: ['en', 'ko'],
      of: (ad) => textsIn(ad.languages).flatMap(languageAndParent),
    },
    {
      key: 'publisherPlatform',
      about: 'where the ad ran',
      values: ['FACEBOOK', 'INSTAGRAM', 'AUDIENCE_NETWORK', 'MESSENGER', 'THREADS'],
      open: true,
      of: (ad) => ad.publisherPlatform ?? [],
    },
    {
      key: 'displayFormat',
      about:
        'format that the advertiser chose; mediaKind says what the media are, and a DCO, DPA or CAROUSEL ad may hold videos',
      note: 'the format chosen, whatever the media are',
      values: ['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO', 'DPA'],
      open: true,
      single: true,
      of: (ad) => [ad.displayFormat],
    },
    {
      key: 'mediaKind',
      about:
        'what the media of the record hold, whatever displayFormat says; with any video it is video, and a record without media has none',
      note: 'what the media hold; any video makes it video',
      values: ['image', 'video'],
      single: true,
      of: (ad) => [mediaKind(ad.media)],
    },
    {
      key: 'ctaType',
      about: 'call to action',
      values: ['LEARN_MORE', 'SHOP_NOW', 'SIGN_UP', 'DOWNLOAD', 'INSTALL_MOBILE_APP', 'ORDER_NOW', 'GET_OFFER'],
      open: true,
      single: true,
      of: (ad) => [ad.ctaType],
    },
    {
      key: 'domain',
      about: 'domain the ad leads to, subdomains included',
      note: 'and subdomains',
      example: ['example.com'],
      countable: (value) => value.includes('.'),
      of: (ad) => [textsIn(ad.website?.siteDomain)[0], landingDomainOf(ad)].flatMap(domainAndParents),
    },
    {
      key: 'currency',
      about: 'currency of the spend, ISO 4217 codes',
      example: ['EUR'],
      single: true,
      of: (ad) => textsIn(ad.currency),
    },
    {
      key: 'isStorePlatformBestSeller',
      about: 'whether the product is a best seller of its shop',
      boolean: true,
      single: true,
      of: (ad) => flag(ad.isStorePlatformBestSeller),
    },
  ],
  measures: [
    { key: 'startedAt', about: 'when the ad started', date: true, value: (ad) => timeOf(ad.startedAt) },
    { key: 'lastSeenAt', about: 'when the ad was last seen', date: true, value: (ad) => timeOf(ad.lastSeenAt) },
    { key: 'endDate', about: 'when the ad ended', date: true, value: (ad) => timeOf(ad.endDate) },
    {
      key: 'daysRunning',
      about: 'days from startedAt to endDate if past, else lastSeenAt; 0 on the same day',
      value: (ad) => runOf(ad, Number.POSITIVE_INFINITY).daysRunning,
      /** An end that is still to come does not count yet. */
      sql: (asOf) =>
        `CASE WHEN ads."endDate" > ${asOf} THEN nullif(max(${dayOf('lastSeenAt')} - ${dayOf('startedAt')}, -1), -1) ELSE ads."daysRunning" END`,
    },
    { key: 'duplicates', about: 'copies of the ad, itself included', value: (ad) => ad.duplicates },
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
    {
      key: 'impressions',
      about: 'impressions (impressionsMin to impressionsMax)',
      value: (ad) => amount(ad.impressionsMax),
      low: (ad) => amount(ad.impressionsMin),
    },
    {
      key: 'audienceSize',
      about: 'size of the audience aimed at (audienceSizeMin to audienceSizeMax)',
      value: (ad) => amount(ad.audienceSizeMax),
      low: (ad) => amount(ad.audienceSizeMin),
    },
    { key: 'trendPublic', about: 'trend score', value: (ad) => ad.trendPublic },
    { key: 'performancePublic', about: 'performance score', value: (ad) => ad.performancePublic },
    { key: 'productPrice', about: 'price of the product', value: (ad) => ad.productPrice },
    {
      key: 'productCreatedAt',
      about: 'when the product was first listed',
      date: true,
      value: (ad) => timeOf(ad.productCreatedAt),
    },
  ],
};

/** Further versions of the copy, as imports from the public archive keep them. */
const archivedText = ({ headlines, bodies, linkDescriptions }: Ad) =>
  [headlines, bodies, linkDescriptions].flatMap(textsIn);

const bylinesOf = (ad: Ad) => textsIn(ad.bylines);

export const adType: RecordType<Ad> = {
  name: 'ads',
  texts: {
    copy: (ad) => [
      ...new Set([
        ad.headline,
        ad.body,
        ad.linkDescription,
        ad.productTitle,
        ...cardText(ad.cards),
        ...archivedText(ad),
      ]),
    ],
    advertiser: (ad) => [ad.page?.pageName],
    bylines: bylinesOf,
  },
  textFilters: [
    {
      key: 'query',
      about: 'the copy, headline, product, cards, advertiser name or bylines',
      columns: ['copy', 'advertiser', 'bylines'],
      fields: ['headline', 'body', 'linkDescription', 'productTitle', 'cards', 'pageName', 'bylines'],
      example: 'summer sale -shoes',
    },
    { key: 'advertiser', about: 'the name of the advertiser page', columns: ['advertiser'] },
    { key: 'bylines', about: 'the line that says who paid for the ad', columns: ['bylines'] },
  ],
  ...parts,
  tags: [
    ...parts.tags,
    missing(parts, { headline: (ad) => ad.headline, body: (ad) => ad.body, bylines: (ad) => bylinesOf(ad)[0] }, [
      'active',
    ]),
  ],
};
