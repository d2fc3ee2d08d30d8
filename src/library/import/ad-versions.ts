import { type ContentField, extractContent, extractFieldContent } from '../../views/ad-changes.ts';
import { parseTime } from '../../views/dates.ts';
import { isObject, readObjects, type UntypedFields } from '../../views/view.ts';
import type { JsonObject } from './formats/import-format.ts';
import { amountFields } from './values/currencies.ts';

/**
 * An earlier value of an ad's field, e.g. the old headline. The library stores the value in the ad's history when a
 * newer import changes the field.
 */
interface EarlierValue {
  value: unknown;
  /**
   * The time at which the ad was last seen with this value, in ISO 8601. Undefined if the imported file does not state
   * this time.
   */
  lastSeenAt?: string;
  /** The time of the import that replaced this value, in ISO 8601. */
  replacedAt: string;
}

/**
 * The maximum number of earlier values per field in the history of an ad. When a field has more earlier values, the
 * oldest ones are dropped.
 */
const maxEarlierValues = 20;
/**
 * The maximum length of an earlier value as JSON, in characters. For a longer value, such as a long list of media, the
 * history only records that the value changed.
 */
const maxEarlierValueChars = 10_000;

/**
 * Returns true if the imported version of an ad was last seen before the stored version. Returns false if either date
 * is unknown.
 */
export function isOlderVersion(ad: JsonObject, storedAd: JsonObject): boolean {
  const [lastSeenAtMs, storedLastSeenAtMs] = [readLastSeenAt(ad), readLastSeenAt(storedAd)];
  return lastSeenAtMs !== undefined && storedLastSeenAtMs !== undefined && lastSeenAtMs < storedLastSeenAtMs;
}

/**
 * Returns the time at which an ad was last seen, in Unix milliseconds. Returns undefined for an ad of the Meta Ad
 * Library whose time was derived from its end date. That date may be corrected later or lie in the future, so it does
 * not show which of two downloads is newer.
 */
function readLastSeenAt({ adLibrary, lastSeenAt, endDate }: JsonObject): number | undefined {
  const [lastSeenAtMs, endDateMs] = [parseTime(lastSeenAt), parseTime(endDate)];
  const isDerivedFromEndDate =
    adLibrary === 'meta' && lastSeenAtMs !== undefined && endDateMs !== undefined && lastSeenAtMs <= endDateMs;
  return isDerivedFromEndDate ? undefined : lastSeenAtMs;
}

/**
 * Fields that describe one value together, e.g. both bounds of a range. They are copied from one version of an ad to
 * another only together, because a range with bounds of two versions could end before it begins.
 */
const fieldGroups = [
  ['adSpendMin', 'adSpendMax'],
  ['revenueMin', 'revenueMax'],
  ['impressionsMin', 'impressionsMax', 'regionStats'],
  ['audienceSizeMin', 'audienceSizeMax'],
  ['audienceReach', 'reachMin', 'reachMax', 'euTotalReach', 'reachByCountry', 'ageCountryGenderReachBreakdown'],
];

/** Fields that an archive measured, e.g. the spend. Some downloads and scrapes of an ad leave all of them out. */
const measuredFields = new Set([...fieldGroups.flat(), 'currency', 'demographics', 'regions']);

/** Copies fields from the older version of an ad if the newer version has no value for them. */
export function fillMissingFields(newerAd: JsonObject, olderAd: JsonObject): JsonObject {
  const canCopyAmounts = hasSameCurrency(newerAd, olderAd);
  const missingFields = Object.entries(olderAd).filter(([name]) => {
    if (hasValue(newerAd, name)) return false;
    if (!canCopyAmounts && (name === 'currency' || amountFields.includes(name))) return false;
    const group = fieldGroups.find((fields) => fields.includes(name)) ?? [];
    return !group.some((field) => hasValue(newerAd, field));
  });
  return missingFields.length > 0 ? { ...newerAd, ...Object.fromEntries(missingFields) } : newerAd;
}

/**
 * Copies the measured fields, e.g. the spend, from the older version of an ad if the newer version does not have them.
 * Without these copies, importing a scrape without spend would delete the spend of an earlier download. All other
 * fields of the newer version stay as they are, because an advertiser may have removed a text or a link.
 */
export const copyMeasuredFields = (newerAd: JsonObject, olderAd: JsonObject): JsonObject =>
  fillMissingFields(newerAd, Object.fromEntries(Object.entries(olderAd).filter(([name]) => measuredFields.has(name))));

/** Returns true if the amounts of both versions have the same currency, or if only the older version has amounts. */
function hasSameCurrency(newerAd: JsonObject, olderAd: JsonObject): boolean {
  if (newerAd.currency === olderAd.currency) return true;
  return !hasValue(newerAd, 'currency') && !amountFields.some((name) => hasValue(newerAd, name));
}

/**
 * Fields with the results of an ad, e.g. its impressions. They differ between records of the same ad if each record
 * contains only the results in one country, for example.
 */
const resultFields = [
  ...[...amountFields, 'impressionsMin', 'impressionsMax', 'audienceReach', 'reachMin', 'reachMax', 'countries'],
  ...['euTotalReach', 'currency'],
];

/**
 * Returns an error if two records of an ad in the same import have different results. The import stores only the later
 * record, although each record may contain only a part of the results, e.g. in one country.
 */
