import { isDeepStrictEqual } from 'node:util';
import type { CallOwner } from '../api/call.ts';
import { isDeeperThan } from '../api/json.ts';
import type { ItemType } from '../api/schemas.ts';
import { maxIdLength } from '../api/url.ts';
import { sumNumbers } from '../views/numbers.ts';
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
 * The dataset of one account: all ads and advertiser pages from paid API responses, and all gatherings. A gathering is
 * the stored list of all ads that match one search. The methods are asynchronous, because the dataset may be stored
 * outside this process.
 */
export interface Dataset {
  /**
   * True if the service could not confirm which account the API key belongs to, e.g. because the service is
   * unreachable. This dataset then belongs to the last account that the service confirmed for the key.
   */
  isOwnerUnconfirmed?: boolean;
  userRecords: UserRecords;
  /** Adds the ads or advertiser pages of one API response. */
  addItems(batch: ItemBatch): Promise<void>;
  /** Finds an ad or an advertiser page by its id. Returns undefined if the dataset does not contain the id. */
  findItem(type: ItemType, id: string): Promise<StoredItem | undefined>;
  /**
   * Returns a snapshot of the whole dataset. Call this only once per tool call, because reading a large dataset takes
   * long.
   */
  readContents(): Promise<DatasetContents>;
  /**
   * Returns the sequence number for the next API response. This number is higher than all earlier numbers, even if
   * several machines with different clocks write to the dataset.
   */
  nextSequenceNumber(): Promise<number>;
  /**
   * Stores one step of a gathering: the ads on the result pages that the `gather_ads` tool has just read. Storing the
   * same step twice has no further effect.
   */
  saveGathering(gathering: GatheringStep): Promise<void>;
  /** Estimates the number of ads that a single search may store, based on the average size of the stored ads. */
  estimateMaxAds(): Promise<number>;
}

/** Opens and closes the datasets (the stored ads and advertiser pages) of all accounts. */
export interface DatasetStore {
  /**
   * Opens the dataset of an API key. Other processes may add items to the same dataset at the same time.
   * @param purpose `{ toAdd: true }` if the caller only adds a paid response; the dataset then opens even if the stored
   * data cannot be read
   */
  open(caller: DatasetCaller, purpose?: { toAdd: boolean }): Promise<Dataset>;
  close(): Promise<void>;
}

/** The API key whose dataset (stored ads) is opened, and the tenant id under which the data of this key is stored. */
export type DatasetCaller = Pick<CallOwner, 'tenantId' | 'apiKey'>;

/** The ads or advertiser pages of one API response. */
interface ItemBatch extends ItemSource {
  type: ItemType;
  /**
   * Parses and returns the ads or pages. A dataset in memory usually calls this function only when a tool reads the
   * dataset, so that paid calls need not wait for the parsing.
   */
  parseItems(): readonly unknown[];
  /** The text of the API response. Set if the text is stored until its items are parsed. */
  text?: string | undefined;
  at: number;
  /** The sequence number of the API response. A later response has a higher number. */
  sequenceNumber: number;
}

/** A snapshot of a dataset. Later changes to the dataset do not change the snapshot. */
export interface DatasetContents extends ContentRecords {
  /**
   * A version that changes whenever the ads, the advertiser pages or the gatherings (stored ad lists) change. Readers
   * use this version as a cache key. Labels and picture records have versions of their own.
   */
  version: string;
  /** All ads, sorted by the sequence number of the latest API response that contained each ad. */
  ads: readonly StoredItem[];
  pages: readonly StoredItem[];
  /** All gatherings (the stored ad lists of searches), sorted from the oldest to the newest. */
  gatherings: readonly Gathering[];
  /**
   * The numbers of ads, advertiser pages and gatherings (stored ad lists) that were removed because the dataset reached
   * its size limit.
   */
  evictedCounts: { ads: number; pages: number; gatherings: number };
}

