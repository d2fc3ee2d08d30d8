import { readCardField, readCardLink } from './ad-media.ts';
import { parseTime } from './dates.ts';
import type { adFields } from './fields.ts';
import { parseLandingPage } from './landing.ts';
import { getMediaPath } from './media-urls.ts';
import { normalizeLine } from './safe-text.ts';
import { parseDomain } from './urls.ts';
import { isFiniteNumber, isObject, readNumber, readObjects, type UntypedFields } from './view.ts';

/**
 * Functions that read the content of an ad, such as its texts, links and media. Two versions of an ad have the same
 * content if all these functions return the same strings for both.
 *
 * The functions normalize the strings. The order of lists, date formats, invisible characters, white space, tracking
 * parameters, and the hosts and signatures of media URLs therefore make no difference.
 */
const contentFieldReaders = {
  headline: (ad) => normalizeText(ad.headline),
  headlines: (ad) => normalizeTexts(ad.headlines),
  body: (ad) => normalizeText(ad.body),
  bodies: (ad) => normalizeTexts(ad.bodies),
  linkDescription: (ad) => normalizeText(ad.linkDescription),
  linkDescriptions: (ad) => normalizeTexts(ad.linkDescriptions),
  productTitle: (ad) => normalizeText(ad.productTitle),
  offerLink: (ad) => normalizeLink(ad.offerLink),
  displayUrl: (ad) => parseDomain(ad.displayUrl) ?? normalizeText(ad.displayUrl),
  website: (ad) => readWebsiteWithoutLink(ad),
  ctaType: (ad) => convertToUpperCase(normalizeText(ad.ctaType)),
  displayFormat: (ad) => convertToUpperCase(normalizeText(ad.displayFormat)),
  countries: (ad) => convertToUpperCase(normalizeTexts(ad.countries)),
  endDate: (ad) => normalizeDate(ad.endDate),
  cards: (ad) => joinDistinctTexts(readObjects(ad.cards).map((card) => JSON.stringify(listCardContent(card)))),
  media: (ad) =>
    joinDistinctTexts(
      readObjects(ad.media)
        .filter(isAdMedia)
        .map(({ url }) => getMediaPath(url)),
    ),
} as const satisfies Record<string, (ad: UntypedFields) => string | null>;

/** The name of a field with content of an ad, such as `headline`. */
export type ContentField = keyof typeof contentFieldReaders;
type AdContent = Record<ContentField, string | null>;

/** Returns the content of an ad as one string for each field, so that two versions of the ad can be compared. */
export function extractContent(ad: object): AdContent {
  const content: Partial<AdContent> = {};
  for (const fieldName of contentFieldNames) content[fieldName] = contentFieldReaders[fieldName](ad as UntypedFields);
  return content as AdContent;
}

/** Returns the content of one field of an ad as a string, or null if the ad has no such content. */
export const extractFieldContent = (ad: object, fieldName: ContentField): string | null =>
  contentFieldReaders[fieldName](ad as UntypedFields);

const contentFieldNames = Object.keys(contentFieldReaders) as ContentField[];

/** A field that differs between two versions of an ad, with its old and its new value. */
export interface FieldChange {
  field: string;
  oldValue: ChangedFieldValue;
  newValue: ChangedFieldValue;
}

/**
 * The value of a changed field in one version of an ad. Null if this version has no value. Undefined if the value
 * cannot be shown as a line of text, e.g. an image.
 */
export type ChangedFieldValue = string | null | undefined;

/**
 * Returns the fields that differ between two versions of an ad, in the order of `contentFieldReaders`. Ignores
 * differences that do not change the content, such as the order of lists.
 */
export function findChanges(earlierAd: object, laterAd: object): FieldChange[] {
  const [oldContent, newContent] = [extractContent(earlierAd), extractContent(laterAd)];
  return contentFieldNames
    .filter((field) => oldContent[field] !== newContent[field])
    .map((field) => ({
      field,
      oldValue: formatValue((earlierAd as UntypedFields)[field]),
      newValue: formatValue((laterAd as UntypedFields)[field]),
    }));
}

function formatValue(value: unknown): ChangedFieldValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return normalizeText(value) === null ? null : value;
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((listItem) => typeof listItem === 'string');
  if (texts.length < value.length) return undefined;
  return [...new Set(texts)].sort().join(', ') || null;
}

