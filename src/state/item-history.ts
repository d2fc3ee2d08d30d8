import type { ItemSource, ItemVersion, StoredItem } from './dataset.ts';
import { type Fields, mergeItems, sameContent } from './item-merge.ts';

/** A version of an ad or a page, as an answer or a file brings it. */
export interface ItemRecord extends ItemSource, ItemVersion {
  id: string;
  /** When its first version came, if that was earlier. */
  firstAt?: number | undefined;
}

const MAX_EARLIER = 10;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export const objectOf = ({ json }: Pick<ItemVersion, 'json'>): Fields => JSON.parse(decoder.decode(json)) as Fields;

/** Unlike a small `Buffer`, this shares its memory with no other. */
export const jsonBytes = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

export function firstVersion({ id, since, at, json, listedBy, requestId, firstAt = since }: ItemRecord): StoredItem {
  return { id, since, at, json, listedBy, requestId, firstAt: Math.min(since, firstAt), versions: [] };
}

/**
 * The item with one more version, in whatever order they come: another process may bring an earlier one later.
 * @returns the same object if it knows that version already
 */
export function withVersion(known: StoredItem, record: ItemRecord): StoredItem {
  if (record.at >= known.at && sameBytes(record.json, known.json)) return seenAgain(known, record);
  const { since, at, json, versions } = known;
  const history: ItemVersion[] = [...versions, { since, at, json }];
  const position = history.findLastIndex((version) => version.at <= record.at) + 1;
  const isNewest = position === history.length;
  const untouched = Math.max(0, position - 1);
  const changed = inOrder([
    ...history.slice(untouched, position),
    ...around(record, history[position]),
    ...history.slice(position + 1),
  ]);
  const all = [...history.slice(0, untouched), ...changed].slice(-MAX_EARLIER - 1);
  const firstAt = Math.min(known.firstAt, record.since, record.firstAt ?? record.since);
  if (firstAt === known.firstAt && sameHistory(all, history)) return known;
  const { id, listedBy, requestId } = isNewest ? record : known;
  return { id, listedBy, requestId, firstAt, ...(all.at(-1) ?? history[0] ?? record), versions: all.slice(0, -1) };
}

/** Most ads that come again have not changed. */
function seenAgain(known: StoredItem, { at, listedBy, requestId, ...record }: ItemRecord): StoredItem {
  const since = Math.min(known.since, record.since);
  const firstAt = Math.min(known.firstAt, record.since, record.firstAt ?? record.since);
  const isKnown = at === known.at && since === known.since && firstAt === known.firstAt;
  return isKnown ? known : { ...known, at, listedBy, requestId, since, firstAt };
}

/** A version and the one that came last after it, in two if that also came before. */
function around(record: ItemVersion, next: ItemVersion | undefined): ItemVersion[] {
  if (next === undefined) return [record];
  if (next.since > record.at) return [record, next];
  return [{ ...next, at: next.since }, record, { ...next, since: next.at }];
}

/** Lets each version keep the fields that it lacks, and joins those with the same content. */
function inOrder([first, ...later]: ItemVersion[]): ItemVersion[] {
  const all = first === undefined ? [] : [plain(first)];
  for (const version of later) {
    const last = all.at(-1);
    if (last === undefined) continue;
    const isSame = sameBytes(version.json, last.json);
    const before = isSame ? {} : objectOf(last);
    const merged = isSame ? {} : mergeItems(objectOf(version), before);
    const joins = isSame || sameContent(merged, before);
    const json = isSame ? last.json : jsonBytes(merged);
    if (joins) all[all.length - 1] = { since: Math.min(last.since, version.since), at: version.at, json };
    else all.push({ since: version.since, at: version.at, json });
  }
  return all;
}

const plain = ({ since, at, json }: ItemVersion): ItemVersion => ({ since, at, json });

const sameHistory = (left: readonly ItemVersion[], right: readonly ItemVersion[]): boolean =>
  left.length === right.length &&
  left.every((version, index) => {
    const other = right[index];
    return other?.at === version.at && other.since === version.since && sameBytes(other.json, version.json);
  });

const sameBytes = (left: Uint8Array, right: Uint8Array) => left === right || Buffer.compare(left, right) === 0;