/**
 * The search and the progress of a gathering. A gathering is the stored list of all ads that match a search, which the
 * tool `gather_ads` reads page by page. Gatherings are stored in this format.
 */
export interface GatheringState {
  id: string;
  /**
   * The key of the query whose ads were gathered, from `getAdQueryKey`. All gatherings of the same query have the same
   * key. The field is part of the stored format, in which a query is called a question.
   */
  questionKey: string;
  filters: Readonly<Record<string, unknown>> | null;
  collectionId: string | null;
  /**
   * True if a call with the `fresh` argument (read all ads again) started this gathering, and the next such call may
   * continue it instead of starting over. False once the gathering is stuck, or once its complete result has been
   * returned.
   */
  isFresh: boolean;
  /**
   * The ids of the gatherings of all parts, if the `split` argument divided the search into smaller searches (parts).
   * The gathering of the whole search then contains no ads, because the gatherings of the parts contain them.
   */
  partGatheringIds: readonly string[];
  /** The total number of ads that match the search, as reported by the service. Null if this number is unknown. */
  matchingCount: number | null;
  /** The number of different ads that the service has listed for this search so far. */
  listedCount: number;
  /**
   * The credits that the service charged for the result pages, or null if the service did not report every charge. If a
   * search is split into parts, the gathering of the whole search includes the charges for the parts.
   */
  chargedCredits: number | null;
  /** True if the service returned the same result pages repeatedly, so that the gathering cannot continue. */
  isStuck: boolean;
  /** True if the last result page has been read, so that no page remains. */
  hasReadLastPage: boolean;
  /** The service's cursor for the next result page. Null if there is no next page. */
  cursor: string | null;
  /** The sequence number of the gathering. A gathering that started later has a higher number. */
  sequenceNumber: number;
  /**
   * The number of the latest step. Each step adds the ads from the result pages that the `gather_ads` tool has just
   * read.
   */
  stepNumber: number;
  /** The sequence number of the latest API response whose ads were added to the gathering. */
  responseSequenceNumber: number;
  startedAt: number;
  gatheredAt: number;
}

/**
 * One step of a gathering (the stored ad list of a search): the state after the step, and the ads that the step added.
 */
export interface GatheringStep extends GatheringState {
  /** The ids of the ads that this step added to the gathering. */
  adIds: readonly string[];
}

/**
 * A gathering (the stored ad list of one search) with computed fields for readers. If the search was split into smaller
 * searches (parts), the fields combine the parts: each count is the sum of all parts, and the time is that of the
 * oldest part.
 */
export interface Gathering extends GatheringState {
  /** The stored state from which the next call of the `gather_ads` tool continues. */
  state: GatheringState;
  /**
   * The gatherings of the parts, if the search was split into smaller searches (parts). Gatherings that have been
   * evicted are omitted.
   */
  storedParts: readonly Gathering[];
  /**
   * The number of matching ads, as reported by the service. Null if this number is unknown, or if the service has
   * listed more ads than it reported.
   */
  matchingCount: number | null;
  /** The ids of all ads in the gathering, in lower case (see `normalizeAdId`). */
  adIds: ReadonlySet<string>;
  /** The number of ads in `adIds` that were evicted from the dataset. */
  evictedCount: number;
  /** True if the last result page was read and every ad that the service listed is in the dataset. */
  isComplete: boolean;
}

/**
 * A change to a dataset, e.g. a new version of an ad. Several processes write records, so the same record may be
 * applied more than once, and records may be applied in any order.
 */
export type DatasetRecord = ItemRecord | (GatheringStep & { kind: 'gathering' });

/**
 * Returns an ad id in lower case, because ad ids are UUIDs and therefore case-insensitive. Do not use this function for
 * page ids, which are case-sensitive.
 */
export const normalizeAdId = (id: string): string => id.toLowerCase();

/**
 * Returns the ads with the given ids, in a map from id to ad. Both `ids` and the keys of the map are in lower case (see
 * `normalizeAdId`).
 */
