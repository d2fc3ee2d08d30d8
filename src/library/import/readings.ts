import { extractContent } from '../../views/ad-changes.ts';
import { parseTime } from '../../views/dates.ts';
import { isObject } from '../../views/view.ts';
import type { JsonObject } from './formats/import-format.ts';

/** An earlier value of a field of an ad. */
interface EarlierValue {
  value: unknown;
  /** When the ad with this value was last seen, if its source says so. */
  lastSeenAt?: string;
  /** The time of the import that replaced this value. */
  replacedAt: string;
}

/** The largest number of earlier values that an ad keeps of each field. */
const maxEarlierValues = 20;
/** A longer value, such as a long list of media, is not kept. Its change is kept without the value. */
const maxValueLength = 10_000;

/** Returns true if an ad was seen before the stored reading of the same ad. */
export function isOlderReading(ad: JsonObject, storedAd: JsonObject): boolean {
  const [seenAt, storedSeenAt] = [parseTime(ad.lastSeenAt), parseTime(storedAd.lastSeenAt)];
  return seenAt !== undefined && storedSeenAt !== undefined && seenAt < storedSeenAt;
}

/** Returns the newer of two readings of an ad. Fields without a value take the value of the older reading. */
export function fillMissingFields(newer: JsonObject, older: JsonObject): JsonObject {
  const missingFields = Object.entries(older).filter(([name]) => !hasValue(newer, name));
  return missingFields.length > 0 ? { ...newer, ...Object.fromEntries(missingFields) } : newer;
}

/** Returns true if an ad has a value for a field. `null` is a value: an `endDate` of null says that the ad runs. */
function hasValue(ad: JsonObject, name: string): boolean {
  const value = ad[name];
  if (value === undefined || value === '') return false;
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0;
}

/**
 * Adds the values of an older reading to the history of an ad, `changes`: for each field whose content differs, the
 * earlier values, the newest first. Returns the same object if there is no history.
 * @param ad the newer reading, or the ad that combines both
 */
export function addHistory(ad: JsonObject, older: JsonObject, now: number): JsonObject {
  // The source states a history of its own, for example because it is an export.
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
