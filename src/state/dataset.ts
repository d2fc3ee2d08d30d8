import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../api/call.ts';
import type { ItemType } from '../api/schemas.ts';

/**
 * What one account has paid for: every ad and page that an answer brought, and what was gathered when. Asynchronous, so
 * that it can be kept outside this process.
 */
export interface Dataset {
  addItems(batch: ItemBatch): Promise<void>;
  item(type: ItemType, id: string): Promise<StoredItem | undefined>;
  contents(): Promise<DatasetContents>;
  /** The place of an answer that comes now: behind all that came before, whatever the clocks say. */
  order(): Promise<number>;
  /** Adds what one step of a gathering read. Saving the same step twice changes nothing. */
  saveGathering(gathering: GatheringStep): Promise<void>;
  /** How many ads there is room for, as large as those that are kept. One gathering may not have more. */
  maxAds(): Promise<number>;
}

/** The datasets of all tenants. */
export interface Datasets {
  /**
   * The caller's dataset, with what other processes brought. What was paid for can be added even where nothing can be
   * read.
   */
  of(caller: DatasetCaller, purpose?: { toAdd: boolean }): Promise<Dataset>;
  close(): Promise<void>;
}

export type DatasetCaller = Pick<Call, 'tenantId' | 'apiKey'>;

/** Ads or pages of one answer, as they came. */
export interface ItemBatch extends ItemSource {
  type: ItemType;
  /** Takes the answer apart. Not before somebody reads them, where nothing else needs them. */
  items(): readonly unknown[];
  /** The characters of the answer, if only its text is held until then. */
  size?: number | undefined;
  /** In milliseconds since the epoch. */
  at: number;
  /** Its place among all answers; by default the last one. */
  order?: number | undefined;
}

export interface ItemSource {
  /** The operation that brought it. */
  listedBy: string;
  requestId: string | null;
}

/** An ad or a page: its newest version, in which fields that the newest answer lacks keep their earlier values. */
export interface StoredItem extends ItemSource, ItemVersion {
  /** As the service spells it. */
  id: string;
  /** When its first version came. */
  firstAt: number;
  firstOrder: number;
  /** Earlier versions with other content, the oldest first. */
  versions: readonly ItemVersion[];
}

export interface ItemVersion {
  /** When it came first, and when it came last, in milliseconds since the epoch: for readers, since clocks err. */
  since: number;
  at: number;
  /** The places of both among all answers. What is newer has a higher one. */
  sinceOrder: number;
  order: number;
  /** The object as UTF-8 JSON. */
  json: Uint8Array;
}

/** A dataset at one moment. It stays as it is while others change the dataset. */
export interface DatasetContents {
  /** Changes with the contents. */
  version: string;
  /** The one whose newest version is oldest first. */
  ads: readonly StoredItem[];
  pages: readonly StoredItem[];
  /** The oldest first. */
  gatherings: readonly Gathering[];
  /** Items and gatherings that were removed for want of room. */
  letGo: { ads: number; pages: number; gatherings: number };
}

/** What a gathering is about, and how far it is. */
export interface GatheringState {
  id: string;
  /** Equal for all gatherings of the same question. */
  question: string;
  filters: Readonly<Record<string, unknown>> | null;
  collectionId: string | null;
  /** Begun with `fresh`, and one that calls with it may go on: its end was not returned yet, and it is no dead end. */
  fresh: boolean;
  /** If it has several parts: the ids of their gatherings, which hold what was read. */
  parts: readonly string[];
  /** What the service says there is. */
  found: number | null;
  /** How many different ads the service has listed. */
  listed: number;
  /** Credits that its pages cost; null where the service did not say so of all. */
  charged: number | null;
  /** The last page was reached. */
  ended: boolean;
  /** Where the service goes on. */
  cursor: string | null;
  /** Grows with each gathering and with each step of one, whatever clocks say. */
  order: number;
  step: number;
  /** The place of the last answer that it read. */
  answerOrder: number;
  startedAt: number;
  /** When it last read something. */
  gatheredAt: number;
}

export interface GatheringStep extends GatheringState {
  /** Ids of the ads that this step read. */
  adIds: readonly string[];
}

/** A gathering as it is kept. One of several parts is as old as the oldest of them. */
export interface Gathering extends GatheringState {
  /** What the service says there is, unless it listed more. */
  found: number | null;
  /** Ids of all ads that were read, as `idKey` writes them. */
  adIds: ReadonlySet<string>;
  /** Ads that were read, and are no longer kept for want of room. */
  missing: number;
  /** The last page was reached, and every ad that was listed is kept. */
  complete: boolean;
}

/** What changes a dataset. Records may come more than once, and late. */
export type DatasetRecord = ItemRecord | (GatheringStep & { kind: 'gathering' });