export const pickAdsById = ({ ads }: Pick<DatasetContents, 'ads'>, ids: ReadonlySet<string>) =>
  new Map(ads.filter(({ id }) => ids.has(normalizeAdId(id))).map((item) => [normalizeAdId(item.id), item] as const));

/** The memory limit for one dataset (the stored ads of an account), in bytes. */
const maxDatasetBytes = 128 * 1024 * 1024;
/**
 * The fraction of the memory limit that one eviction frees. If an eviction freed less, the dataset would be full again
 * after a few new ads.
 */
const evictedFraction = 0.05;
/**
 * The fraction of the memory limit that the ads of one search may use. The other 20 % are reserved, because larger ads
 * at the end of a search could otherwise evict the first ads of the same search.
 */
const maxSearchFraction = 0.8;
/** The estimated memory that a dataset uses without any ads, in bytes. */
const datasetOverheadBytes = 4096;
/**
 * The assumed average size of an ad, in bytes. Used until the dataset contains `minAdsForAverage` ads, whose real
 * average is then used instead.
 */
const typicalAdBytes = 10_000;
const minAdsForAverage = 50;

let createdDatasetCount = 0;

/** A dataset (stored ads, advertiser pages and gatherings) in the memory of this process. */
export class MemoryDataset {
  /** The entries of the dataset by kind. Each table evicts its oldest entry first. */
  readonly #tables = {
    ads: new ItemTable(normalizeAdId),
    pages: new ItemTable((id) => id),
    gathering: new GatheringTable(),
  };
  /** Distinguishes this object from an earlier `MemoryDataset` of the same account. The number is part of `version`. */
  readonly #instanceNumber = ++createdDatasetCount;
  readonly #maxBytes: number;
  /** The highest sequence number of any API response in the dataset. */
  highestSequenceNumber = 0;
  #changeCount = 0;
  /** The numbers of items that the shared store has evicted. Items that this object has evicted are not included. */
  evictedCountsInStore: DatasetContents['evictedCounts'] = { ads: 0, pages: 0, gatherings: 0 };

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

  /**
   * Adds a record, which is a version of an ad or page, or a step of a gathering (stored ad list). Returns false if the
   * dataset already contained the record.
   */
  applyRecord(record: DatasetRecord): boolean {
    if (record.kind !== 'gathering')
      this.highestSequenceNumber = Math.max(this.highestSequenceNumber, record.sequenceNumber);
    const isChange =
      record.kind === 'gathering' ? this.#tables.gathering.add(record) : this.#tables[record.kind].add(record);
    if (isChange) this.#changeCount++;
    return isChange;
  }

  /**
   * Yields the content of the dataset as records. If these records are applied to an empty dataset, the result is an
   * equal dataset.
   */
  *listRecords(): Generator<DatasetRecord> {
    for (const kind of ['ads', 'pages'] as const)
      for (const { versions, ...item } of this.#tables[kind].all())
        for (const version of [...versions, item]) yield { ...item, ...version, kind };
    for (const { state, adIds } of this.#tables.gathering.entries.values())
      yield { ...state, adIds: [...adIds], kind: 'gathering' };
  }

  /**
   * Returns a snapshot of the dataset, which later changes do not affect. The snapshot includes the labels and picture
   * hashes in `contentRecords`.
   */
  getContents(contentRecords = emptyContentRecords): DatasetContents {
    const [{ ads, pages, gathering }, storeEvictions] = [this.#tables, this.evictedCountsInStore];
    return {
      version: this.version,
      ...contentRecords,
      ads: ads.all(),
      pages: pages.all(),
      gatherings: gathering.all(ads),
      evictedCounts: {
        ads: ads.evictedCount + storeEvictions.ads,
        pages: pages.evictedCount + storeEvictions.pages,
        gatherings: gathering.evictedCount + storeEvictions.gatherings,
      },
    };
  }

  /**
   * Removes an item that the shared store has evicted. Does not count the eviction, because `evictedCountsInStore`
   * already does.
   */
  removeItem(kind: DatasetRecord['kind'], id: string): void {
    if (this.#tables[kind].remove(id)) this.#changeCount++;
  }

  /** Evicts the oldest entries if the dataset exceeds its memory limit. */
  shrinkIfTooLarge(): void {
    if (this.bytes > this.#maxBytes) this.shrinkTo((1 - evictedFraction) * this.#maxBytes);
  }

  /**
   * Evicts entries until the dataset has at most `targetBytes` bytes. Evicts all ads first, then pages, then
   * gatherings, and the oldest entries of each kind first.
   */
  shrinkTo(targetBytes: number): void {
    const { ads, pages, gathering } = this.#tables;
    if (this.bytes > targetBytes) for (const itemTable of [ads, pages]) itemTable.sort();
    while (this.bytes > targetBytes) {
      if (!(ads.removeOldest() || pages.removeOldest() || gathering.removeOldest())) return;
      this.#changeCount++;
    }
  }

  estimateMaxAds(bytes = this.#maxBytes): number {
    const { ads } = this.#tables;
    const averageAdBytes = ads.entries.size < minAdsForAverage ? typicalAdBytes : ads.bytes / ads.entries.size;
    return Math.floor((maxSearchFraction * Math.min(bytes, this.#maxBytes)) / averageAdBytes);
  }
}

/**
 * The items of an API response. If consecutive responses are identical, they are combined into one batch.
 * `firstResponse` then contains the time and the sequence number of the first of these responses.
 */
export interface ResponseBatch extends ItemBatch {
  firstResponse?: { at: number; sequenceNumber: number };
}

/**
 * Parses the items of an API response and returns one record per item. Skips invalid items, e.g. items without an id.
 */
export function createItemRecords({ parseItems, text: _, ...source }: ResponseBatch): DatasetRecord[] {
  return parseItems().flatMap((item) => createItemRecord(item, source) ?? []);
}

type RecordSource = Omit<ResponseBatch, 'parseItems' | 'text'>;

function createItemRecord(item: unknown, { type, firstResponse, ...source }: RecordSource): DatasetRecord | undefined {
  if (typeof item !== 'object' || item === null) return;
  const { id, pageId } = item as { id?: unknown; pageId?: unknown };
  const itemId = type === 'ads' ? id : pageId;
  if (typeof itemId !== 'string' || itemId.trim() === '' || isDeeperThan(maxItemDepth, item)) return;
  const { at, sequenceNumber } = firstResponse ?? source;
  return { ...source, kind: type, id: itemId, since: at, sinceSequenceNumber: sequenceNumber, json: encodeJson(item) };
}

/**
 * The maximum nesting depth of an item. Deeper items are skipped, because comparing them recursively could overflow the
 * stack. Items from the service have about five levels.
 */
const maxItemDepth = 500;

const maxItemBytes = 1024 * 1024;
/** The measured memory that an item and a version need in addition to their JSON, in bytes. */
const itemOverheadBytes = 1024;
const versionOverheadBytes = 300;

/** A map that tracks the total size of its entries in bytes. `removeOldest` evicts the entry that was added first. */
class SizedTable<Entry> {
  entries = new Map<string, Entry>();
  bytes = 0;
  evictedCount = 0;
  readonly getKey: (id: string) => string;
  readonly #getBytes: (entry: Entry) => number;

  constructor(getKey: (id: string) => string, getBytes: (entry: Entry) => number) {
    this.getKey = getKey;
    this.#getBytes = getBytes;
  }

  get(id: string): Entry | undefined {
    return this.entries.get(this.getKey(id));
  }

  set(id: string, entry: Entry): void {
    const previousEntry = this.get(id);
    this.bytes += this.#getBytes(entry) - (previousEntry === undefined ? 0 : this.#getBytes(previousEntry));
    this.entries.set(this.getKey(id), entry);
  }

  remove(id: string): boolean {
    const removedEntry = this.get(id);
    if (removedEntry !== undefined) this.bytes -= this.#getBytes(removedEntry);
    return this.entries.delete(this.getKey(id));
  }

  /** Evicts the first entry. Returns false if the table is empty. */
  removeOldest(): boolean {
    const [key] = this.entries.keys();
    if (key === undefined) return false;
    this.evictedCount++;
    return this.remove(key);
  }
}

/** The ads or advertiser pages of a dataset, roughly sorted by the latest API response that contained each item. */
class ItemTable extends SizedTable<StoredItem> {
  constructor(getKey: (id: string) => string) {
    super(getKey, estimateBytes);
  }

  all(): StoredItem[] {
    return [...this.entries.values()].sort(compareItems);
  }

  /**
   * Sorts the entries by sequence number, so that the oldest entry is evicted first. Sorting is necessary because
   * records may be added in any order.
   */
  sort(): void {
    this.entries = new Map(this.all().map((item) => [this.getKey(item.id), item]));
  }

  /**
   * Adds a version of an ad or page. Returns false if the table already contained this version, if the item is too
   * large, or if its id is invalid.
   */
  add(record: ItemRecord): boolean {
    const storedItem = this.get(record.id);
    if (record.id === '' || record.id.length > maxIdLength) return false;
    const item = storedItem === undefined ? createItem(record) : addVersion(storedItem, record);
    if (item === storedItem) return false;
    if (item.json.length > maxItemBytes) {
      this.evictedCount++;
      return false;
    }
    if (item.sequenceNumber !== storedItem?.sequenceNumber) this.remove(record.id);
    this.set(record.id, item);
    return true;
  }
}

const compareItems = (left: StoredItem, right: StoredItem): number => left.sequenceNumber - right.sequenceNumber;

const estimateBytes = ({ id, json, versions }: StoredItem): number =>
  versions.reduce(
    (sum, version) => sum + version.json.length + versionOverheadBytes,
    itemOverheadBytes + 4 * id.length + json.length,
  );

interface GatheringEntry {
  state: GatheringState;
  adIds: ReadonlySet<string>;
  bytes: number;
}

/**
 * Limits and memory estimates for the gatherings (stored ad lists) of a dataset: the maximum number and total size of
 * gatherings, and the memory overhead per gathering and per ad id. All sizes are in bytes.
 */
const maxGatherings = 500;
const maxGatheringBytes = 16 * 1024 * 1024;
const gatheringOverheadBytes = 1024;
const idOverheadBytes = 128;

/**
 * The gatherings (the stored ad lists of searches) of a dataset. If a limit is exceeded, the least recently updated
 * gathering is evicted first.
 */
class GatheringTable extends SizedTable<GatheringEntry> {
  constructor() {
    super(
      (id) => id,
      ({ bytes }) => bytes,
    );
  }

  all(ads: SizedTable<StoredItem>): Gathering[] {
    const gatherings = [...this.entries.values()]
      .sort(
        ({ state: left }, { state: right }) =>
          left.sequenceNumber - right.sequenceNumber || left.startedAt - right.startedAt,
      )
      .map(({ state, adIds }): Gathering => {
        let evictedCount = 0;
        for (const id of adIds) if (ads.get(id) === undefined) evictedCount++;
        const isTotalPlausible =
          state.matchingCount !== null && state.matchingCount >= Math.max(adIds.size, state.listedCount);
        const isComplete = state.hasReadLastPage && evictedCount === 0 && adIds.size >= state.listedCount;
        const visibleState = { ...state, matchingCount: isTotalPlausible ? state.matchingCount : null };
        return {
          ...visibleState,
          state: visibleState,
          adIds,
          evictedCount,
          isComplete,
          storedParts: [],
        };
      });
    return gatherings.map((gathering) =>
      gathering.partGatheringIds.length === 0 ? gathering : combineParts(gathering, gatherings),
    );
  }

  /**
   * Adds a step of a gathering, which contains further ads of the same search. Steps may arrive in any order. Returns
   * false if the table already contained the step.
   */
  add({ adIds, kind: _, ...state }: GatheringStep & { kind: 'gathering' }): boolean {
    const storedEntry = this.entries.get(state.id);
    const combinedIds = new Set(storedEntry?.adIds);
    for (const id of adIds) combinedIds.add(normalizeAdId(id));
    const newestState = storedEntry === undefined || isNewerState(state, storedEntry.state) ? state : storedEntry.state;
    if (newestState === storedEntry?.state && combinedIds.size === storedEntry.adIds.size) return false;
    const bytes = gatheringOverheadBytes + 2 * JSON.stringify(newestState).length + idOverheadBytes * combinedIds.size;
    this.set(state.id, { state: newestState, adIds: combinedIds, bytes });
    this.#moveToEnd(newestState);
    while (this.entries.size > maxGatherings || this.bytes > maxGatheringBytes) this.removeOldest();
    return true;
  }

  /**
   * Moves a gathering to the end of the table, so that it is evicted last. If the gathering belongs to a search that
   * was split into parts, also moves the gatherings of the whole search and of the other parts.
   */
  #moveToEnd({ id, partGatheringIds }: GatheringState): void {
    const wholeGatherings = [...this.entries.values()].filter(
      ({ state }) => !state.hasReadLastPage && state.partGatheringIds.includes(id),
    );
    const idsToMove = [
      ...wholeGatherings.flatMap(({ state }) => [state.id, ...state.partGatheringIds]),
      ...partGatheringIds,
      id,
    ];
    for (const gatheringId of new Set(idsToMove)) {
      const entry = this.entries.get(gatheringId);
      if (entry === undefined) continue;
      this.entries.delete(gatheringId);
      this.entries.set(gatheringId, entry);
    }
  }
}

/**
 * Combines the gatherings of a search that was split into smaller searches (parts). The combined gathering has the ads
 * of all parts, the sums of their counts, and the time of the oldest part.
 */
function combineParts(gathering: Gathering, allGatherings: readonly Gathering[]): Gathering {
  const { hasReadLastPage, gatheredAt } = gathering;
  const partGatheringIds = new Set(gathering.partGatheringIds);
  const storedParts = allGatherings.filter(({ id }) => partGatheringIds.has(id));
  const totals = storedParts.flatMap(({ matchingCount }) => matchingCount ?? []);
  let combinedAdIds: ReadonlySet<string> | undefined;
  return {
    ...gathering,
    storedParts,
    matchingCount: totals.length === partGatheringIds.size ? sumNumbers(totals) : null,
    gatheredAt: storedParts.length === 0 ? gatheredAt : Math.min(...storedParts.map((part) => part.gatheredAt)),
    // Collect the ad ids only when a caller needs them. There may be thousands of ids, and most callers need none.
    get adIds() {
      combinedAdIds ??= new Set(storedParts.flatMap(({ adIds }) => [...adIds]));
      return combinedAdIds;
    },
    evictedCount: sumNumbers(storedParts.map(({ evictedCount }) => evictedCount)),
    isComplete:
      hasReadLastPage &&
      storedParts.length === partGatheringIds.size &&
      storedParts.every(({ isComplete }) => isComplete),
  };
}

/**
 * Returns true if `newState` should replace the stored state. If two processes stored the same step at the same time,
 * the state with `hasReadLastPage` takes precedence, so that `gather_ads` does not read a completed search again.
 */
function isNewerState(newState: GatheringState, storedState: GatheringState): boolean {
  if (newState.stepNumber !== storedState.stepNumber) return newState.stepNumber > storedState.stepNumber;
  if (newState.gatheredAt !== storedState.gatheredAt) return newState.gatheredAt > storedState.gatheredAt;
  return !storedState.hasReadLastPage && !isDeepStrictEqual(newState, storedState);
}
