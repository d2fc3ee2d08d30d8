import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/schemas.ts';
import { type CounterValues, extractContent, readCounters } from '../views/ad-changes.ts';

export interface ItemSource {
  /** The operation whose answer held the version. */
  listedBy: string;
  requestId: string | null;
}

/** An ad or a page: its newest version, in which fields that the newest answer lacks keep their earlier values. */
export interface StoredItem extends ItemSource, ItemVersion {
  /** As the service spells it. */
  id: string;
  firstAt: number;
  firstOrder: number;
  /** Earlier versions in which any field differed, the oldest first. Some of them differ in counters alone. */
  versions: readonly ItemVersion[];
}

export interface ItemVersion {
  /**
   * When the version came first and last, in milliseconds since the epoch. The times are for readers only, because
   * clocks err.
   */
  since: number;
  at: number;
  /** The numbers of the first and the last answer with the version. A newer answer has a higher number. */
  sinceOrder: number;
  order: number;
  /** The object as UTF-8 JSON. */
  json: Uint8Array;
}

export interface ItemRecord extends ItemSource, ItemVersion {
  kind: ItemType;
  id: string;
  /** When the first version came, if that was earlier. */
  firstAt?: number | undefined;
  firstOrder?: number | undefined;
}

const encoder = new TextEncoder();

export const parseItem = ({ json }: Pick<ItemVersion, 'json'>): JsonObject =>
  JSON.parse(asBuffer(json).toString()) as JsonObject;

/** The same bytes: a `Buffer` reads texts beyond ASCII in two thirds of the time of a decoder. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Unlike a small `Buffer`, this shares its memory with no other. */
export const encodeJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** Earlier versions that an item keeps. */
const maxEarlierVersions = 10;

export function createItem(record: ItemRecord): StoredItem {
  const { id, listedBy, requestId, since, sinceOrder, firstAt = since, firstOrder = sinceOrder } = record;
  return { id, listedBy, requestId, firstAt, firstOrder, ...pickVersion(record), versions: [] };
}

/**
 * Returns the item with one more version. A version that comes late, because two processes wrote at once, is inserted as
 * an earlier one; the newest version takes those of its fields that no newer version has.
 * @returns the same object if the version is known already
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
    const all = isKnown ? stored.versions : [...stored.versions, pickVersion(record)].sort(compareVersions);
    const { versions, ...newest } = removeSurplusVersions({ ...stored, firstAt, firstOrder, versions: all });
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

/** Whether an answer came while a version was the newest. */
const isDuringVersion = ({ sinceOrder, order }: ItemVersion, record: ItemVersion): boolean =>
  sinceOrder <= record.sinceOrder && record.order <= order;

/**
 * Removes the versions that are too many. A version goes first that differs from the next one in counters alone, and the
 * next one then counts since the removed one came: so counters that change each day push no earlier content out.
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

/** Returns the version after the answer of that number; undefined if the versions do not go back so far. */
export const findVersionAt = (order: number, item: StoredItem): ItemVersion | undefined =>
  item.sinceOrder <= order ? item : item.versions.findLast(({ sinceOrder }) => sinceOrder <= order);

/** Returns the earlier versions of an ad whose content differs from that of the next one, the oldest first. */
export const listContentVersions = (item: StoredItem): ItemVersion[] =>
  item.versions.filter((version, index) => !hasSameContent(version, item.versions[index + 1] ?? item));

type JsonHolder = Pick<ItemVersion, 'json'>;

/** Whether two versions of an ad differ in nothing that counts as a change of the ad. */
export const hasSameContent = (left: JsonHolder, right: JsonHolder): boolean =>
  left.json === right.json || computeFacts(left).content === computeFacts(right).content;

export const readCounts = (version: JsonHolder): CounterValues => computeFacts(version).counts;

/** What follows from the bytes of a version alone, so that the versions of a large dataset are parsed once. */
const cachedFacts = new WeakMap<Uint8Array, { content: string; counts: CounterValues }>();

function computeFacts({ json }: JsonHolder) {
  const known = cachedFacts.get(json);
  if (known) return known;
  const ad = parseItem({ json });
  const content = hash('sha256', JSON.stringify(Object.values(extractContent(ad))), 'base64url');
  const facts = { content, counts: readCounters(ad) };
  cachedFacts.set(json, facts);
  return facts;
}

/** Whether a version has no field that the earlier one lacks or holds another value of. */
const addsNothing = (came: JsonObject, before: JsonObject): boolean => hasSameFields(mergeItems(came, before), before);

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

/** Objects of which a list shows fewer fields than the single item. */
const nestedFields = ['page', 'website'];

/** The newer object, in which the fields that it lacks keep their earlier values. */
function mergeItems(newer: JsonObject, earlier: JsonObject): JsonObject {
  const merged = { ...earlier, ...newer };
  for (const name of nestedFields) {
    const [before, after] = [earlier[name], newer[name]];
    if (isJsonObject(before) && isJsonObject(after)) merged[name] = { ...before, ...after };
  }
  return merged;
}

/**
 * Whether two answers say the same of an item, so that they make one version. Links to the application, the day on which
 * an ad was last seen and signatures in media addresses differ in every answer.
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
/** Deeper than any object of the service. Values below are compared as they are. */
const maxDepth = 8;

/** The object without the queries of media addresses. The query of a link is part of the ad and stays. */
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
