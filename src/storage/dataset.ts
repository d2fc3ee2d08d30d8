import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../api/call.ts';
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
 * What one account has paid for: every ad and page that an answer brought, and what was gathered when. Asynchronous,
 * because it may be stored outside this process.
 */
export interface Dataset {
  /** The service could not be asked whose key it is: this is the dataset of the account that is remembered for it. */
  isUnconfirmed?: boolean;
  userRecords: UserRecords;
  addItems(batch: ItemBatch): Promise<void>;
  findItem(type: ItemType, id: string): Promise<StoredItem | undefined>;
  readContents(): Promise<DatasetContents>;
  /** The next sequence number of an answer: higher than all before, even where clocks differ. */
  nextSequenceNumber(): Promise<number>;
  /** Adds what one step of a gathering read. Saving the same step twice changes nothing. */
  saveGathering(gathering: GatheringStep): Promise<void>;
  /** How many ads there is room for, if they are as large as those in the dataset. One gathering may not have more. */
  estimateMaxAds(): Promise<number>;
}

export interface Datasets {
  /**
   * The caller's dataset, with what other processes brought. What was paid for can be added even where nothing can be
   * read.
   */
  open(caller: DatasetCaller, purpose?: { toAdd: boolean }): Promise<Dataset>;
  close(): Promise<void>;
}

export type DatasetCaller = Pick<Call, 'tenantId' | 'apiKey'>;

interface ItemBatch extends ItemSource {
  type: ItemType;
  /** Parses the items lazily, on first read. */
  items(): readonly unknown[];
  /** The text of the answer, if nothing else of it is held until the items are read. */
  text?: string | undefined;
  at: number;
  /** The number of the answer; by default the highest. */
  order?: number | undefined;
}

/** A dataset at one moment. It stays as it is while others change the dataset. */
export interface DatasetContents extends ContentRecords {
  /** Changes with all but the labels and what is known of pictures. */
  version: string;
  /** Ads, the one with the oldest newest version first. */
  ads: readonly StoredItem[];
  pages: readonly StoredItem[];
  /** The oldest first. */
  gatherings: readonly Gathering[];
  evicted: { ads: number; pages: number; gatherings: number };
}

/** The question of a gathering, and how far it is. */
export interface GatheringState {
  id: string;
  /** Equal for all gatherings of the same question. */
  question: string;
  filters: Readonly<Record<string, unknown>> | null;
  collectionId: string | null;
  /**
   * Begun with `fresh`, and a call with `fresh` may continue it: its end was not returned yet, and it is no dead end.
   */
  fresh: boolean;
  /** If it has several parts: the ids of their gatherings, which hold what was read. */
  parts: readonly string[];
  found: number | null;
  /** How many different ads the service has listed. */
  listed: number;
  /**
   * Credits that its own pages cost; null where the service did not state all charges. Pages that are read for a gathering
   * of several parts are charged to that one, and not to the part.
   */
  charged: number | null;
  /** Its pages repeat, so it is not continued. */
  stuck: boolean;
  /** The last page was reached. */
  ended: boolean;
  cursor: string | null;
  /** A sequence number, which grows with each gathering and each of its steps. */
  order: number;
  step: number;
  /** The number of the last answer that the gathering read. */
  answerOrder: number;
  startedAt: number;
  gatheredAt: number;
}

export interface GatheringStep extends GatheringState {
  /** Ids of the ads that this step read. */
  adIds: readonly string[];
}

/** A gathering as a reader sees it: one of several parts has the sums of its parts, and is as old as the oldest. */
export interface Gathering extends GatheringState {
  /** Where it goes on, without what is computed for readers. */
  state: GatheringState;
  /** Those of its parts that are still stored. */
  storedParts: readonly Gathering[];
  /** The total that the service states, unless it listed more. */
  found: number | null;
  /** Ids of all ads that were read, as `idKey` writes them. */
  adIds: ReadonlySet<string>;
  /** Ads that were read, and then evicted to make room. */
  missing: number;
  /** The last page was reached, and every listed ad is in the dataset. */
  complete: boolean;
}

/** What changes a dataset. Records may come more than once, and late. */
export type DatasetRecord = ItemRecord | (GatheringStep & { kind: 'gathering' });