/**
 * The counters of an ad, such as its reach, with the API fields that contain them. The service counts or estimates
 * these numbers and updates them all the time, so they do not count as content of the ad.
 */
const counterFields = {
  duplicates: ['duplicates'],
  reach: ['audienceReach'],
  spend: ['adSpendMin', 'adSpendMax'],
  revenue: ['revenueMin', 'revenueMax'],
  trend: ['trendPublic'],
  performance: ['performancePublic'],
} as const satisfies Record<string, readonly (keyof typeof adFields)[]>;

/** The name of a counter, e.g. `reach`. */
export type CounterName = keyof typeof counterFields;
/** The counters of an ad, e.g. `{ reach: 800000 }`. A counter is missing if the service sent no number for it. */
export type CounterValues = Partial<Record<CounterName, number>>;

/** The names of all counters. */
export const counterNames = Object.keys(counterFields) as CounterName[];

/**
 * Reads the counters of an ad, e.g. `reach` and `spend`. If the service estimates a range, such as `adSpendMin` to
 * `adSpendMax`, the counter is the sum of both bounds. The counter therefore rises when either bound rises.
 */
export function readCounters(ad: object): CounterValues {
  const counters: CounterValues = {};
  for (const counterName of counterNames) {
    const fieldValues = counterFields[counterName].flatMap((field) => readNumber((ad as UntypedFields)[field]) ?? []);
    if (fieldValues.length === counterFields[counterName].length)
      counters[counterName] = fieldValues.reduce((sum, value) => sum + value, 0);
  }
  return counters;
}

function normalizeText(value: unknown): string | null {
  if (isFiniteNumber(value)) return String(value);
  return typeof value === 'string' ? normalizeLine(value) || null : null;
}

const normalizeTexts = (values: unknown): string | null =>
  Array.isArray(values) ? joinDistinctTexts(values.map(normalizeText)) : normalizeText(values);

/**
 * Combines a list of texts into one string for comparison. Two lists with the same texts result in the same string,
 * regardless of order and repetitions.
 */
function joinDistinctTexts(texts: readonly (string | null)[]): string | null {
  const distinctTexts = new Set(texts.filter((text) => text !== null));
  return distinctTexts.size > 0 ? JSON.stringify([...distinctTexts].sort()) : null;
}

/**
 * Converts a constant, such as `SHOP_NOW` or a country code, to upper case, so that a comparison ignores differences in
 * case.
 */
const convertToUpperCase = (text: string | null): string | null => text?.toUpperCase() ?? null;

function normalizeDate(date: unknown): string | null {
  const time = parseTime(date);
  return time === undefined ? normalizeText(date) : String(time);
}

const normalizeLink = (link: unknown): string | null =>
  parseLandingPage({ offerLink: link }).landingPage ?? normalizeText(link);

/**
 * Returns the website of an ad that has no link. Returns null for an ad with a link. A new link usually also changes
 * the website, which would otherwise count as a second change.
 */
function readWebsiteWithoutLink(ad: UntypedFields): string | null {
  const hasAnyLink = [ad.offerLink, ...readObjects(ad.cards).map(readCardLink)].some(
    (link) => normalizeLink(link) !== null,
  );
  if (hasAnyLink || !isObject(ad.website)) return null;
  return parseDomain(ad.website.siteDomain) ?? normalizeText(ad.website.siteDomain);
}

const listCardContent = (card: UntypedFields) => [
  normalizeText(readCardField(card, 'title')),
  normalizeText(readCardField(card, 'body')),
  normalizeText(readCardField(card, 'linkDescription')),
  normalizeText(readCardField(card, 'ctaType')),
  normalizeLink(readCardLink(card)),
  getMediaPath(readCardField(card, 'picture') ?? readCardField(card, 'still')),
  getMediaPath(readCardField(card, 'video')),
];

/**
 * Returns false for the advertiser's profile picture (type `PA_PP`), which is not part of the ad. Returns true for all
 * other media files.
 */
const isAdMedia = ({ type }: UntypedFields): boolean => !(typeof type === 'string' && /^PA_/i.test(type));
