import { isDeepStrictEqual } from 'node:util';
import type { CallOwner } from '../api/call.ts';
import { isDeeperThan } from '../api/json.ts';
import type { ItemType } from '../api/schemas.ts';
import { maxIdLength } from '../api/url.ts';
import {
  addVersion,
  createItem,
  encodeJson,
  type ItemRecord,
  type ItemSource,
  type StoredItem,
} from './item-versions.ts';
import { type ContentRecords, emptyContentRecords, type UserRecords } from './user-records.ts';

/**
 * The dataset of one account: all ads and pages from paid answers, and the account's gatherings. The methods are
 * asynchronous, because a dataset may be stored outside this process.
 */
export interface Dataset {
  /**
   * True if the service could not confirm which account the key belongs to. The dataset then belongs to the account that
   * was stored for the key earlier.
   */
  isUnconfirmed?: boolean;
  userRecords: UserRecords;
  /** Adds the ads or pages of an answer. */
  addItems(batch: ItemBatch): Promise<void>;
  /** Returns an ad or a page; undefined if the dataset does not contain it. */
  findItem(type: ItemType, id: string): Promise<StoredItem | undefined>;
  /** Returns everything in the dataset. */
  readContents(): Promise<DatasetContents>;
  /** Returns the next sequence number for an answer. It is higher than all earlier numbers, even if clocks differ. */
  nextSequenceNumber(): Promise<number>;
  /** Adds the result of one step of a gathering. Saving the same step twice changes nothing. */
  saveGathering(gathering: GatheringStep): Promise<void>;
  /** Estimates how many ads of the average stored size fit into the dataset. One gathering may not have more ads. */
  estimateMaxAds(): Promise<number>;
}

/** The datasets of all accounts. */
export interface Datasets {
  /**
   * Opens the dataset of a caller. Other processes may add to the same dataset.
   * @param purpose with `toAdd`, the dataset can take paid answers even if it cannot be read at the moment
   */
  open(caller: DatasetCaller, purpose?: { toAdd: boolean }): Promise<Dataset>;
  close(): Promise<void>;
}

/** The tenant and the API key of a caller. */
export type DatasetCaller = Pick<CallOwner, 'tenantId' | 'apiKey'>;

/** The items of one answer. */
interface ItemBatch extends ItemSource {
  type: ItemType;
  /** Returns the parsed items. Called only when a caller reads the dataset. */
  items(): readonly unknown[];
  /** The text of the answer, if the text is all that is kept in memory until the items are parsed. */
  text?: string | undefined;
  at: number;
  /** The sequence number of the answer. */
  order: number;
}

/** The contents of a dataset at one moment. They do not change when the dataset changes. */
export interface DatasetContents extends ContentRecords {
  /** Changes with each change of the ads, pages or gatherings. Labels and picture hashes have versions of their own. */
  version: string;
  /** All ads, in the order of the last answer that contained them. */
  ads: readonly StoredItem[];
  pages: readonly StoredItem[];
  /** All gatherings, the oldest first. */
  gatherings: readonly Gathering[];
  /** The numbers of evicted ads, pages and gatherings. */
  evicted: { ads: number; pages: number; gatherings: number };
}

/** The question and the progress of a gathering. The field names are part of the stored format. */
export interface GatheringState {
  id: string;
  /** A key that is equal for all gatherings of the same question. */
  question: string;
  filters: Readonly<Record<string, unknown>> | null;
  collectionId: string | null;
  /**
   * True if a call with `fresh` started this gathering and a call with `fresh` may continue it: its end was not returned
   * to a caller yet, and it is not stuck.
   */
  fresh: boolean;
  /** The ids of the gatherings of its parts, if the question is split into parts. The parts hold the ads. */
  parts: readonly string[];
  /** The total number of matching ads that the service states; null if unknown. */
  found: number | null;
  /** The number of different ads that the service has listed. */
  listed: number;
  /**
   * The credits charged for its pages; null if the service did not state all charges. If the gathering is a part of a split
   * question, its pages are charged to the gathering of the whole question, not to the part.
   */
  charged: number | null;
  /** True if the service repeats pages, so that the gathering cannot continue. */
  stuck: boolean;
  /** True if the last page was reached. */
  ended: boolean;
  /** The service's cursor of the next page. */
  cursor: string | null;
  /** The sequence number of the gathering. It grows from one gathering to the next. */
  order: number;
  /** The number of the step within the gathering. */
  step: number;
  /** The sequence number of the last answer that the gathering read. */
  answerOrder: number;
  startedAt: number;
  gatheredAt: number;
}

