import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/schemas.ts';
import { type CounterValues, extractContent, readCounters } from '../views/ad-changes.ts';

/** The answer that contained an item. */
export interface ItemSource {
  /** The operation that returned the version. */
  listedBy: string;
  requestId: string | null;
}

/** A stored ad or page. Fields that the newest answer lacks keep their earlier values. */
export interface StoredItem extends ItemSource, ItemVersion {
  /** The id as the service spells it. */
  id: string;
  /** When the first version arrived, in milliseconds since 1970. */
  firstAt: number;
  /** The sequence number of the answer that brought the first version. */
  firstOrder: number;
  /** Earlier versions with different field values, the oldest first. Some of them differ only in counters. */
  versions: readonly ItemVersion[];
}

/** One version of an item. One answer, or several answers in a row, contained the version. */
export interface ItemVersion {
  /**
   * When the first and the last answer with this version arrived, in milliseconds since 1970. These times are only shown to
   * readers. They do not decide which version is newer, because clocks can be wrong.
   */
  since: number;
  at: number;
  /** The sequence numbers of the first and the last answer with this version. A newer answer has a higher number. */
  sinceOrder: number;
  order: number;
  /** The item as UTF-8 JSON. */
  json: Uint8Array;
}

/** One version of an item, as it is added to a dataset. */
export interface ItemRecord extends ItemSource, ItemVersion {
  kind: ItemType;
  id: string;
  /** When the first version arrived, and its sequence number, if the first version is not this one. */
  firstAt?: number | undefined;
  firstOrder?: number | undefined;
}

const encoder = new TextEncoder();

/** Returns the item as an object. */
export const parseItem = ({ json }: Pick<ItemVersion, 'json'>): JsonObject =>
  JSON.parse(asBuffer(json).toString()) as JsonObject;

/** Returns a `Buffer` over the same bytes. A `Buffer` decodes non-ASCII text in two thirds of the time of a `TextDecoder`. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Returns a value as UTF-8 JSON. A small `Buffer` would keep the memory of others alive, because it is a part of a pool. */
export const encodeJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** The largest number of earlier versions that an item keeps. */
const maxEarlierVersions = 10;

/** Creates an item with one version. */
export function createItem(record: ItemRecord): StoredItem {
  const { id, listedBy, requestId, since, sinceOrder, firstAt = since, firstOrder = sinceOrder } = record;
  return { id, listedBy, requestId, firstAt, firstOrder, ...pickVersion(record), versions: [] };
}

/**
 * Adds a version to an item and returns the new item. Two processes that write at the same time may add versions in the
 * wrong order. A version that comes late becomes an earlier version, and the newest version takes over the fields that
 * no newer version has.
 * @returns the same object if nothing changes
 */
export function addVersion(stored: StoredItem, record: ItemRecord): StoredItem {
  const first = createItem(record);
  const { firstAt, firstOrder } = first.firstOrder < stored.firstOrder ? first : stored;
  const isLate = record.order < stored.order || (record.order === stored.order && record.at <= stored.at);
  if (!isLate && Buffer.compare(record.json, stored.json) === 0) {
    const { at, order, listedBy, requestId } = record;
    return { ...stored, at, order, listedBy, requestId, firstAt, firstOrder };
  }
  const [storedObject, newObject] = [parseItem(stored), parseItem(record)];
  if (isLate) {
    const merged = mergeItems(storedObject, newObject);
    const isKnown = [stored, ...stored.versions].some(
      (version) =>
        addsNothing(newObject, parseItem(version)) ||
        (isDuringVersion(version, record) && hasSameContent(version, record)),
    );
    const versionsWithRecord = isKnown
      ? stored.versions
      : [...stored.versions, pickVersion(record)].sort(compareVersions);
    const { versions, ...newest } = removeSurplusVersions({
      ...stored,
      firstAt,
      firstOrder,
      versions: versionsWithRecord,
    });
    const isSame = firstOrder === stored.firstOrder && versions.every((version) => stored.versions.includes(version));
    if (isSame && isDeepStrictEqual(merged, storedObject)) return stored;
    return { ...newest, versions, json: encodeJson(merged) };
  }
  const merged = mergeItems(newObject, storedObject);
  const item = { ...createItem(record), firstAt, firstOrder, json: encodeJson(merged) };
  const { since, sinceOrder, versions } = stored;
  if (addsNothing(newObject, storedObject)) return { ...item, since, sinceOrder, versions };
  return removeSurplusVersions({ ...item, versions: [...versions, pickVersion(stored)] });
}