/** A version of an ad or a page, as an answer or a file brings it. */
export interface ItemRecord extends ItemSource, ItemVersion {
  kind: ItemType;
  id: string;
  /** When its first version came, if that was earlier. */
  firstAt?: number | undefined;
  firstOrder?: number | undefined;
}

/** Ids of ads compare without regard to case, as UUIDs do; those of pages are any text. */
export const idKey = (id: string): string => id.toLowerCase();

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export const objectOf = ({ json }: Pick<ItemVersion, 'json'>): Fields => JSON.parse(decoder.decode(json)) as Fields;

/** Unlike a small `Buffer`, this shares its memory with no other. */
export const jsonBytes = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

const maxEarlier = 10;

export function firstVersion(record: ItemRecord): StoredItem {
  const { id, listedBy, requestId, since, sinceOrder, firstAt = since, firstOrder = sinceOrder } = record;
  return { id, listedBy, requestId, firstAt, firstOrder, ...versionOf(record), versions: [] };
}

/**
 * The item with one more version. One that comes late, because two processes wrote at once, is an earlier one, of which
 * the newest has the fields that nothing newer has.
 * @returns the same object if it knows that version already
 */
export function withVersion(known: StoredItem, record: ItemRecord): StoredItem {
  const { firstAt, firstOrder } = earlierFirst(known, firstVersion(record));
  const isLate = record.order < known.order || (record.order === known.order && record.at <= known.at);
  if (!isLate && Buffer.compare(record.json, known.json) === 0) {
    const { at, order, listedBy, requestId } = record;
    return { ...known, at, order, listedBy, requestId, firstAt, firstOrder };
  }
  const [before, came] = [objectOf(known), objectOf(record)];
  if (isLate) {
    const merged = mergeItems(before, came);
    const versions = [known, ...known.versions].some((version) => addsNothing(came, objectOf(version)))
      ? known.versions
      : [...known.versions, versionOf(record)].sort((left, right) => left.order - right.order).slice(-maxEarlier);
    const isKnown = firstOrder === known.firstOrder && versions.every((version) => known.versions.includes(version));
    if (isKnown && isDeepStrictEqual(merged, before)) return known;
    return { ...known, firstAt, firstOrder, versions, json: jsonBytes(merged) };
  }
  const merged = mergeItems(came, before);
  const item = { ...firstVersion(record), firstAt, firstOrder, json: jsonBytes(merged) };
  const { since, sinceOrder, versions } = known;
  if (addsNothing(came, before)) return { ...item, since, sinceOrder, versions };
  return { ...item, versions: [...versions, versionOf(known)].slice(-maxEarlier) };
}

/** Whether a version says the same as an earlier one, or less. */
const addsNothing = (came: Fields, before: Fields): boolean => sameContent(mergeItems(came, before), before);

const versionOf = ({ since, at, sinceOrder, order, json }: ItemVersion): ItemVersion => ({
  since,
  at,
  sinceOrder,
  order,
  json,
});

const earlierFirst = (left: StoredItem, right: StoredItem): StoredItem =>
  right.firstOrder < left.firstOrder ? right : left;

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Objects of which a list shows fewer fields than the single item. */
const nested = ['page', 'website'];

/** The newer object, in which the fields that it lacks keep their earlier values. */
function mergeItems(newer: Fields, earlier: Fields): Fields {
  const merged = { ...earlier, ...newer };
  for (const name of nested) {
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
  return [...names].every((name) => unrelated.has(name) || sameField(name, left[name], right[name]));
}

function sameField(name: string, left: unknown, right: unknown): boolean {
  if (isDeepStrictEqual(left, right)) return true;
  const comparable = namesMedia.test(name) ? unsigned : unsignedMedia;
  return isDeepStrictEqual(comparable(left), comparable(right));
}

const unrelated = new Set(['appUrl', 'lastSeenAt']);
const namesMedia = /image|video|thumb|picture|media|preview/i;
const urlQuery = /[?#].*$/s;
/** Deeper than any object of the service; what lies below is compared as it is. */
const maxDepth = 8;

/** All addresses inside, without query. */
function unsigned(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return /^https?:/i.test(value) ? value.replace(urlQuery, '') : value;
  return depth < maxDepth ? mapped(value, (inner) => unsigned(inner, depth + 1)) : value;
}

/** The addresses under names of media, without query; the query of a link is part of the ad. */
function unsignedMedia(value: unknown, depth = 0): unknown {
  if (depth >= maxDepth) return value;
  return mapped(value, (inner, name) =>
    namesMedia.test(name) ? unsigned(inner, depth + 1) : unsignedMedia(inner, depth + 1),
  );
}

function mapped(value: unknown, map: (inner: unknown, name: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => map(inner, ''));
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, map(inner, name)]));
}
