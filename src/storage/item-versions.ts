import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/schemas.ts';
import { type CounterValues, extractContent, readCounters } from '../views/ad-changes.ts';

/** The API response from which an ad or advertiser page comes. */
export interface ItemSource {
  /** The API operation that returned the ad or page, e.g. `searchAds`. */
  listedBy: string;
  requestId: string | null;
}

/** A stored ad or advertiser page. If the newest API response lacks a field, the field keeps its earlier value. */
export interface StoredItem extends ItemSource, ItemVersion {
  /** The id of the ad or page, exactly as in the API response. The id is not converted to lower case. */
  id: string;
  /** The time at which the first version of the ad or page arrived, in milliseconds since 1970. */
  firstAt: number;
  /** The sequence number of the first API response that contained this ad or page. */
  firstSequenceNumber: number;
  /**
   * The earlier versions of the ad or page, from oldest to newest. Some versions differ only in counters, e.g. in the
   * reach of an ad.
   */
  versions: readonly ItemVersion[];
}

/** One version of an ad or advertiser page. Consecutive API responses with the same field values share one version. */
export interface ItemVersion {
  /**
   * The times at which the first (`since`) and the last (`at`) API response with this version arrived, in milliseconds
   * since 1970. They are only for display: clocks can be wrong, so sequence numbers decide which version is newer.
   */
  since: number;
  at: number;
  /**
   * The sequence numbers of the first (`sinceSequenceNumber`) and the last (`sequenceNumber`) API response with this
   * version. Later responses have higher numbers.
   */
  sinceSequenceNumber: number;
  sequenceNumber: number;
  /** The ad or advertiser page, as JSON text in UTF-8. */
  json: Uint8Array;
}

/** A version of an ad or advertiser page that is to be added to the dataset (the stored ads). */
export interface ItemRecord extends ItemSource, ItemVersion {
  kind: ItemType;
  id: string;
  /**
   * The arrival time and the sequence number of the first version. Both are missing if this record is the first
   * version.
   */
  firstAt?: number | undefined;
  firstSequenceNumber?: number | undefined;
}

const encoder = new TextEncoder();

/** Parses the stored JSON text of an ad or advertiser page. */
export const parseItem = ({ json }: Pick<ItemVersion, 'json'>): JsonObject =>
  JSON.parse(wrapInBuffer(json).toString()) as JsonObject;

/**
 * Wraps bytes in a `Buffer` without copying them. The bytes are decoded as a `Buffer`, because `Buffer` decodes
 * non-ASCII text a third faster than `TextDecoder`.
 */
const wrapInBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/**
 * Encodes a value as JSON text in UTF-8. Uses `TextEncoder`, because a small `Buffer` is a slice of a shared pool and
 * would keep the whole pool in memory.
 */
export const encodeJson = (jsonValue: unknown): Uint8Array => encoder.encode(JSON.stringify(jsonValue));

/** The maximum number of earlier versions that are stored for an ad or advertiser page. */
const maxEarlierVersions = 10;

/** Creates a stored ad or advertiser page from its first version. */
export function createItem(record: ItemRecord): StoredItem {
  const {
    id,
    listedBy,
    requestId,
    since,
    sinceSequenceNumber,
    firstAt = since,
    firstSequenceNumber = sinceSequenceNumber,
  } = record;
  return { id, listedBy, requestId, firstAt, firstSequenceNumber, ...pickVersion(record), versions: [] };
}

/**
 * Adds a version to a stored ad or page. Returns the new item, or the same object if nothing changes.
 *
 * Versions can arrive out of order if two processes write at the same time. A late version is inserted among the
 * earlier versions. Fields that the newest version lacks are copied from the late version.
 */
