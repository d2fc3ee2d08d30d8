import type * as z from 'zod';
import { Ad, Page } from '../../api/schemas.ts';
import { isSafePathId, maxIdLength } from '../../api/url.ts';
import { countDays, isExistingDay, parseTime } from '../../views/dates.ts';
import { isUuid } from '../../views/safe-text.ts';
import { maxNestingDepth, quoteValue } from '../service/request.ts';
import { apiFormat } from './formats/api.ts';
import { datasetExportFormat } from './formats/dataset-export.ts';
import type { ImportFormat, JsonObject } from './formats/import-format.ts';
import { ownAdsFormat } from './formats/own-ads.ts';
import type { SourceRecord } from './formats/source-record.ts';
import { maxRecordLength, tooLongProblem } from './sources/source-entry.ts';
import { hasAccessToken, removeAccessTokensDeep } from './values/access-tokens.ts';
import type { ColumnValueParser } from './values/column-value-parser.ts';
import { resolveCurrency } from './values/currencies.ts';

interface ValidationOptions {
  format: ImportFormat;
  /** The original text of the record. Only set if the record is a whole line of the source. */
  originalText: string | undefined;
  parser: ColumnValueParser;
}

/** A validated ad or advertiser page, and the JSON text to store for it. */
type ValidRecord = { json: string } & ({ ad: Ad; page?: undefined } | { page: Page; ad?: undefined });

/**
 * Converts a record to an ad or an advertiser page, and validates it. If the conversion changes nothing, the library
 * stores the original text of the record as JSON.
 * @throws Error that explains the problem. If the problem concerns one key, the message starts with that key.
 */
export function validateRecord(record: SourceRecord, { format, originalText, parser }: ValidationOptions): ValidRecord {
  const recordObject = record.toObject();
  const convertedPage = format.toPage?.(record, parser);
  if (convertedPage) {
    const page = applyStatedCurrency(removeAccessTokensFromItem(convertedPage), true, parser);
    return { page: validatePage(page), json: toStoredJson(page, page === recordObject ? originalText : undefined) };
  }
  const convertedAd = removeAccessTokensFromItem(format.toAd(record, parser));
  const validAd = validateAd(applyStatedCurrency(convertedAd, format === ownAdsFormat, parser), format, parser);
  // Ads in the format of the API are stored unchanged, even if `lastSeenAt` is in the future.
  const adWithCheckedDates = checkDateOrder(validAd, format, parser);
  const ad = format === apiFormat ? adWithCheckedDates : limitLastSeenAt(adWithCheckedDates, parser);
  return { ad, json: toStoredJson(ad, (ad as object) === recordObject ? originalText : undefined) };
}

/** The problem that the import report states for a record that is nested too deeply. */
export const tooDeepProblem = `nested deeper than ${maxNestingDepth} levels`;

/** The problem that the import report states for a record that matches no known format. */
export const unknownFormatProblem =
  'neither an ad (id) nor a page (pageId, pageName) nor an ad of an ad library (Meta: ad_archive_id, Google: creative_id, TikTok: first_shown_date, LinkedIn: adUrl); "library formats" lists the formats';

/**
 * Removes access tokens from an ad or page. Returns the same object if it contains no tokens, so that the caller can
 * detect that nothing changed.
 */
function removeAccessTokensFromItem<Value extends object>(item: Value): Value {
  return hasAccessToken(item) ? (removeAccessTokensDeep(item) as Value) : item;
}

function toStoredJson(item: object, json = JSON.stringify(item)): string {
  if (json.length > maxRecordLength) throw new Error(tooLongProblem);
  return json;
}

/**
 * Formats whose records have the fields of the API themselves. In all other formats, a key that no rule reads may have
 * the name of such a field by accident, e.g. the `website` key with a URL.
 */
const formatsWithApiFields = [apiFormat, datasetExportFormat, ownAdsFormat];

function validateAd(convertedAd: JsonObject, format: ImportFormat, parser: ColumnValueParser): Ad {
  const ad = formatsWithApiFields.includes(format)
    ? validateWithSchema(Ad, convertedAd)
    : omitInvalidFields(convertedAd, parser);
  if (!isUuid(ad.id)) throw new Error(`id: an ad's id is a UUID; got "${ad.id.slice(0, 50)}"`);
  if (ad.pageId) validatePageId(ad.pageId);
  return ad;
}

function validatePage(value: object): Page {
  const page = validateWithSchema(Page, value);
  validatePageId(page.pageId);
  return page;
}

/** Rejects a page id that cannot be part of an API URL, because clients could never request this page. */
function validatePageId(pageId: string): void {
  if (isSafePathId(pageId) && !/\p{Cc}/u.test(pageId)) return;
  throw new Error(
    `pageId: not a valid page id; a page id has 1 to ${maxIdLength} characters, no control characters, and is not "." or ".."`,
  );
}

/**
 * Replaces a `lastSeenAt` in the future with the time of the import, because nobody can have seen the ad after the
 * import.
 */
function limitLastSeenAt(ad: Ad, { importTimeMs, valueErrors }: ColumnValueParser): Ad {
  const lastSeenAtMs = parseTime(ad.lastSeenAt);
  if (lastSeenAtMs === undefined || lastSeenAtMs <= importTimeMs) return ad;
  valueErrors.push(
    new Error(`lastSeenAt: ${quoteValue(ad.lastSeenAt)} is after the import, so the time of the import is stored`),
  );
  return { ...ad, lastSeenAt: new Date(importTimeMs).toISOString() };
}

