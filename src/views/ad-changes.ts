import { readCardField, readCardLink } from './ad-media.ts';
import { parseDomain, parseUrl } from './addresses.ts';
import { parseTime } from './dates.ts';
import type { adFields } from './fields.ts';
import { parseLanding } from './landing.ts';
import { sanitizeLine } from './safe-text.ts';
import { type Fields, isNumber, isObject, readNumber, readObjects } from './view.ts';

/**
 * What counts as a change of an ad: its creative (copy, media, cards), its destination, its call to action, its format,
 * its countries or its end. Each field is reduced to one text, in which the order of lists, the spelling of dates,
 * invisible characters, spaces, tracking parameters and the hosts and signatures of media addresses make no difference.
 * Two versions of an ad have the same content if all of these texts are equal.
 */
const contentFields = {
  headline: (ad) => plainText(ad.headline),
  headlines: (ad) => plainTexts(ad.headlines),
  body: (ad) => plainText(ad.body),
  bodies: (ad) => plainTexts(ad.bodies),
  linkDescription: (ad) => plainText(ad.linkDescription),
  linkDescriptions: (ad) => plainTexts(ad.linkDescriptions),
  offerLink: (ad) => destinationOf(ad.offerLink),
  displayUrl: (ad) => parseDomain(ad.displayUrl) ?? plainText(ad.displayUrl),
  website: (ad) => siteWithoutLink(ad),
  ctaType: (ad) => inCapitals(plainText(ad.ctaType)),
  displayFormat: (ad) => inCapitals(plainText(ad.displayFormat)),
  countries: (ad) => inCapitals(plainTexts(ad.countries)),
  endDate: (ad) => momentOf(ad.endDate),
  cards: (ad) => joined(readObjects(ad.cards).map((card) => JSON.stringify(cardContent(card)))),
  media: (ad) =>
    joined(
      readObjects(ad.media)
        .filter(isOfAd)
        .map(({ url }) => mediaPath(url)),
    ),
} as const satisfies Record<string, (ad: Fields) => string | null>;

type ContentField = keyof typeof contentFields;
type AdContent = Record<ContentField, string | null>;

export function extractContent(ad: object): AdContent {
  const content: Partial<AdContent> = {};
  for (const name of contentNames) content[name] = contentFields[name](ad as Fields);
  return content as AdContent;
}

const contentNames = Object.keys(contentFields) as ContentField[];

export interface Change {
  field: string;
  from: ChangedValue;
  to: ChangedValue;
}

/** Null where a version has no value. Undefined for a value that no line of text can show, such as media. */
export type ChangedValue = string | null | undefined;

/** Returns the content that differs between two versions of an ad, in the order of `contentFields`. */
export function findChanges(before: object, after: object): Change[] {
  const [old, now] = [extractContent(before), extractContent(after)];
  return contentNames
    .filter((field) => old[field] !== now[field])
    .map((field) => ({
      field,
      from: shownValue((before as Fields)[field]),
      to: shownValue((after as Fields)[field]),
    }));
}

function shownValue(value: unknown): ChangedValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return plainText(value) === null ? null : value;
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((part) => typeof part === 'string');
  if (texts.length < value.length) return undefined;
  return [...new Set(texts)].sort().join(', ') || null;
}

/** What the service counts or estimates for an ad. These figures change with every answer, while the ad stays as it is. */
const counters = {
  duplicates: ['duplicates'],
  reach: ['audienceReach'],
  spend: ['adSpendMin', 'adSpendMax'],
  revenue: ['revenueMin', 'revenueMax'],
  trend: ['trendPublic'],
  performance: ['performancePublic'],
} as const satisfies Record<string, readonly (keyof typeof adFields)[]>;

export type Counter = keyof typeof counters;
export type CounterValues = Partial<Record<Counter, number>>;

export const counterNames = Object.keys(counters) as Counter[];

/** Returns the counters that an ad has as numbers. A range counts as the sum of its bounds, which rises with the range. */
export function readCounters(ad: object): CounterValues {
  const counts: CounterValues = {};
  for (const name of counterNames) {
    const values = counters[name].flatMap((field) => readNumber((ad as Fields)[field]) ?? []);
    if (values.length === counters[name].length) counts[name] = values.reduce((sum, value) => sum + value, 0);
  }
  return counts;
}

function plainText(value: unknown): string | null {
  if (isNumber(value)) return String(value);
  return typeof value === 'string' ? sanitizeLine(value).normalize('NFC') || null : null;
}

const plainTexts = (values: unknown): string | null =>
  Array.isArray(values) ? joined(values.map(plainText)) : plainText(values);

/** The texts as one, each once and in one order. */
function joined(texts: readonly (string | null)[]): string | null {
  const different = new Set(texts.filter((text) => text !== null));
  return different.size > 0 ? JSON.stringify([...different].sort()) : null;
}

/** Constants such as `SHOP_NOW` and country codes are the same in any case. */
const inCapitals = (text: string | null): string | null => text?.toUpperCase() ?? null;

function momentOf(date: unknown): string | null {
  const time = parseTime(date);
  return time === undefined ? plainText(date) : String(time);
}

const destinationOf = (link: unknown): string | null => parseLanding({ offerLink: link }).page ?? plainText(link);

/** The site that the service names, if the ad has no link: the site of a link follows from the link. */
function siteWithoutLink(ad: Fields): string | null {
  const hasLink = [ad.offerLink, ...readObjects(ad.cards).map(readCardLink)].some(
    (link) => destinationOf(link) !== null,
  );
  if (hasLink || !isObject(ad.website)) return null;
  return parseDomain(ad.website.siteDomain) ?? plainText(ad.website.siteDomain);
}

const cardContent = (card: Fields) => [
  plainText(readCardField(card, 'title')),
  plainText(readCardField(card, 'body')),
  plainText(readCardField(card, 'linkDescription')),
  plainText(readCardField(card, 'ctaType')),
  destinationOf(readCardLink(card)),
  mediaPath(readCardField(card, 'picture') ?? readCardField(card, 'still')),
  mediaPath(readCardField(card, 'video')),
];

/** The portrait of the advertiser (`PA_PP`) comes with the media of an ad. */
const isOfAd = ({ type }: Fields): boolean => !(typeof type === 'string' && /^PA_/i.test(type));

/**
 * Returns the path of a media address. A network serves the same file from many hosts, and each answer signs the address
 * anew in its query.
 */
function mediaPath(address: unknown): string | null {
  const url = parseUrl(address);
  if (url !== undefined) return url.pathname === '/' ? url.hostname : url.pathname;
  return typeof address === 'string' ? plainText(address.replace(/[?#].*$/s, '')) : null;
}