/** One step of a gathering: the state after the step, and the ads that it read. */
export interface GatheringStep extends GatheringState {
  /** The ids of the ads that this step read. */
  adIds: readonly string[];
}

/**
 * A gathering with computed values for readers. The gathering of a split question has the sums of its parts, and is as
 * old as its oldest part.
 */
export interface Gathering extends GatheringState {
  /** The stored state, from which the gathering continues. */
  state: GatheringState;
  /** The gatherings of its parts that are still stored. */
  storedParts: readonly Gathering[];
  /** The total number that the service states; null if unknown, or if the service has listed more ads than this. */
  found: number | null;
  /** The normalized ids of all ads that the gathering read. */
  adIds: ReadonlySet<string>;
  /** The number of ads that the gathering read and that were evicted since. */
  missing: number;
  /** True if the last page was reached and every listed ad is in the dataset. */
  complete: boolean;
}

/** A change of a dataset. The same record may be applied several times, and records may be applied in any order. */
export type DatasetRecord = ItemRecord | (GatheringStep & { kind: 'gathering' });

/** Returns the id of an ad in lower case. Ids of ads are UUIDs, which compare without regard to case; ids of pages are not. */
export const normalizeAdId = (id: string): string => id.toLowerCase();

/** Returns the sum of the numbers. */
export const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Returns the ads with these normalized ids, by normalized id. */
export const pickAdsById = ({ ads }: Pick<DatasetContents, 'ads'>, ids: ReadonlySet<string>) =>
  new Map(ads.filter(({ id }) => ids.has(normalizeAdId(id))).map((item) => [normalizeAdId(item.id), item] as const));

/** The memory limit of one dataset, in bytes. */
const maxDatasetBytes = 128 * 1024 * 1024;
/** The share of the limit that is freed in addition when a dataset is too large, so that not every new ad causes evictions. */
const extraFreedShare = 0.05;
/**
 * The share of the memory that one gathering may fill with ads. Gatherings, pages and larger ads need the rest, so that a
 * gathering does not evict its own first ads.
 */
const usableShare = 0.8;
/** The memory of an empty dataset, in bytes. */
const datasetOverheadBytes = 4096;
/** The assumed size of an ad while the dataset has fewer than `minAdsForAverage` ads, in bytes. */
const typicalAdBytes = 10_000;
const minAdsForAverage = 50;

let createdDatasets = 0;