/**
 * Sets the currency of an item to the currency that its amounts state. Returns the same object if nothing changes.
 * @param isStrict true to reject the record if its amounts contradict its currency
 * @throws Error that explains the contradiction, if `isStrict` is true
 */
function applyStatedCurrency(convertedItem: JsonObject, isStrict: boolean, parser: ColumnValueParser): JsonObject {
  const { item, problem, isContradictory } = resolveCurrency(convertedItem, parser.amounts);
  if (problem === undefined) return item;
  if (isStrict && isContradictory) throw new Error(problem);
  parser.addValueError(new Error(problem));
  return item;
}

/**
 * Checks that an ad does not end before it starts. If it does, either date may be wrong, so both dates are moved from
 * their fields to `contradictoryDates`.
 * @throws Error that names both dates, if the format is a table written by the user
 */
function checkDateOrder(ad: Ad, format: ImportFormat, parser: ColumnValueParser): Ad {
  const startedAtMs = parseTime(ad.startedAt);
  if (startedAtMs === undefined) return ad;
  const fieldsBeforeStart = (['endDate', 'lastSeenAt'] as const).filter((field) => {
    const timeMs = parseTime(ad[field]);
    // Accept a `lastSeenAt` before the start if the start is in the future, because such an ad may have been seen
    // already.
    return (
      timeMs !== undefined &&
      countDays(startedAtMs, timeMs) < 0 &&
      (field === 'endDate' || startedAtMs <= parser.importTimeMs)
    );
  });
  const [field] = fieldsBeforeStart;
  if (field === undefined) return ad;
  const problem = `${field}: ${formatDay(ad[field])} is before the start ${formatDay(ad.startedAt)}`;
  if (format === ownAdsFormat) throw new Error(problem);
  // Ads in the format of the API are stored unchanged, so only report the contradiction.
  if (format === apiFormat) {
    parser.addValueError(new Error(problem));
    return ad;
  }
  parser.addValueError(new Error(`${problem}, so neither date is used; both are kept in contradictoryDates`));
  const contradictoryDates = Object.fromEntries(
    ['startedAt' as const, ...fieldsBeforeStart].map((name) => [name, ad[name]]),
  );
  const { startedAt: _, ...adWithoutStart } = ad;
  const otherFields = Object.entries(adWithoutStart).filter(([name]) => !fieldsBeforeStart.includes(name as never));
  return { ...(Object.fromEntries(otherFields) as Ad), contradictoryDates };
}

const formatDay = (date: unknown): string => String(date).slice(0, 10);

const dateFields = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt', 'pageCreatedAt', 'createdAt'];
const isoDatePattern = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/i;
/** Fields whose numbers must not be negative. */
const nonNegativeFields = [
  ...['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'],
  ...['impressionsMin', 'impressionsMax', 'audienceSizeMin', 'audienceSizeMax', 'adsAmount', 'adsTotalDuplicates'],
  ...['averageDuplicates', 'pageLikes', 'pageIgFollowers'],
];

/**
 * Validates an ad or page against a schema. Returns the same object and not the copy that the schema creates, because
 * `validateRecord` checks whether the object has changed.
 * @throws Error that lists the problems
 */
function validateWithSchema<Item extends Record<string, unknown>>(
  schema: z.ZodType<Item>,
  convertedItem: object,
): Item {
  const problems = findFieldProblems(schema, convertedItem as JsonObject);
  if (problems.length === 0) return convertedItem as Item;
  throw new Error(
    problems
      .slice(0, 5)
      .map(({ message }) => message)
      .join('; '),
  );
}

/** Returns the problems of an ad or page. `message` starts with the field that has the problem. */
function findFieldProblems(schema: z.ZodType, item: JsonObject): { field: string; message: string }[] {
  const issues = schema.safeParse(item).error?.issues ?? [];
  return [
    ...issues.map(({ path, message }) => ({ field: String(path[0]), message: `${path.join('.')}: ${message}` })),
    ...dateFields.flatMap((field) => {
      const date = item[field];
      if (typeof date !== 'string' || isIsoDate(date)) return [];
      return { field, message: `${field}: not an ISO 8601 date-time; got ${quoteValue(date)}` };
    }),
    ...nonNegativeFields.flatMap((field) => {
      const number = item[field];
      return typeof number === 'number' && number < 0 ? { field, message: `${field}: ${number} is below 0` } : [];
    }),
  ];
}

/**
 * Omits the fields of an ad that have an invalid value, and reports them. Returns the same object if all fields are
 * valid. The formats compute the `id` field, so it is always valid.
 */
function omitInvalidFields(ad: JsonObject, parser: ColumnValueParser): Ad {
  const problems = findFieldProblems(Ad, ad);
  if (problems.length === 0) return ad as Ad;
  for (const { field, message } of problems)
    parser.addValueError(new Error(`${message}; the field ${field} is left out`));
  const invalidFields = new Set(problems.map(({ field }) => field));
  return Object.fromEntries(Object.entries(ad).filter(([field]) => !invalidFields.has(field))) as Ad;
}

function isIsoDate(text: string): boolean {
  const day = isoDatePattern.exec(text.trim())?.[1];
  return day !== undefined && isExistingDay(day) && parseTime(text) !== undefined;
}
