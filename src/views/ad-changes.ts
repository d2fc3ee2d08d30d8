import { readCardField, readCardLink } from './ad-media.ts';
import { parseTime } from './dates.ts';
import type { adFields } from './fields.ts';
import { parseLanding } from './landing.ts';
import { sanitizeLine } from './safe-text.ts';
import { parseDomain, parseUrl } from './urls.ts';
import { type Fields, isNumber, isObject, readNumber, readObjects } from './view.ts';

/**
 * The fields whose change counts as a change of the ad: its creative (texts, media, cards), its destination, its call
 * to action, its format, its countries and its end. Each field is reduced to one text. In this text, the order of
 * lists, the format of dates, invisible characters, spaces, tracking parameters, and the hosts and signatures of media
 * URLs make no difference. Two versions of an ad have the same content if all of these texts are equal.
 */
const contentFields = {
  headline: (ad) => normalizeText(ad.headline),
  headlines: (ad) => normalizeTexts(ad.headlines),
  body: (ad) => normalizeText(ad.body),
  bodies: (ad) => normalizeTexts(ad.bodies),
  linkDescription: (ad) => normalizeText(ad.linkDescription),
  linkDescriptions: (ad) => normalizeTexts(ad.linkDescriptions),
  offerLink: (ad) => normalizeLink(ad.offerLink),
  displayUrl: (ad) => parseDomain(ad.displayUrl) ?? normalizeText(ad.displayUrl),
  website: (ad) => readSiteWithoutLink(ad),
  ctaType: (ad) => toUpperCase(normalizeText(ad.ctaType)),
  displayFormat: (ad) => toUpperCase(normalizeText(ad.displayFormat)),
  countries: (ad) => toUpperCase(normalizeTexts(ad.countries)),
  endDate: (ad) => normalizeDate(ad.endDate),
  cards: (ad) => joinSorted(readObjects(ad.cards).map((card) => JSON.stringify(listCardContent(card)))),
  media: (ad) =>
    joinSorted(
      readObjects(ad.media)
        .filter(isAdMedia)
        .map(({ url }) => getMediaPath(url)),
    ),
} as const satisfies Record<string, (ad: Fields) => string | null>;

type ContentField = keyof typeof contentFields;
type AdContent = Record<ContentField, string | null>;

/** Returns the content of an ad, one comparable text for each field. */
export function extractContent(ad: object): AdContent {
  const content: Partial<AdContent> = {};
  for (const name of contentNames) content[name] = contentFields[name](ad as Fields);
  return content as AdContent;
}

const contentNames = Object.keys(contentFields) as ContentField[];

/** A field that changed between two versions of an ad. */
export interface Change {
  field: string;
  from: ChangedValue;
  to: ChangedValue;
}

/**
 * The value of a changed field: null if a version has no value, undefined for a value that cannot be shown in a line of
 * text, such as media.
 */
export type ChangedValue = string | null | undefined;

/** Returns the content that differs between two versions of an ad, in the order of `contentFields`. */
export function findChanges(before: object, after: object): Change[] {
  const [old, now] = [extractContent(before), extractContent(after)];
  return contentNames
    .filter((field) => old[field] !== now[field])
    .map((field) => ({
      field,
      from: formatValue((before as Fields)[field]),
      to: formatValue((after as Fields)[field]),
    }));
}

function formatValue(value: unknown): ChangedValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return normalizeText(value) === null ? null : value;
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((part) => typeof part === 'string');
  if (texts.length < value.length) return undefined;
  return [...new Set(texts)].sort().join(', ') || null;
}

/**
 * The figures that the service counts or estimates for an ad. They change with every answer while the ad stays the
 * same.
 */
const counters = {
  duplicates: ['duplicates'],
  reach: ['audienceReach'],
  spend: ['adSpendMin', 'adSpendMax'],
  revenue: ['revenueMin', 'revenueMax'],
  trend: ['trendPublic'],
  performance: ['performancePublic'],
} as const satisfies Record<string, readonly (keyof typeof adFields)[]>;

/** The name of a counter. */
export type Counter = keyof typeof counters;
/** The values of the counters that an ad has. */
export type CounterValues = Partial<Record<Counter, number>>;

/** The names of all counters. */
export const counterNames = Object.keys(counters) as Counter[];

/** Returns the counters of an ad. A range counts as the sum of its bounds, which rises when the range rises. */
export function readCounters(ad: object): CounterValues {
  const counts: CounterValues = {};
  for (const name of counterNames) {
    const values = counters[name].flatMap((field) => readNumber((ad as Fields)[field]) ?? []);
    if (values.length === counters[name].length) counts[name] = values.reduce((sum, value) => sum + value, 0);
  }
  return counts;
}

function normalizeText(value: unknown): string | null {
  if (isNumber(value)) return String(value);
  return typeof value === 'string' ? sanitizeLine(value).normalize('NFC') || null : null;
}

const normalizeTexts = (values: unknown): string | null =>
  Array.isArray(values) ? joinSorted(values.map(normalizeText)) : normalizeText(values);

/** Joins texts into one text. Each text appears once, in sorted order. */
function joinSorted(texts: readonly (string | null)[]): string | null {
  const different = new Set(texts.filter((text) => text !== null));
  return different.size > 0 ? JSON.stringify([...different].sort()) : null;
}

/** Returns a constant such as `SHOP_NOW` or a country code in capitals, because case makes no difference. */
const toUpperCase = (text: string | null): string | null => text?.toUpperCase() ?? null;

function normalizeDate(date: unknown): string | null {
  const time = parseTime(date);
  return time === undefined ? normalizeText(date) : String(time);
}

const normalizeLink = (link: unknown): string | null => parseLanding({ offerLink: link }).page ?? normalizeText(link);

/**
 * Returns the website that the service states, but only for an ad without a link. With a link, the website follows from
 * the link and would count as a second change.
 */
function readSiteWithoutLink(ad: Fields): string | null {
  const hasLink = [ad.offerLink, ...readObjects(ad.cards).map(readCardLink)].some(
    (link) => normalizeLink(link) !== null,
  );
  if (hasLink || !isObject(ad.website)) return null;
  return parseDomain(ad.website.siteDomain) ?? normalizeText(ad.website.siteDomain);
}

const listCardContent = (card: Fields) => [
  normalizeText(readCardField(card, 'title')),
  normalizeText(readCardField(card, 'body')),
  normalizeText(readCardField(card, 'linkDescription')),
  normalizeText(readCardField(card, 'ctaType')),
  normalizeLink(readCardLink(card)),
  getMediaPath(readCardField(card, 'picture') ?? readCardField(card, 'still')),
  getMediaPath(readCardField(card, 'video')),
];

/** Returns whether an asset belongs to the ad itself. The profile picture of the advertiser (`PA_PP`) does not. */
const isAdMedia = ({ type }: Fields): boolean => !(typeof type === 'string' && /^PA_/i.test(type));

/**
 * Returns the path of a media URL. Ad networks serve the same file from many hosts and sign the query again in each
 * answer, so only the path identifies the file.
 */
function getMediaPath(url: unknown): string | null {
  const parsedUrl = parseUrl(url);
  if (parsedUrl !== undefined) return parsedUrl.pathname === '/' ? parsedUrl.hostname : parsedUrl.pathname;
  return typeof url === 'string' ? normalizeText(url.replace(/[?#].*$/s, '')) : null;
}
