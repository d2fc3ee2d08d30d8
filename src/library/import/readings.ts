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
export function isOlderReading(ad: JsonObject, storedAd: JsonObject): boolean {
  const [seenAt, storedSeenAt] = [parseTime(ad.lastSeenAt), parseTime(storedAd.lastSeenAt)];
  return seenAt !== undefined && storedSeenAt !== undefined && seenAt < storedSeenAt;
}

/** Adds the fields that are missing in the newer version of an ad from the older version. */
export function fillMissingFields(newer: JsonObject, older: JsonObject): JsonObject {
  const missingFields = Object.entries(older).filter(([name]) => !hasValue(newer, name));
  return missingFields.length > 0 ? { ...newer, ...Object.fromEntries(missingFields) } : newer;
}

/**
 * Returns true if an ad has a value for a field. `null` counts as a value: an `endDate` of null means that the ad is
 * running.
 */
function hasValue(ad: JsonObject, name: string): boolean {
  const value = ad[name];
  if (value === undefined || value === '') return false;
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0;
}

/**
 * Adds the changed values of an older version to the ad's history, `changes`. The history has a list of earlier values
 * for each changed field, the newest first. Returns the same object if there is no history.
 * @param ad the newer version, or the combination of both versions
 */
export function addHistory(ad: JsonObject, older: JsonObject, now: number): JsonObject {
  // Keep a history that comes from the source itself, e.g. from an export of this server.
  if (ad.changes !== undefined && ad.changes !== older.changes) return ad;
  const changes: Record<string, unknown> = { ...(isObject(older.changes) ? older.changes : {}) };
  const [content, olderContent] = [extractContent(ad), extractContent(older)];
  for (const field of Object.keys(content) as (keyof typeof content)[]) {
    if (content[field] === olderContent[field]) continue;
    const value = older[field] ?? null;
    const entry: EarlierValue = {
      value: JSON.stringify(value).length <= maxValueLength ? value : null,
      ...(typeof older.lastSeenAt === 'string' && { lastSeenAt: older.lastSeenAt }),
      replacedAt: new Date(now).toISOString(),
    };
    const earlierValues = Array.isArray(changes[field]) ? changes[field] : [];
    changes[field] = [entry, ...earlierValues].slice(0, maxEarlierValues);
  }
  return Object.keys(changes).length > 0 ? { ...ad, changes } : ad;
}
