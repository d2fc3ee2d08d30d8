import { extractContent } from '../../views/ad-changes.ts';
import { parseTime } from '../../views/dates.ts';
import { isObject } from '../../views/view.ts';
import type { JsonObject } from './formats/import-format.ts';

/** A value that a field of an ad had before a newer import changed it. */
interface EarlierValue {
  value: unknown;
  /** When the ad was last seen with this value. Undefined if the source does not say. */
  lastSeenAt?: string;
  /** When an import replaced this value. */
  replacedAt: string;
}

/** The maximum number of earlier values that are stored per field of an ad. */
const maxEarlierValues = 20;
/** Longer values, such as long lists of media, are not stored. The history then only records that the value changed. */
const maxValueLength = 10_000;

/** Returns true if the imported version of an ad is older than the stored one, i.e. was last seen before it. */
export function isOlderVersion(ad: JsonObject, storedAd: JsonObject): boolean {
  const [lastSeenAt, storedLastSeenAt] = [parseTime(ad.lastSeenAt), parseTime(storedAd.lastSeenAt)];
  return lastSeenAt !== undefined && storedLastSeenAt !== undefined && lastSeenAt < storedLastSeenAt;
}

/** Adds the fields that are missing in the newer version of an ad from the older version. */
export function fillMissingFields(newerAd: JsonObject, olderAd: JsonObject): JsonObject {
  const missingFields = Object.entries(olderAd).filter(([name]) => !hasValue(newerAd, name));
  return missingFields.length > 0 ? { ...newerAd, ...Object.fromEntries(missingFields) } : newerAd;
}

/**
 * Returns true if an ad has a value for a field. `null` counts as a value: an `endDate` of null means that the ad is
 * running.
 */
function hasValue(ad: JsonObject, fieldName: string): boolean {
  const value = ad[fieldName];
  if (value === undefined || value === '') return false;
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0;
}

/**
 * Adds the changed values of an older version to the ad's history, `changes`. The history has a list of earlier values
 * for each changed field, the newest first. Returns the same object if there is no history.
 * @param ad the newer version, or the combination of both versions
 */
export function addHistory(ad: JsonObject, olderAd: JsonObject, now: number): JsonObject {
  // Keep a history that comes from the source itself, e.g. from an export of this server.
  if (ad.changes !== undefined && ad.changes !== olderAd.changes) return ad;
  const changes: Record<string, unknown> = { ...(isObject(olderAd.changes) ? olderAd.changes : {}) };
  const [newerContent, olderContent] = [extractContent(ad), extractContent(olderAd)];
  for (const field of Object.keys(newerContent) as (keyof typeof newerContent)[]) {
    if (newerContent[field] === olderContent[field]) continue;
    const olderValue = olderAd[field] ?? null;
    const replacedValue: EarlierValue = {
      value: JSON.stringify(olderValue).length <= maxValueLength ? olderValue : null,
      ...(typeof olderAd.lastSeenAt === 'string' && { lastSeenAt: olderAd.lastSeenAt }),
      replacedAt: new Date(now).toISOString(),
    };
    const earlierValues = Array.isArray(changes[field]) ? changes[field] : [];
    changes[field] = [replacedValue, ...earlierValues].slice(0, maxEarlierValues);
  }
  return Object.keys(changes).length > 0 ? { ...ad, changes } : ad;
}
