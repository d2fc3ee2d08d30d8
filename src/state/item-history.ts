import type { ItemSource, ItemVersion, StoredItem } from './dataset.ts';
import { type Fields, mergeItems, sameContent } from './item-merge.ts';

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