export function addVersion(storedItem: StoredItem, record: ItemRecord): StoredItem {
  const newItem = createItem(record);
  const { firstAt, firstSequenceNumber } =
    newItem.firstSequenceNumber < storedItem.firstSequenceNumber ? newItem : storedItem;
  const isLate =
    record.sequenceNumber < storedItem.sequenceNumber ||
    (record.sequenceNumber === storedItem.sequenceNumber && record.at <= storedItem.at);
  if (!isLate && Buffer.compare(record.json, storedItem.json) === 0) {
    const { at, sequenceNumber, listedBy, requestId } = record;
    return { ...storedItem, at, sequenceNumber, listedBy, requestId, firstAt, firstSequenceNumber };
  }
  const [storedObject, newObject] = [parseItem(storedItem), parseItem(record)];
  if (isLate) {
    const merged = mergeObjects(storedObject, newObject);
    const isKnown = [storedItem, ...storedItem.versions].some(
      (version) =>
        hasAllFields(newObject, parseItem(version)) ||
        (isWithinVersionPeriod(version, record) && hasSameContent(version, record)),
    );
    const versionsWithRecord = isKnown
      ? storedItem.versions
      : [...storedItem.versions, pickVersion(record)].sort(compareVersions);
    const { versions, ...newest } = removeSurplusVersions({
      ...storedItem,
      firstAt,
      firstSequenceNumber,
      versions: versionsWithRecord,
    });
    const isSame =
      firstSequenceNumber === storedItem.firstSequenceNumber &&
      versions.every((version) => storedItem.versions.includes(version));
    if (isSame && isDeepStrictEqual(merged, storedObject)) return storedItem;
    return { ...newest, versions, json: encodeJson(merged) };
  }
  const merged = mergeObjects(newObject, storedObject);
  const item = { ...createItem(record), firstAt, firstSequenceNumber, json: encodeJson(merged) };
  const { since, sinceSequenceNumber, versions } = storedItem;
  if (hasAllFields(newObject, storedObject)) return { ...item, since, sinceSequenceNumber, versions };
  return removeSurplusVersions({ ...item, versions: [...versions, pickVersion(storedItem)] });
}

const compareVersions = (left: ItemVersion, right: ItemVersion): number => left.sequenceNumber - right.sequenceNumber;

/** Returns true if the record arrived between the first and the last API response that contained the version. */
const isWithinVersionPeriod = ({ sinceSequenceNumber, sequenceNumber }: ItemVersion, record: ItemVersion): boolean =>
  sinceSequenceNumber <= record.sinceSequenceNumber && record.sequenceNumber <= sequenceNumber;

/**
 * Removes earlier versions until at most `maxEarlierVersions` remain. First merges each version that differs from the
 * next version only in counters. Otherwise, daily counter changes would push out versions with different texts.
 */
function removeSurplusVersions(item: StoredItem): StoredItem {
  let { versions, since, sinceSequenceNumber } = item;
  while (versions.length > maxEarlierVersions) {
    const mergeIndex = versions.findIndex((version, index) => hasSameContent(version, versions[index + 1] ?? item));
    const [removed, next] = [versions[mergeIndex], versions[mergeIndex + 1]];
    if (removed === undefined) versions = versions.slice(1);
    else if (next === undefined) {
      ({ since, sinceSequenceNumber } = removed);
      versions = versions.slice(0, -1);
    } else {
      const mergedVersion = { ...next, since: removed.since, sinceSequenceNumber: removed.sinceSequenceNumber };
      versions = versions.toSpliced(mergeIndex, 2, mergedVersion);
    }
  }
  return { ...item, since, sinceSequenceNumber, versions };
}

/**
 * Returns the version that an ad or page had after the API response with this sequence number. Returns undefined if all
 * stored versions are newer.
 */
export const findVersionAt = (sequenceNumber: number, item: StoredItem): ItemVersion | undefined =>
  item.sinceSequenceNumber <= sequenceNumber
    ? item
    : item.versions.findLast(({ sinceSequenceNumber }) => sinceSequenceNumber <= sequenceNumber);

/**
 * Returns the earlier versions of an ad, from oldest to newest. Omits each version that has the same content as the
 * next version.
 */
export const listContentVersions = (item: StoredItem): ItemVersion[] =>
  item.versions.filter((version, index) => !hasSameContent(version, item.versions[index + 1] ?? item));

type VersionJson = Pick<ItemVersion, 'json'>;

/**
 * Returns true if two versions of an ad have the same content. Values that change without an edit, such as counters and
 * URL signatures, do not count as content.
 */
export const hasSameContent = (left: VersionJson, right: VersionJson): boolean =>
  left.json === right.json || summarizeVersion(left).contentHash === summarizeVersion(right).contentHash;

