import { isDeepStrictEqual } from 'node:util';
import type { ItemSource, ItemVersion, StoredItem } from './dataset.ts';

/** A version of an ad or a page, as an answer or a file brings it. */
export interface ItemRecord extends ItemSource, ItemVersion {
  id: string;
  /** When its first version came, if that was earlier. */
  firstAt?: number | undefined;
  firstOrder?: number | undefined;
}

const MAX_EARLIER = 10;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export const objectOf = ({ json }: Pick<ItemVersion, 'json'>): Fields => JSON.parse(decoder.decode(json)) as Fields;

/** Unlike a small `Buffer`, this shares its memory with no other. */
export const jsonBytes = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

export function firstVersion(record: ItemRecord): StoredItem {
  const { id, listedBy, requestId } = record;
  return { id, listedBy, requestId, ...plain(record), ...firstOf(record), versions: [] };
}

/**
 * The item with one more version, in whatever order they come: another process may bring an earlier one later.
 * @returns the same object if it knows that version already
 */
export function withVersion(known: StoredItem, record: ItemRecord): StoredItem {
  if (!isBefore(record, known) && sameBytes(record.json, known.json)) return seenAgain(known, record);
  const history: ItemVersion[] = [...known.versions, plain(known)];
  const position = history.findLastIndex((version) => !isBefore(record, version)) + 1;
  const isNewest = position === history.length;
  const untouched = Math.max(0, position - 1);
  const changed = inOrder([
    ...history.slice(untouched, position),
    ...around(plain(record), history[position]),
    ...history.slice(position + 1),
  ]);
  const all = [...history.slice(0, untouched), ...changed].slice(-MAX_EARLIER - 1);
  const first = earlierFirst(known, record);
  if (first.firstOrder === known.firstOrder && sameHistory(all, history)) return known;
  const { id, listedBy, requestId } = isNewest ? record : known;
  return { id, listedBy, requestId, ...first, ...(all.at(-1) ?? plain(record)), versions: all.slice(0, -1) };
}

/** Most ads that come again have not changed. */
function seenAgain(known: StoredItem, record: ItemRecord): StoredItem {
  const { at, order, listedBy, requestId } = record;
  const start = earlierStart(known, record);
  const first = earlierFirst(known, record);
  const isKnown =
    order === known.order && start.sinceOrder === known.sinceOrder && first.firstOrder === known.firstOrder;
  return isKnown ? known : { ...known, at, order, listedBy, requestId, ...start, ...first };
}

/** What two processes added at once, without knowing of each other, is the same to all by its time. */
function isBefore(left: ItemVersion, right: ItemVersion): boolean {
  return left.order === right.order ? left.at < right.at : left.order < right.order;
}

/** A version and the one that came last after it, in two if that also came before. */
function around(record: ItemVersion, next: ItemVersion | undefined): ItemVersion[] {
  if (next === undefined) return [record];
  if (next.sinceOrder > record.order) return [record, next];
  const { since, sinceOrder, at, order } = next;
  return [{ ...next, at: since, order: sinceOrder }, record, { ...next, since: at, sinceOrder: order }];
}

/** Lets each version keep the fields that it lacks, and joins those with the same content. */
function inOrder([first, ...later]: ItemVersion[]): ItemVersion[] {
  const all = first === undefined ? [] : [first];
  for (const version of later) {
    const last = all.at(-1);
    if (last === undefined) continue;
    const isSame = sameBytes(version.json, last.json);
    const before = isSame ? {} : objectOf(last);
    const merged = isSame ? {} : mergeItems(objectOf(version), before);
    const joins = isSame || sameContent(merged, before);
    const json = isSame ? last.json : jsonBytes(merged);
    if (joins) all[all.length - 1] = { ...version, ...earlierStart(last, version), json };
    else all.push({ ...version, json });
  }
  return all;
}

const plain = ({ since, at, sinceOrder, order, json }: ItemVersion): ItemVersion => ({
  since,
  at,
  sinceOrder,
  order,
  json,
});

function earlierStart(left: ItemVersion, right: ItemVersion): Pick<ItemVersion, 'since' | 'sinceOrder'> {
  const { since, sinceOrder } = right.sinceOrder < left.sinceOrder ? right : left;
  return { since, sinceOrder };
}

type First = Pick<StoredItem, 'firstAt' | 'firstOrder'>;

const firstOf = ({ since, sinceOrder, firstAt = since, firstOrder = sinceOrder }: ItemRecord): First =>
  firstOrder < sinceOrder ? { firstAt, firstOrder } : { firstAt: since, firstOrder: sinceOrder };

function earlierFirst({ firstAt, firstOrder }: StoredItem, record: ItemRecord): First {
  const other = firstOf(record);
  return other.firstOrder < firstOrder ? other : { firstAt, firstOrder };
}

const sameHistory = (left: readonly ItemVersion[], right: readonly ItemVersion[]): boolean =>
  left.length === right.length &&
  left.every((version, index) => {
    const other = right[index];
    return (
      other?.order === version.order && other.sinceOrder === version.sinceOrder && sameBytes(other.json, version.json)
    );
  });

const sameBytes = (left: Uint8Array, right: Uint8Array) => left === right || Buffer.compare(left, right) === 0;

export type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Objects of which a list shows fewer fields than the single item. */
const NESTED = ['page', 'website'];

/** The newer object, in which the fields that it lacks keep their earlier values. */
function mergeItems(newer: Fields, earlier: Fields): Fields {
  const merged = { ...earlier, ...newer };
  for (const name of NESTED) {
    const [before, after] = [earlier[name], newer[name]];
    if (isFields(before) && isFields(after)) merged[name] = { ...before, ...after };
  }
  return merged;
}

/**
 * Whether two versions say the same of an ad or a page. Links to the application, the day it was last seen and the
 * signatures in media addresses change without a change of the ad.
 */
function sameContent(left: Fields, right: Fields): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => UNRELATED.has(name) || sameField(name, left[name], right[name]));
}

function sameField(name: string, left: unknown, right: unknown): boolean {
  if (isDeepStrictEqual(left, right)) return true;
  const comparable = NAMES_MEDIA.test(name) ? unsigned : unsignedMedia;
  return isDeepStrictEqual(comparable(left), comparable(right));
}

const UNRELATED = new Set(['appUrl', 'lastSeenAt']);
const NAMES_MEDIA = /image|video|thumb|picture|media|preview/i;
const QUERY = /[?#].*$/s;
/** Deeper than any object of the service; what lies below is compared as it is. */
const MAX_DEPTH = 8;

/** All addresses inside, without query. */
function unsigned(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return /^https?:/i.test(value) ? value.replace(QUERY, '') : value;
  return depth < MAX_DEPTH ? mapped(value, (inner) => unsigned(inner, depth + 1)) : value;
}

/** The addresses under names of media, without query; the query of a link is part of the ad. */
function unsignedMedia(value: unknown, depth = 0): unknown {
  if (depth >= MAX_DEPTH) return value;
  return mapped(value, (inner, name) =>
    NAMES_MEDIA.test(name) ? unsigned(inner, depth + 1) : unsignedMedia(inner, depth + 1),
  );
}

function mapped(value: unknown, map: (inner: unknown, name: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => map(inner, ''));
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, map(inner, name)]));
}
