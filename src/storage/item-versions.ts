import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/schemas.ts';
import { type CounterValues, extractContent, readCounters } from '../views/ad-changes.ts';

/** Identifies the API response that contained an ad or advertiser page. */
export interface ItemSource {
  /** The API operation that returned the item, e.g. `searchAds`. */
  listedBy: string;
  requestId: string | null;
}

/**
 * A stored ad or advertiser page. If the newest API response lacks a field, the stored item keeps the earlier value.
 */
export interface StoredItem extends ItemSource, ItemVersion {
  /** The id of the ad or page, with the same upper and lower case as in the API response. */
  id: string;
  /** The time at which the first version arrived, in milliseconds since 1970. */
  firstAt: number;
  /** The sequence number of the API response that contained the first version. */
  firstOrder: number;
  /**
   * Earlier versions with other field values, the oldest first. Some of them differ only in counters such as the reach
   * of an ad.
   */
  versions: readonly ItemVersion[];
}

/** One version of an ad or advertiser page, as one API response or several consecutive ones contained it. */
export interface ItemVersion {
  /**
   * The times at which the first and the last API response with this version arrived, in milliseconds since 1970. These
   * times are only for display. The sequence numbers below decide which version is newer, because clocks can be wrong.
   */
  since: number;
  at: number;
  /**
   * The sequence numbers of the first and the last API response with this version. Newer responses have higher numbers.
   */
  sinceOrder: number;
  order: number;
  /** The ad or advertiser page as JSON text, encoded in UTF-8. */
  json: Uint8Array;
}

/** A version of an ad or advertiser page that will be added to the dataset (the stored ads). */
export interface ItemRecord extends ItemSource, ItemVersion {
  kind: ItemType;
  id: string;
  /** The time and sequence number of the item's first version. Missing if this is the first version. */
  firstAt?: number | undefined;
  firstOrder?: number | undefined;
}

const encoder = new TextEncoder();

/** Parses the stored JSON text of an ad or advertiser page. */
export const parseItem = ({ json }: Pick<ItemVersion, 'json'>): JsonObject =>
  JSON.parse(toBuffer(json).toString()) as JsonObject;

/**
 * Returns a `Buffer` that shares the memory of `bytes`. `Buffer` decodes non-ASCII text one third faster than
 * `TextDecoder`.
 */
const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/**
 * Encodes a value as JSON in UTF-8. Does not use `Buffer`, because a small `Buffer` is a slice of a pool and would keep
 * the whole pool in memory.
 */
export const encodeJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** The maximum number of earlier versions that are stored per item. */
const maxEarlierVersions = 10;

/** Creates a stored ad or advertiser page from its first version. It has no earlier versions yet. */
export function createItem(record: ItemRecord): StoredItem {
  const { id, listedBy, requestId, since, sinceOrder, firstAt = since, firstOrder = sinceOrder } = record;
  return { id, listedBy, requestId, firstAt, firstOrder, ...pickVersion(record), versions: [] };
}

/**
 * Adds a version to an item and returns the new item. Returns the same object if nothing changes.
 *
 * Versions can arrive out of order if two processes write at the same time. A late version is inserted among the
 * earlier versions. The newest version takes over fields of the late version that no newer version has.
 */
export function addVersion(storedItem: StoredItem, record: ItemRecord): StoredItem {
  const newItem = createItem(record);
  const { firstAt, firstOrder } = newItem.firstOrder < storedItem.firstOrder ? newItem : storedItem;
  const isLate = record.order < storedItem.order || (record.order === storedItem.order && record.at <= storedItem.at);
  if (!isLate && Buffer.compare(record.json, storedItem.json) === 0) {
    const { at, order, listedBy, requestId } = record;
    return { ...storedItem, at, order, listedBy, requestId, firstAt, firstOrder };
  }
  const [storedObject, newObject] = [parseItem(storedItem), parseItem(record)];
  if (isLate) {
    const merged = mergeItems(storedObject, newObject);
    const isKnown = [storedItem, ...storedItem.versions].some(
      (version) =>
        addsNothing(newObject, parseItem(version)) ||
        (isDuringVersion(version, record) && hasSameContent(version, record)),
    );
    const versionsWithRecord = isKnown
      ? storedItem.versions
      : [...storedItem.versions, pickVersion(record)].sort(compareVersions);
    const { versions, ...newest } = removeSurplusVersions({
      ...storedItem,
      firstAt,
      firstOrder,
      versions: versionsWithRecord,
    });
    const isSame =
      firstOrder === storedItem.firstOrder && versions.every((version) => storedItem.versions.includes(version));
    if (isSame && isDeepStrictEqual(merged, storedObject)) return storedItem;
    return { ...newest, versions, json: encodeJson(merged) };
  }
  const merged = mergeItems(newObject, storedObject);
  const item = { ...createItem(record), firstAt, firstOrder, json: encodeJson(merged) };
  const { since, sinceOrder, versions } = storedItem;
  if (addsNothing(newObject, storedObject)) return { ...item, since, sinceOrder, versions };
  return removeSurplusVersions({ ...item, versions: [...versions, pickVersion(storedItem)] });
}

const compareVersions = (left: ItemVersion, right: ItemVersion): number => left.order - right.order;

/**
 * Returns true if the record comes from the time of `version`, i.e. from between the first and the last API response
 * that contained it.
 */
const isDuringVersion = ({ sinceOrder, order }: ItemVersion, record: ItemVersion): boolean =>
  sinceOrder <= record.sinceOrder && record.order <= order;