/** Returns the counters of an ad version, e.g. the reach and the spend of the ad. */
export const readVersionCounters = (version: VersionJson): CounterValues => summarizeVersion(version).counters;

/**
 * Caches the hash of the content and the counters of each version. The key is the object with the JSON bytes of the
 * version. Without this cache, each read of a large dataset would parse all versions again.
 */
const cachedVersionSummaries = new WeakMap<Uint8Array, { contentHash: string; counters: CounterValues }>();

function summarizeVersion({ json }: VersionJson) {
  const cachedSummary = cachedVersionSummaries.get(json);
  if (cachedSummary) return cachedSummary;
  const ad = parseItem({ json });
  const contentHash = hash('sha256', JSON.stringify(Object.values(extractContent(ad))), 'base64url');
  const summary = { contentHash, counters: readCounters(ad) };
  cachedVersionSummaries.set(json, summary);
  return summary;
}

/** Returns true if the stored object already contains all fields of the new object, with the same values. */
const hasAllFields = (newObject: JsonObject, storedObject: JsonObject): boolean =>
  hasSameFields(mergeObjects(newObject, storedObject), storedObject);

const pickVersion = ({ since, at, sinceSequenceNumber, sequenceNumber, json }: ItemVersion): ItemVersion => ({
  since,
  at,
  sinceSequenceNumber,
  sequenceNumber,
  json,
});

type JsonObject = Record<string, unknown>;

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The names of the fields that contain an object. In a list response, these objects have fewer fields than in the
 * response for a single item, so `mergeObjects` merges them field by field.
 */
const nestedFieldNames = ['page', 'website'];

/** Returns the newer object, with its missing fields filled in from the earlier object. */
function mergeObjects(newerObject: JsonObject, earlierObject: JsonObject): JsonObject {
  const mergedObject = { ...earlierObject, ...newerObject };
  for (const fieldName of nestedFieldNames) {
    const [earlierValue, newerValue] = [earlierObject[fieldName], newerObject[fieldName]];
    if (isJsonObject(earlierValue) && isJsonObject(newerValue))
      mergedObject[fieldName] = { ...earlierValue, ...newerValue };
  }
  return mergedObject;
}

/**
 * Returns true if two objects count as the same version. Ignores values that differ in every API response: `appUrl`,
 * `lastSeenAt`, and the signatures in media URLs.
 */
const hasSameFields = (left: JsonObject, right: JsonObject): boolean =>
  [...new Set([...Object.keys(left), ...Object.keys(right)])].every(
    (fieldName) => ignoredFields.has(fieldName) || hasSameField(fieldName, left[fieldName], right[fieldName]),
  );

function hasSameField(name: string, left: unknown, right: unknown): boolean {
  if (isDeepStrictEqual(left, right)) return true;
  const isMedia = mediaFieldPattern.test(name);
  return isDeepStrictEqual(removeSignatures(left, isMedia), removeSignatures(right, isMedia));
}

const ignoredFields = new Set(['appUrl', 'lastSeenAt']);
const mediaFieldPattern = /image|video|thumb|picture|media|preview/i;
const urlQuery = /[?#].*$/s;
/**
 * The maximum nesting depth at which `removeSignatures` searches for URLs. Objects from the service have fewer levels.
 */
const maxSignatureDepth = 8;

/**
 * Returns a copy of the value without the query strings of media URLs, because these query strings are signatures that
 * change with every response. Other URLs keep their query strings, which are part of the ad.
 */
function removeSignatures(jsonValue: unknown, isMediaField: boolean, depth = 0): unknown {
  if (typeof jsonValue === 'string')
    return isMediaField && /^https?:/i.test(jsonValue) ? jsonValue.replace(urlQuery, '') : jsonValue;
  if (typeof jsonValue !== 'object' || jsonValue === null || depth >= maxSignatureDepth) return jsonValue;
  if (Array.isArray(jsonValue)) return jsonValue.map((inner) => removeSignatures(inner, isMediaField, depth + 1));
  return Object.fromEntries(
    Object.entries(jsonValue).map(([name, inner]) => [
      name,
      removeSignatures(inner, isMediaField || mediaFieldPattern.test(name), depth + 1),
    ]),
  );
}