export function findContradictoryResult(storedAd: JsonObject, ad: JsonObject): Error | undefined {
  const field = resultFields.find(
    (name) =>
      hasValue(storedAd, name) && hasValue(ad, name) && JSON.stringify(storedAd[name]) !== JSON.stringify(ad[name]),
  );
  if (field === undefined) return undefined;
  const [earlierText, laterText] = [storedAd[field], ad[field]].map((value) => JSON.stringify(value));
  return new Error(
    `${field}: an earlier record of this ad has ${earlierText} and this record has ${laterText}, and only one of them is stored; if there is a row for each part of an ad, e.g. for each country, add the rows up first`,
  );
}

/**
 * Returns true if an ad has a value for a field. Null counts as a value, because an `endDate` of null means that the ad
 * is running.
 */
function hasValue(ad: JsonObject, fieldName: string): boolean {
  const value = ad[fieldName];
  if (value === undefined || value === '') return false;
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0;
}

/**
 * Adds the old values of changed fields to the ad's history in `changes`, where each field has a list of earlier
 * values, newest first. Returns `ad` itself if no field has ever changed.
 * @param ad the newer version, or the combination of both versions
 */
export function addHistory(ad: JsonObject, replacedAd: JsonObject, nowMs: number): JsonObject {
  // If the imported ad already contains a history, e.g. because this server exported the ad, keep that history
  // unchanged. An empty object is no history: a service may send `changes: {}` with every ad.
  if (hasValue(ad, 'changes') && ad.changes !== replacedAd.changes) return ad;
  const changes: Record<string, unknown> = { ...(isObject(replacedAd.changes) ? replacedAd.changes : {}) };
  const [newerContent, replacedContent] = [extractContent(ad), extractContent(replacedAd)];
  for (const field of Object.keys(newerContent) as ContentField[]) {
    if (newerContent[field] === replacedContent[field]) continue;
    const earlierValues = [createEarlierValue(replacedAd, field, nowMs), ...listEarlierValues(replacedAd, field)];
    changes[field] = earlierValues.slice(0, maxEarlierValues);
  }
  return Object.keys(changes).length > 0 ? { ...ad, changes } : ad;
}

/**
 * Adds the values of an older version of an ad to the history of the stored version. Sorts each value into the history
 * by the time at which the ad was last seen with the value. Returns `storedAd` itself if the history is empty.
 */
export function addOlderVersionToHistory(storedAd: JsonObject, olderAd: JsonObject, nowMs: number): JsonObject {
  const changes: Record<string, unknown> = { ...(isObject(storedAd.changes) ? storedAd.changes : {}) };
  const [storedContent, olderContent] = [extractContent(storedAd), extractContent(olderAd)];
  for (const field of Object.keys(storedContent) as ContentField[]) {
    const storedValues = listEarlierValues(storedAd, field);
    const olderValues = listEarlierValues(olderAd, field);
    if (storedContent[field] === olderContent[field] && storedValues.length + olderValues.length === 0) continue;
    const history = [createEarlierValue(olderAd, field, nowMs), ...olderValues].reduce(
      (earlierValues, value) => insertEarlierValue(earlierValues, value, field, storedContent[field]),
      storedValues,
    );
    if (history.length > 0) changes[field] = history.slice(0, maxEarlierValues);
  }
  return Object.keys(changes).length > 0 ? { ...storedAd, changes } : storedAd;
}

/** Returns the history of a field, newest value first. */
function listEarlierValues({ changes }: JsonObject, field: ContentField): EarlierValue[] {
  const earlierValues = isObject(changes) ? (changes as UntypedFields)[field] : undefined;
  return readObjects(earlierValues) as unknown as EarlierValue[];
}

function createEarlierValue(ad: JsonObject, field: ContentField, nowMs: number): EarlierValue {
  const value = ad[field] ?? null;
  return {
    value: JSON.stringify(value).length <= maxEarlierValueChars ? value : null,
    ...(typeof ad.lastSeenAt === 'string' && { lastSeenAt: ad.lastSeenAt }),
    replacedAt: new Date(nowMs).toISOString(),
  };
}

/**
 * Inserts a value into the history of a field, before the first value that was last seen earlier. Inserts nothing if
 * the next newer value is the same, because the field did not change in between. If the next older value is the same,
 * that value was seen until the later of the two times.
 * @param currentContent the content of the field in the stored version of the ad, which is newer than its history
 */
function insertEarlierValue(
  earlierValues: readonly EarlierValue[],
  newValue: EarlierValue,
  field: ContentField,
  currentContent: string | null,
): EarlierValue[] {
  const readContent = ({ value }: EarlierValue) => extractFieldContent({ [field]: value }, field);
  const lastSeenAtMs = parseTime(newValue.lastSeenAt);
  const olderIndex = earlierValues.findIndex((value) => Number(parseTime(value.lastSeenAt)) < Number(lastSeenAtMs));
  const index = olderIndex < 0 ? earlierValues.length : olderIndex;
  const [newerValue, olderValue] = [earlierValues[index - 1], earlierValues[index]];
  const newContent = readContent(newValue);
  if (newContent === (newerValue ? readContent(newerValue) : currentContent)) return [...earlierValues];
  const isSameAsOlder = olderValue !== undefined && readContent(olderValue) === newContent;
  return earlierValues.toSpliced(index, isSameAsOlder ? 1 : 0, newValue);
}