/**
 * Removes versions beyond `maxEarlierVersions`. Versions that differ from the next one only in counters are removed
 * first, and the next version takes over their start time. Otherwise counters that change every day would push out
 * versions with other texts.
 */
function removeSurplusVersions(item: StoredItem): StoredItem {
  let { versions, since, sinceOrder } = item;
  while (versions.length > maxEarlierVersions) {
    const mergeIndex = versions.findIndex((version, index) => hasSameContent(version, versions[index + 1] ?? item));
    const [removed, next] = [versions[mergeIndex], versions[mergeIndex + 1]];
    if (removed === undefined) versions = versions.slice(1);
    else if (next === undefined) {
      ({ since, sinceOrder } = removed);
      versions = versions.slice(0, -1);
    } else {
      const mergedVersion = { ...next, since: removed.since, sinceOrder: removed.sinceOrder };
      versions = versions.toSpliced(mergeIndex, 2, mergedVersion);
    }
  }
  return { ...item, since, sinceOrder, versions };
}

/**
 * Returns the version that was current after the API response with this sequence number. Returns undefined if the
 * stored versions do not go back that far.
 */
export const findVersionAt = (order: number, item: StoredItem): ItemVersion | undefined =>
  item.sinceOrder <= order ? item : item.versions.findLast(({ sinceOrder }) => sinceOrder <= order);

/**
 * Returns the earlier versions of an ad, the oldest first. Versions that have the same content as the next version are
 * left out.
 */
export const listContentVersions = (item: StoredItem): ItemVersion[] =>
  item.versions.filter((version, index) => !hasSameContent(version, item.versions[index + 1] ?? item));

type JsonHolder = Pick<ItemVersion, 'json'>;

/**
 * Returns true if two versions of an ad have the same content. Content excludes values that change by themselves, such
 * as counters and URL signatures.
 */
export const hasSameContent = (left: JsonHolder, right: JsonHolder): boolean =>
  left.json === right.json || computeFromVersion(left).content === computeFromVersion(right).content;

/** Returns the counters of an ad version, e.g. reach and spend. */
export const readCounts = (version: JsonHolder): CounterValues => computeFromVersion(version).counts;

/**
 * Caches values that are computed from the JSON of a version. Without this cache, each read of a large dataset would
 * parse all versions again.
 */
const cachedComputations = new WeakMap<Uint8Array, { content: string; counts: CounterValues }>();

function computeFromVersion({ json }: JsonHolder) {
  const cached = cachedComputations.get(json);
  if (cached) return cached;
  const ad = parseItem({ json });
  const content = hash('sha256', JSON.stringify(Object.values(extractContent(ad))), 'base64url');
  const computed = { content, counts: readCounters(ad) };
  cachedComputations.set(json, computed);
  return computed;
}

/** Returns true if the stored object already has all fields of the new object with the same values. */
const addsNothing = (newObject: JsonObject, storedObject: JsonObject): boolean =>
  hasSameFields(mergeItems(newObject, storedObject), storedObject);

const pickVersion = ({ since, at, sinceOrder, order, json }: ItemVersion): ItemVersion => ({
  since,
  at,
  sinceOrder,
  order,
  json,
});

type JsonObject = Record<string, unknown>;

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The names of fields that contain an object. In list responses, these objects have fewer fields than in the response
 * for a single item.
 */
const nestedFields = ['page', 'website'];

/** Returns the newer object, with missing fields filled in from the earlier object. */
function mergeItems(newer: JsonObject, earlier: JsonObject): JsonObject {
  const merged = { ...earlier, ...newer };
  for (const name of nestedFields) {
    const [earlierValue, newerValue] = [earlier[name], newer[name]];
    if (isJsonObject(earlierValue) && isJsonObject(newerValue)) merged[name] = { ...earlierValue, ...newerValue };
  }
  return merged;
}

/**
 * Returns true if two objects count as the same version. Ignores values that differ in every API response: links to the
 * service's application, the day on which an ad was last seen, and signatures in media URLs.
 */
const hasSameFields = (left: JsonObject, right: JsonObject): boolean =>
  [...new Set([...Object.keys(left), ...Object.keys(right)])].every(
    (name) => ignoredFields.has(name) || hasSameField(name, left[name], right[name]),
  );

function hasSameField(name: string, left: unknown, right: unknown): boolean {
  if (isDeepStrictEqual(left, right)) return true;
  const isMedia = mediaFieldPattern.test(name);
  return isDeepStrictEqual(removeSignatures(left, isMedia), removeSignatures(right, isMedia));
}

const ignoredFields = new Set(['appUrl', 'lastSeenAt']);
const mediaFieldPattern = /image|video|thumb|picture|media|preview/i;
const urlQuery = /[?#].*$/s;
/** The maximum nesting depth at which signatures are removed. Objects from the service have fewer levels. */
const maxDepth = 8;

/**
 * Returns a copy of the value in which media URLs have no query string. Other URLs retain their query strings, because
 * these are part of the ad.
 */
function removeSignatures(value: unknown, isMedia: boolean, depth = 0): unknown {
  if (typeof value === 'string') return isMedia && /^https?:/i.test(value) ? value.replace(urlQuery, '') : value;
  if (typeof value !== 'object' || value === null || depth >= maxDepth) return value;
  if (Array.isArray(value)) return value.map((inner) => removeSignatures(inner, isMedia, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      removeSignatures(inner, isMedia || mediaFieldPattern.test(name), depth + 1),
    ]),
  );
}