/** A dataset in the memory of this process. */
export class MemoryDataset {
  /** The tables. The entry at the start of each table is evicted first. */
  readonly #tables = {
    ads: new ItemTable(normalizeAdId),
    pages: new ItemTable((id) => id),
    gathering: new GatheringTable(),
  };
  /** A number that distinguishes the versions of this object from the versions of an object that replaced it. */
  readonly #instanceNumber = ++createdDatasets;
  readonly #maxBytes: number;
  /** The highest sequence number of an answer in the dataset. */
  highestSequenceNumber = 0;
  #changeCount = 0;
  /** The numbers of items that the store has evicted, in addition to the evictions of this object. */
  evictedFromStore: DatasetContents['evicted'] = { ads: 0, pages: 0, gatherings: 0 };

  constructor(maxBytes = maxDatasetBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    const { ads, pages, gathering } = this.#tables;
    return datasetOverheadBytes + ads.bytes + pages.bytes + gathering.bytes;
  }

  get isEmpty(): boolean {
    return this.bytes === datasetOverheadBytes;
  }

  get version(): string {
    return `${this.#instanceNumber}.${this.#changeCount}`;
  }

  findItem(type: ItemType, id: string) {
    return this.#tables[type].get(id);
  }

  /** Applies a change. Returns whether anything changed. */
  apply(record: DatasetRecord): boolean {
    if (record.kind !== 'gathering') this.highestSequenceNumber = Math.max(this.highestSequenceNumber, record.order);
    const isChange =
      record.kind === 'gathering' ? this.#tables.gathering.add(record) : this.#tables[record.kind].add(record);
    if (isChange) this.#changeCount++;
    return isChange;
  }

  /** Yields records that create an equal dataset. */
  *records(): Generator<DatasetRecord> {
    for (const kind of ['ads', 'pages'] as const)
      for (const { versions, ...item } of this.#tables[kind].all())
        for (const version of [...versions, item]) yield { ...item, ...version, kind };
    for (const { state, adIds } of this.#tables.gathering.entries.values())
      yield { ...state, adIds: [...adIds], kind: 'gathering' };
  }

  /** Returns the contents together with the records of the account. */
  getContents(records = emptyContentRecords): DatasetContents {
    const [{ ads, pages, gathering }, storeEvictions] = [this.#tables, this.evictedFromStore];
    return {
      version: this.version,
      ...records,
      ads: ads.all(),
      pages: pages.all(),
      gatherings: gathering.all(ads),
      evicted: {
        ads: ads.evicted + storeEvictions.ads,
        pages: pages.evicted + storeEvictions.pages,
        gatherings: gathering.evicted + storeEvictions.gatherings,
      },
    };
  }

  /** Removes an item that the store has evicted already. The item does not count as evicted here. */
  remove(kind: DatasetRecord['kind'], id: string): void {
    if (this.#tables[kind].remove(id)) this.#changeCount++;
  }

  /** Evicts the oldest entries if the dataset exceeds its memory limit. */
  shrinkIfTooLarge(): void {
    if (this.bytes > this.#maxBytes) this.shrinkTo((1 - extraFreedShare) * this.#maxBytes);
  }

  /** Evicts the oldest ads, then pages, then gatherings, until the dataset has at most `bytes` bytes. */
  shrinkTo(bytes: number): void {
    const { ads, pages, gathering } = this.#tables;
    if (this.bytes > bytes) for (const items of [ads, pages]) items.sort();
    while (this.bytes > bytes) {
      if (!(ads.removeOldest() || pages.removeOldest() || gathering.removeOldest())) return;
      this.#changeCount++;
    }
  }

  estimateMaxAds(bytes = this.#maxBytes): number {
    const { ads } = this.#tables;
    const each = ads.entries.size < minAdsForAverage ? typicalAdBytes : ads.bytes / ads.entries.size;
    return Math.floor((usableShare * Math.min(bytes, this.#maxBytes)) / each);
  }
}

/** A batch with its sequence number. Equal answers in a row are one batch, and `first` describes the first answer. */
export type OrderedBatch = ItemBatch & { order: number; first?: { at: number; order: number } };

/** Parses the items of an answer and returns a record for each item. Values that are not items are left out. */
export function createRecords({ items, text: _, ...source }: OrderedBatch): DatasetRecord[] {
  return items().flatMap((item) => createRecord(item, source) ?? []);
}

type Source = Omit<OrderedBatch, 'items' | 'text'>;

function createRecord(item: unknown, { type, first, ...source }: Source): DatasetRecord | undefined {
  if (typeof item !== 'object' || item === null) return;
  const { id, pageId } = item as { id?: unknown; pageId?: unknown };
  const name = type === 'ads' ? id : pageId;
  if (typeof name !== 'string' || name.trim() === '' || isDeeperThan(maxItemDepth, item)) return;
  const { at, order } = first ?? source;
  return { ...source, kind: type, id: name, since: at, sinceOrder: order, json: encodeJson(item) };
}

/**
 * The largest depth of nested objects and lists in an item. Deeper items are left out, because the comparison of items is
 * recursive and could exhaust the stack. Items of the service have about five levels.
 */
const maxItemDepth = 500;

const maxItemBytes = 1024 * 1024;
/** The measured overhead of an item in bytes: its objects, its map entry and its buffer. */
const itemOverheadBytes = 1024;
const versionOverheadBytes = 300;

/** Entries by key, with their memory in bytes. The first entry is evicted first. */
class Table<Entry> {
  entries = new Map<string, Entry>();
  bytes = 0;
  evicted = 0;
  readonly keyOf: (id: string) => string;
  readonly #bytesOf: (entry: Entry) => number;

  constructor(keyOf: (id: string) => string, bytesOf: (entry: Entry) => number) {
    this.keyOf = keyOf;
    this.#bytesOf = bytesOf;
  }

  get(id: string): Entry | undefined {
    return this.entries.get(this.keyOf(id));
  }

  set(id: string, entry: Entry): void {
    const before = this.get(id);
    this.bytes += this.#bytesOf(entry) - (before === undefined ? 0 : this.#bytesOf(before));
    this.entries.set(this.keyOf(id), entry);
  }

  remove(id: string): boolean {
    const before = this.get(id);
    if (before !== undefined) this.bytes -= this.#bytesOf(before);
    return this.entries.delete(this.keyOf(id));
  }

  /** Evicts the first entry. Returns false if the table is empty. */
  removeOldest(): boolean {
    const [key] = this.entries.keys();
    if (key === undefined) return false;
    this.evicted++;
    return this.remove(key);
  }
}

/** The ads or pages of a dataset, roughly in the order of the last answer that contained them. */
class ItemTable extends Table<StoredItem> {
  constructor(keyOf: (id: string) => string) {
    super(keyOf, estimateBytes);
  }

  all(): StoredItem[] {
    return [...this.entries.values()].sort(compareItems);
  }

  /** Sorts the entries by sequence number, because records may be added in any order. */
  sort(): void {
    this.entries = new Map(this.all().map((item) => [this.keyOf(item.id), item]));
  }

  /** Adds a version of an item. Returns whether anything changed. */
  add(record: ItemRecord): boolean {
    const stored = this.get(record.id);
    if (record.id === '' || record.id.length > maxIdLength) return false;
    const item = stored === undefined ? createItem(record) : addVersion(stored, record);
    if (item === stored) return false;
    if (item.json.length > maxItemBytes) {
      this.evicted++;
      return false;
    }
    if (item.order !== stored?.order) this.remove(record.id);
    this.set(record.id, item);
    return true;
  }
}

const compareItems = (left: StoredItem, right: StoredItem): number => left.order - right.order;

const estimateBytes = ({ id, json, versions }: StoredItem): number =>
  versions.reduce(
    (sum, version) => sum + version.json.length + versionOverheadBytes,
    itemOverheadBytes + 4 * id.length + json.length,
  );

interface Entry {
  state: GatheringState;
  adIds: ReadonlySet<string>;
  bytes: number;
}

/** Limits of the gatherings of a dataset, and the estimated overhead of a gathering and of an id in it, in bytes. */
const maxGatherings = 500;
const maxGatheringBytes = 16 * 1024 * 1024;
const gatheringOverheadBytes = 1024;
const idOverheadBytes = 128;

/** The gatherings of a dataset. If there are too many, the gathering with the oldest last step is evicted first. */
class GatheringTable extends Table<Entry> {
  constructor() {
    super(
      (id) => id,
      ({ bytes }) => bytes,
    );
  }

  all(ads: Table<StoredItem>): Gathering[] {
    const gatherings = [...this.entries.values()]
      .sort(({ state: left }, { state: right }) => left.order - right.order || left.startedAt - right.startedAt)
      .map(({ state, adIds }): Gathering => {
        let missing = 0;
        for (const id of adIds) if (ads.get(id) === undefined) missing++;
        const isBelievable = state.found !== null && state.found >= Math.max(adIds.size, state.listed);
        const complete = state.ended && missing === 0 && adIds.size >= state.listed;
        const visibleState = { ...state, found: isBelievable ? state.found : null };
        return { ...visibleState, state: visibleState, adIds, missing, complete, storedParts: [] };
      });
    return gatherings.map((gathering) =>
      gathering.parts.length === 0 ? gathering : combineParts(gathering, gatherings),
    );
  }

  /** Adds a step of a gathering. Steps may be added in any order. Returns whether anything changed. */
  add({ adIds, kind: _, ...state }: GatheringStep & { kind: 'gathering' }): boolean {
    const storedEntry = this.entries.get(state.id);
    const ids = new Set(storedEntry?.adIds);
    for (const id of adIds) ids.add(normalizeAdId(id));
    const newestState = storedEntry === undefined || isNewerState(state, storedEntry.state) ? state : storedEntry.state;
    if (newestState === storedEntry?.state && ids.size === storedEntry.adIds.size) return false;
    const bytes = gatheringOverheadBytes + 2 * JSON.stringify(newestState).length + idOverheadBytes * ids.size;
    this.set(state.id, { state: newestState, adIds: ids, bytes });
    this.#evictLast(newestState);
    while (this.entries.size > maxGatherings || this.bytes > maxGatheringBytes) this.removeOldest();
    return true;
  }

  /**
   * Moves a gathering to the end of the table, so that it is evicted last. The gathering of the whole question and all
   * parts of it move, too.
   */
  #evictLast({ id, parts }: GatheringState): void {
    const wholeGatherings = [...this.entries.values()].filter(({ state }) => !state.ended && state.parts.includes(id));
    const idsToMove = [...wholeGatherings.flatMap(({ state }) => [state.id, ...state.parts]), ...parts, id];
    for (const name of new Set(idsToMove)) {
      const entry = this.entries.get(name);
      if (entry === undefined) continue;
      this.entries.delete(name);
      this.entries.set(name, entry);
    }
  }
}

/** Returns the gathering of a split question with the sums of its parts. */
function combineParts(gathering: Gathering, all: readonly Gathering[]): Gathering {
  const { ended, gatheredAt } = gathering;
  const parts = new Set(gathering.parts);
  const storedParts = all.filter(({ id }) => parts.has(id));
  const totals = storedParts.flatMap(({ found }) => found ?? []);
  let ids: ReadonlySet<string> | undefined;
  return {
    ...gathering,
    storedParts,
    found: totals.length === parts.size ? sumOf(totals) : null,
    gatheredAt: storedParts.length === 0 ? gatheredAt : Math.min(...storedParts.map((part) => part.gatheredAt)),
    // The ids are collected only when they are read, because there may be very many.
    get adIds() {
      ids ??= new Set(storedParts.flatMap(({ adIds }) => [...adIds]));
      return ids;
    },
    missing: sumOf(storedParts.map(({ missing }) => missing)),
    complete: ended && storedParts.length === parts.size && storedParts.every(({ complete }) => complete),
  };
}

/**
 * Returns whether a state is newer than the stored one. If two processes made the same step at the same time, a state that
 * has ended wins, so that the gathering does not continue after its end.
 */
function isNewerState(state: GatheringState, stored: GatheringState): boolean {
  if (state.step !== stored.step) return state.step > stored.step;
  if (state.gatheredAt !== stored.gatheredAt) return state.gatheredAt > stored.gatheredAt;
  return !stored.ended && !isDeepStrictEqual(state, stored);
}