const compareVersions = (left: ItemVersion, right: ItemVersion): number => left.order - right.order;

/** Returns whether a record arrived while the service was sending this version: after its first and before its last answer. */
const isDuringVersion = ({ sinceOrder, order }: ItemVersion, record: ItemVersion): boolean =>
  sinceOrder <= record.sinceOrder && record.order <= order;

/**
 * Removes surplus versions. A version that differs from the next one only in counters is removed first, and the next
 * version takes over its start. Therefore counters that change every day do not displace earlier content.
 */
function removeSurplusVersions(item: StoredItem): StoredItem {
  let { versions, since, sinceOrder } = item;
  while (versions.length > maxEarlierVersions) {
    const at = versions.findIndex((version, index) => hasSameContent(version, versions[index + 1] ?? item));
    const [removed, next] = [versions[at], versions[at + 1]];
    if (removed === undefined) versions = versions.slice(1);
    else if (next === undefined) {
      ({ since, sinceOrder } = removed);
      versions = versions.slice(0, -1);
    } else {
      const joined = { ...next, since: removed.since, sinceOrder: removed.sinceOrder };
      versions = versions.toSpliced(at, 2, joined);
    }
  }
  return { ...item, since, sinceOrder, versions };
}

/**
 * Returns the version that was current after the answer with this sequence number; undefined if the stored versions do not
 * go back so far.
 */
export const findVersionAt = (order: number, item: StoredItem): ItemVersion | undefined =>
  item.sinceOrder <= order ? item : item.versions.findLast(({ sinceOrder }) => sinceOrder <= order);

/** Returns the earlier versions of an ad whose content differs from the content of the next version, the oldest first. */
export const listContentVersions = (item: StoredItem): ItemVersion[] =>
  item.versions.filter((version, index) => !hasSameContent(version, item.versions[index + 1] ?? item));

type JsonHolder = Pick<ItemVersion, 'json'>;

/** Returns whether two versions of an ad have the same content. Counters and signatures, for example, are not content. */
export const hasSameContent = (left: JsonHolder, right: JsonHolder): boolean =>
  left.json === right.json || computeFacts(left).content === computeFacts(right).content;

/** Returns the counters of a version of an ad. */
export const readCounts = (version: JsonHolder): CounterValues => computeFacts(version).counts;

/** Caches what is computed from the bytes of a version, so that the versions of a large dataset are parsed only once. */
const cachedFacts = new WeakMap<Uint8Array, { content: string; counts: CounterValues }>();

function computeFacts({ json }: JsonHolder) {
  const cached = cachedFacts.get(json);
  if (cached) return cached;
  const ad = parseItem({ json });
  const content = hash('sha256', JSON.stringify(Object.values(extractContent(ad))), 'base64url');
  const facts = { content, counts: readCounters(ad) };
  cachedFacts.set(json, facts);
  return facts;
}

/** Returns whether each field of the new object has the same value in the stored object. */
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

/** Fields that hold objects. In lists, these objects have fewer fields than in the answer for a single item. */
const nestedFields = ['page', 'website'];

/** Returns the newer object, with the fields of the earlier object that the newer one lacks. */
function mergeItems(newer: JsonObject, earlier: JsonObject): JsonObject {
  const merged = { ...earlier, ...newer };
  for (const name of nestedFields) {
    const [earlierValue, newerValue] = [earlier[name], newer[name]];
    if (isJsonObject(earlierValue) && isJsonObject(newerValue)) merged[name] = { ...earlierValue, ...newerValue };
  }
  return merged;
}

/**
 * Returns whether two objects count as the same version. Links to the application, the day on which an ad was last seen,
 * and signatures in media URLs differ in every answer, so they are ignored.
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
/** The largest depth at which signatures are removed. No object of the service is nested so deep. */
const maxDepth = 8;

/** Returns the value without the queries of media URLs. The queries of links stay, because they are part of the ad. */
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