/** Ids of ads compare without regard to case, as UUIDs do; those of pages are any text. */
export const normalizeAdId = (id: string): string => id.toLowerCase();

export const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Those of the ads whose `idKey` is wanted, by it. */
export const pickAdsById = ({ ads }: Pick<DatasetContents, 'ads'>, ids: ReadonlySet<string>) =>
  new Map(ads.filter(({ id }) => ids.has(normalizeAdId(id))).map((item) => [normalizeAdId(item.id), item] as const));

const maxDatasetBytes = 128 * 1024 * 1024;
/** How much is freed beyond what is necessary, so that not every new ad has to make room. */
const extraFreedShare = 0.05;
/** A gathering should not displace its own first ads: gatherings, pages and larger ads take room, too. */
const usableShare = 0.8;
/** The overhead of a dataset, however little is in it. */
const datasetOverheadBytes = 4096;
/** Bytes of an ad while there are too few to tell. */
const typicalAdBytes = 10_000;
const minAdsForAverage = 50;

let createdDatasets = 0;

export class MemoryDataset {
  /** The tables. In each, the entry that is evicted first comes first. */
  readonly #tables = {
    ads: new ItemTable(normalizeAdId),
    pages: new ItemTable((id) => id),
    gathering: new GatheringTable(),
  };
  /** Tells the versions of this object from those of one that took its place. */
  readonly #instanceNumber = ++createdDatasets;
  readonly #maxBytes: number;
  order = 0;
  #changeCount = 0;
  /** What was evicted from the store of the dataset, besides what was evicted here. */
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

  item(type: ItemType, id: string) {
    return this.#tables[type].get(id);
  }

  apply(record: DatasetRecord): boolean {
    if (record.kind !== 'gathering') this.order = Math.max(this.order, record.order);
    const isChange =
      record.kind === 'gathering' ? this.#tables.gathering.add(record) : this.#tables[record.kind].add(record);
    if (isChange) this.#changeCount++;
    return isChange;
  }

  *records(): Generator<DatasetRecord> {
    for (const kind of ['ads', 'pages'] as const)
      for (const { versions, ...item } of this.#tables[kind].all())
        for (const version of [...versions, item]) yield { ...item, ...version, kind };
    for (const { state, adIds } of this.#tables.gathering.entries.values())
      yield { ...state, adIds: [...adIds], kind: 'gathering' };
  }

  contents(records = emptyContentRecords): DatasetContents {
    const [{ ads, pages, gathering }, gone] = [this.#tables, this.evictedFromStore];
    return {
      version: this.version,
      ...records,
      ads: ads.all(),
      pages: pages.all(),
      gatherings: gathering.all(ads),
      evicted: {
        ads: ads.evicted + gone.ads,
        pages: pages.evicted + gone.pages,
        gatherings: gathering.evicted + gone.gatherings,
      },
    };
  }

  /** Removes items that the store has removed too, without counting them. */
  remove(kind: DatasetRecord['kind'], id: string): void {
    if (this.#tables[kind].remove(id)) this.#changeCount++;
  }

  shrinkIfTooLarge(): void {
    if (this.bytes > this.#maxBytes) this.shrinkTo((1 - extraFreedShare) * this.#maxBytes);
  }

  /** Removes what came longest ago until at most the given number of bytes is left. */
  shrinkTo(bytes: number): void {
    const { ads, pages, gathering } = this.#tables;
    if (this.bytes > bytes) for (const items of [ads, pages]) items.sort();
    while (this.bytes > bytes) {
      if (!(ads.removeOldest() || pages.removeOldest() || gathering.removeOldest())) return;
      this.#changeCount++;
    }
  }

  maxAds(bytes = this.#maxBytes): number {
    const { ads } = this.#tables;
    const each = ads.entries.size < minAdsForAverage ? typicalAdBytes : ads.bytes / ads.entries.size;
    return Math.floor((usableShare * Math.min(bytes, this.#maxBytes)) / each);
  }
}

/** An answer that came several times in a row: its last time, and its `first`. */
export type OrderedBatch = ItemBatch & { order: number; first?: { at: number; order: number } };

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
 * The most levels of objects and lists in an item. Deeper items are left out, because comparing them is recursive and
 * could exhaust the stack. Items of the service have about five levels.
 */
const maxItemDepth = 500;

const maxItemBytes = 1024 * 1024;
/** The overhead of an item: its objects, its entry in the map, its buffer. Measured. */
const itemOverheadBytes = 1024;
const versionOverheadBytes = 300;

/** Entries by their keys, the first to go first, and what they take. */
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

  removeOldest(): boolean {
    const [key] = this.entries.keys();
    if (key === undefined) return false;
    this.evicted++;
    return this.remove(key);
  }
}

/** The newest versions of ads or pages with their earlier ones, roughly in the order they came. */
class ItemTable extends Table<StoredItem> {
  constructor(keyOf: (id: string) => string) {
    super(keyOf, estimateBytes);
  }

  all(): StoredItem[] {
    return [...this.entries.values()].sort(compareItems);
  }

  sort(): void {
    this.entries = new Map(this.all().map((item) => [this.keyOf(item.id), item]));
  }

  /** Returns whether anything changed. */
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

const maxGatherings = 500;
const maxGatheringBytes = 16 * 1024 * 1024;
const gatheringOverheadBytes = 1024;
const idOverheadBytes = 128;

/** The gatherings of a dataset. Those that were read longest ago are removed when there are too many. */
class GatheringTable extends Table<Entry> {
  constructor() {
    super(
      (id) => id,
      ({ bytes }) => bytes,
    );
  }

  all(ads: Table<StoredItem>): Gathering[] {
    const single = [...this.entries.values()]
      .sort(({ state: left }, { state: right }) => left.order - right.order || left.startedAt - right.startedAt)
      .map(({ state, adIds }): Gathering => {
        let missing = 0;
        for (const id of adIds) if (ads.get(id) === undefined) missing++;
        const isBelievable = state.found !== null && state.found >= Math.max(adIds.size, state.listed);
        const complete = state.ended && missing === 0 && adIds.size >= state.listed;
        const shown = { ...state, found: isBelievable ? state.found : null };
        return { ...shown, state: shown, adIds, missing, complete, storedParts: [] };
      });
    return single.map((gathering) => (gathering.parts.length === 0 ? gathering : combineParts(gathering, single)));
  }

  /** Steps may come in any order. Returns whether anything changed. */
  add({ adIds, kind: _, ...state }: GatheringStep & { kind: 'gathering' }): boolean {
    const before = this.entries.get(state.id);
    const ids = new Set(before?.adIds);
    for (const id of adIds) ids.add(normalizeAdId(id));
    const newest = before === undefined || isNewerState(state, before.state) ? state : before.state;
    if (newest === before?.state && ids.size === before.adIds.size) return false;
    const bytes = gatheringOverheadBytes + 2 * JSON.stringify(newest).length + idOverheadBytes * ids.size;
    this.set(state.id, { state: newest, adIds: ids, bytes });
    this.#evictLast(newest);
    while (this.entries.size > maxGatherings || this.bytes > maxGatheringBytes) this.removeOldest();
    return true;
  }

  /** Makes the gathering that is being read the last to be evicted, with what it is a part of, and all parts of that. */
  #evictLast({ id, parts }: GatheringState): void {
    const wholes = [...this.entries.values()].filter(({ state }) => !state.ended && state.parts.includes(id));
    const read = [...wholes.flatMap(({ state }) => [state.id, ...state.parts]), ...parts, id];
    for (const name of new Set(read)) {
      const entry = this.entries.get(name);
      if (entry === undefined) continue;
      this.entries.delete(name);
      this.entries.set(name, entry);
    }
  }
}

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
    // Computed only when somebody reads them, because there may be very many.
    get adIds() {
      ids ??= new Set(storedParts.flatMap(({ adIds }) => [...adIds]));
      return ids;
    },
    missing: sumOf(storedParts.map(({ missing }) => missing)),
    complete: ended && storedParts.length === parts.size && storedParts.every(({ complete }) => complete),
  };
}

/** A gathering that has ended is not opened again by a step that another process made at the same time. */
function isNewerState(state: GatheringState, stored: GatheringState): boolean {
  if (state.step !== stored.step) return state.step > stored.step;
  if (state.gatheredAt !== stored.gatheredAt) return state.gatheredAt > stored.gatheredAt;
  return !stored.ended && !isDeepStrictEqual(state, stored);
}
