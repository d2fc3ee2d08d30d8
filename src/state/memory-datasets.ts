import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/schemas.ts';
import {
  type Dataset,
  type DatasetCaller,
  type DatasetContents,
  type DatasetRecord,
  type Datasets,
  firstVersion,
  type Gathering,
  type GatheringState,
  type GatheringStep,
  type ItemBatch,
  type ItemRecord,
  idKey,
  jsonBytes,
  type StoredItem,
  withVersion,
} from './dataset.ts';

export interface MemoryDatasetsOptions {
  /** For all tenants together. */
  maxBytes?: number;
  /** For one tenant. */
  maxBytesEach?: number;
  /** Where what came before is not known yet: what comes now has a place that is no lower than the time. */
  now?: () => number;
}

const MB = 1024 * 1024;
/** So much is freed beyond what is necessary, so that not every new ad has to go through all tenants. */
const slack = 0.05;
/** The part that whoever holds the most keeps where there is no more room for all. */
const partLeft = 0.75;
/** A gathering should not displace its own first ads: gatherings, pages and larger ads take room, too. */
const usable = 0.8;
/** Characters of answers that were not taken apart, of all tenants together. */
const maxUnread = 16 * MB;
const typicalAnswer = 100_000;
const answerOverhead = 1000;

interface UnreadAnswer {
  tenantId: string;
  batch: OrderedBatch;
  size: number;
}

/**
 * The datasets of all tenants in the memory of this process: when there is no more room, whoever holds the most loses
 * what came longest ago. Answers are taken apart when somebody reads what their tenant has, so that no caller waits for
 * it; of those that nobody reads, the oldest between other work when there are too many.
 */
export class MemoryDatasets implements Datasets {
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #nothing = new MemoryDataset();
  readonly #now: () => number;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number;
  /** In the order in which they came. */
  #unread: UnreadAnswer[] = [];
  #unreadSize = 0;
  #bytes = 0;
  /** The highest place of all. */
  #order = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach = 128 * MB, now = () => 0 }: MemoryDatasetsOptions = {}) {
    this.#now = now;
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = Math.min(maxBytes, maxBytesEach);
  }

  /** Bytes held, as they are counted. */
  get bytes(): number {
    this.#takeApart(() => true);
    return this.#bytes;
  }

  async of({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const known = () => this.#datasetOf(tenantId) ?? this.#nothing;
    return {
      addItems: async (batch) => this.#push(tenantId, { ...batch, order: batch.order ?? this.nextOrder() }),
      saveGathering: async (step) => {
        this.#datasetOf(tenantId);
        this.apply(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      order: async () => this.nextOrder(),
      item: async (type, id) => known().item(type, id),
      contents: async () => known().contents(),
      maxAds: async () => known().adsIn(usable * this.#roomOf(tenantId)),
    };
  }

  /** Everything that a tenant has, and bytes of it, as they are counted. */
  records(tenantId: string): Iterable<DatasetRecord> {
    return this.#datasetOf(tenantId)?.records() ?? [];
  }

  bytesOf(tenantId: string): number {
    return this.#datasetOf(tenantId)?.bytes ?? 0;
  }

  forget(tenantId: string): void {
    this.#bytes -= this.bytesOf(tenantId);
    this.#datasets.delete(tenantId);
  }

  nextOrder(): number {
    this.#order = Math.max(this.#order + 1, this.#now());
    return this.#order;
  }

  async close(): Promise<void> {
    this.#unread = [];
    this.#datasets.clear();
  }

  #push(tenantId: string, batch: OrderedBatch): void {
    const size = answerOverhead + (batch.size ?? typicalAnswer);
    this.#unread.push({ tenantId, batch, size });
    this.#unreadSize += size;
    if (this.#unreadSize > maxUnread) setImmediate(() => this.#takeApart(() => this.#unreadSize > maxUnread));
  }

  #takeApart(isDue: (answer: UnreadAnswer) => boolean): void {
    this.#unread = this.#unread.filter((answer) => {
      if (!isDue(answer)) return true;
      this.#unreadSize -= answer.size;
      this.apply(answer.tenantId, recordsOf(answer.batch));
      return false;
    });
  }

  #datasetOf(tenantId: string): MemoryDataset | undefined {
    this.#takeApart((answer) => answer.tenantId === tenantId);
    return this.#datasets.get(tenantId);
  }

  /** Changes a tenant's dataset, and makes room if it has grown. Returns the records that changed something. */
  apply(tenantId: string, records: readonly DatasetRecord[]): DatasetRecord[] {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset();
    let changing: DatasetRecord[] = [];
    this.#resize(tenantId, dataset, () => {
      changing = records.filter((record) => dataset.apply(record));
      this.#order = Math.max(this.#order, dataset.order);
      if (dataset.bytes > this.#maxBytesEach) dataset.shrinkTo((1 - slack) * this.#maxBytesEach);
    });
    while (this.#bytes > this.#maxBytes) {
      const byBytes = [...this.#datasets].reduce((one, other) => (other[1].bytes > one[1].bytes ? other : one));
      this.#resize(...byBytes, () => byBytes[1].shrinkTo(partLeft * byBytes[1].bytes));
    }
    return changing;
  }

  #resize(tenantId: string, dataset: MemoryDataset, change: () => void): void {
    if (this.#datasets.has(tenantId)) this.#bytes -= dataset.bytes;
    change();
    if (dataset.isEmpty) this.#datasets.delete(tenantId);
    else this.#datasets.set(tenantId, dataset);
    if (!dataset.isEmpty) this.#bytes += dataset.bytes;
  }

  /** What a tenant may hold if all others keep what they have, but at least a fair share. */
  #roomOf(tenantId: string): number {
    const own = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (own === 0 ? 1 : 0);
    return Math.min(this.#maxBytesEach, Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - own)));
  }
}

/** The overhead of a dataset, however little is in it. */
const datasetBytes = 4096;
/** Bytes of an ad while there are too few to tell. */
const typicalAdBytes = 10_000;
const minAds = 50;

let created = 0;

/** A dataset in the memory of this process. */
export class MemoryDataset {
  readonly #items: Record<ItemType, ItemTable> = { ads: new ItemTable(idKey), pages: new ItemTable((id) => id) };
  readonly #gatherings = new GatheringTable(this.#items.ads);
  /** Tells the versions of this object from those of one that took its place. */
  readonly #name = ++created;
  /** The highest place of an item. */
  order = 0;
  #changes = 0;
  /** What was removed where the dataset is kept, beside what was here. */
  goneElsewhere: DatasetContents['letGo'] = { ads: 0, pages: 0, gatherings: 0 };

  /** Its estimated memory. */
  get bytes(): number {
    const { ads, pages } = this.#items;
    return datasetBytes + ads.bytes + pages.bytes + this.#gatherings.bytes;
  }

  get isEmpty(): boolean {
    return this.#items.ads.size + this.#items.pages.size + this.#gatherings.size === 0;
  }

  get version(): string {
    return `${this.#name}.${this.#changes}`;
  }

  item(type: ItemType, id: string) {
    return this.#items[type].get(id);
  }

  /** Returns whether it changed anything. */
  apply(record: DatasetRecord): boolean {
    if (record.kind !== 'gathering') this.order = Math.max(this.order, record.order);
    const isChange = record.kind === 'gathering' ? this.#gatherings.save(record) : this.#items[record.kind].add(record);
    if (isChange) this.#changes++;
    return isChange;
  }

  /** Everything in it. */
  *records(): Generator<DatasetRecord> {
    for (const kind of ['ads', 'pages'] as const)
      for (const { versions, ...item } of this.#items[kind].all())
        for (const version of [...versions, item]) yield { ...item, ...version, kind };
    for (const step of this.#gatherings.steps()) yield { ...step, kind: 'gathering' };
  }

  contents(): DatasetContents {
    const [{ ads, pages }, gatherings, gone] = [this.#items, this.#gatherings, this.goneElsewhere];
    return {
      version: this.version,
      ads: ads.all(),
      pages: pages.all(),
      gatherings: gatherings.all(),
      letGo: {
        ads: ads.letGo + gone.ads,
        pages: pages.letGo + gone.pages,
        gatherings: gatherings.letGo + gone.gatherings,
      },
    };
  }

  /** Removes what is not kept elsewhere any more either, without counting it. */
  remove(kind: DatasetRecord['kind'], id: string): void {
    const isRemoved = kind === 'gathering' ? this.#gatherings.remove(id) : this.#items[kind].remove(id);
    if (isRemoved) this.#changes++;
  }

  /** Removes what came longest ago until no more than so many bytes are left. */
  shrinkTo(bytes: number): void {
    const { ads, pages } = this.#items;
    if (this.bytes > bytes) for (const items of [ads, pages]) items.sort();
    while (this.bytes > bytes) {
      if (!(ads.removeOldest() || pages.removeOldest() || this.#gatherings.removeOldest())) return;
      this.#changes++;
    }
  }

  /** How many ads as large as these fit into so many bytes. */
  adsIn(bytes: number): number {
    const { ads } = this.#items;
    const each = ads.size < minAds ? typicalAdBytes : ads.bytes / ads.size;
    return Math.floor(bytes / each);
  }
}

/** Ads or pages that have their place. */
type OrderedBatch = ItemBatch & { order: number };

/** What is an ad or a page in an answer. */
export function recordsOf({ items, size: _, ...source }: OrderedBatch): DatasetRecord[] {
  return items().flatMap((item) => recordOf(item, source) ?? []);
}

function recordOf(item: unknown, { type, ...source }: Omit<OrderedBatch, 'items' | 'size'>): DatasetRecord | undefined {
  if (typeof item !== 'object' || item === null) return;
  const { id, pageId } = item as { id?: unknown; pageId?: unknown };
  const name = type === 'ads' ? id : pageId;
  const json = typeof name === 'string' ? jsonOf(item) : undefined;
  if (typeof name !== 'string' || name.trim() === '' || json === undefined) return;
  return { ...source, kind: type, id: name, since: source.at, sinceOrder: source.order, json };
}

/** Undefined for an object that is nested deeper than it can be written. */
function jsonOf(item: object): Uint8Array | undefined {
  try {
    return jsonBytes(item);
  } catch (error) {
    if (error instanceof RangeError) return;
    throw error;
  }
}

/** Ads have a few kilobytes. */
const maxItemBytes = 1024 * 1024;
const maxIdChars = 200;
/** The overhead of an item: its objects, its entry in the map, its buffer. Measured. */
const itemBytes = 1024;
const versionBytes = 300;

/** The newest versions of ads or pages with their earlier ones. */
class ItemTable {
  /** By their ids as `#keyOf` writes them, roughly in the order they came. */
  #items = new Map<string, StoredItem>();
  readonly #keyOf: (id: string) => string;
  bytes = 0;
  letGo = 0;

  constructor(keyOf: (id: string) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#items.size;
  }

  get(id: string): StoredItem | undefined {
    return this.#items.get(this.#keyOf(id));
  }

  /** The one that came longest ago first. */
  all(): StoredItem[] {
    return [...this.#items.values()].sort(byOrder);
  }

  sort(): void {
    this.#items = new Map(this.all().map((item) => [this.#keyOf(item.id), item]));
  }

  /** Takes a version in; the same one twice changes nothing. Returns whether anything changed. */
  add(record: ItemRecord): boolean {
    const key = this.#keyOf(record.id);
    const known = this.#items.get(key);
    if (key === '' || key.length > maxIdChars) return false;
    const item = known === undefined ? firstVersion(record) : comparedWith(known, record);
    if (item === known) return false;
    if (item === undefined || item.json.length > maxItemBytes) {
      this.letGo++;
      return false;
    }
    if (known !== undefined) this.bytes -= bytesOf(known);
    if (item.order !== known?.order) this.#items.delete(key);
    this.#items.set(key, item);
    this.bytes += bytesOf(item);
    return true;
  }

  /** False if it is not there. */
  remove(id: string): boolean {
    const key = this.#keyOf(id);
    const item = this.#items.get(key);
    if (item === undefined) return false;
    this.#items.delete(key);
    this.bytes -= bytesOf(item);
    return true;
  }

  /** False if there is nothing to remove. */
  removeOldest(): boolean {
    for (const { id } of this.#items.values()) {
      this.letGo++;
      return this.remove(id);
    }
    return false;
  }
}

const byOrder = (left: StoredItem, right: StoredItem): number => left.order - right.order;

/** Undefined for an object that is nested too deep to compare. */
function comparedWith(known: StoredItem, record: ItemRecord): StoredItem | undefined {
  try {
    return withVersion(known, record);
  } catch (error) {
    if (error instanceof RangeError) return;
    throw error;
  }
}

const bytesOf = ({ id, json, versions }: StoredItem): number =>
  versions.reduce((sum, version) => sum + version.json.length + versionBytes, itemBytes + 4 * id.length + json.length);

interface Entry {
  state: GatheringState;
  adIds: ReadonlySet<string>;
  bytes: number;
}

/** The ads that are kept. */
interface KeptAds {
  get(id: string): unknown;
}

const maxGatherings = 500;
const maxGatheringBytes = 16 * 1024 * 1024;
const gatheringBytes = 1024;
/** An id in a set. */
const idBytes = 128;

/** The gatherings of a dataset. Those that were read longest ago are removed when there are too many. */
class GatheringTable {
  /** The one that was read longest ago first. */
  readonly #entries = new Map<string, Entry>();
  readonly #ads: KeptAds;
  bytes = 0;
  letGo = 0;

  constructor(ads: KeptAds) {
    this.#ads = ads;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The one that began first is first. */
  all(): Gathering[] {
    return [...this.#entries.values()]
      .sort(({ state: left }, { state: right }) => left.order - right.order || left.startedAt - right.startedAt)
      .map(({ state, adIds }) => {
        let missing = 0;
        for (const id of adIds) if (this.#ads.get(id) === undefined) missing++;
        const isBelievable = state.found !== null && state.found >= Math.max(adIds.size, state.listed);
        return {
          ...state,
          found: isBelievable ? state.found : null,
          gatheredAt: this.#timeOf(state),
          adIds,
          missing,
          complete: state.ended && missing === 0 && adIds.size >= state.listed,
        };
      });
  }

  #timeOf({ parts, gatheredAt }: GatheringState): number {
    const times = parts.flatMap((id) => this.#entries.get(id)?.state.gatheredAt ?? []);
    return times.length === 0 ? gatheredAt : Math.min(...times);
  }

  /** What brings it back as it is, in any order. */
  steps(): GatheringStep[] {
    return [...this.#entries.values()].map(({ state, adIds }) => ({ ...state, adIds: [...adIds] }));
  }

  /** Takes a step in, in whatever order steps come; the same one twice changes nothing. Returns whether it did. */
  save({ adIds, kind: _, ...state }: GatheringStep & { kind: 'gathering' }): boolean {
    const known = this.#entries.get(state.id);
    const ids = new Set(known?.adIds);
    for (const id of adIds) ids.add(idKey(id));
    const newest = known === undefined || isLater(state, known.state) ? state : known.state;
    if (newest === known?.state && ids.size === known.adIds.size) return false;
    const bytes = gatheringBytes + 2 * JSON.stringify(newest).length + idBytes * ids.size;
    this.bytes += bytes - (known?.bytes ?? 0);
    this.#entries.set(state.id, { state: newest, adIds: ids, bytes });
    this.#keepLongest(newest);
    while (this.#entries.size > maxGatherings || this.bytes > maxGatheringBytes) this.removeOldest();
    return true;
  }

  /** What is being read is the last to be removed, with what it is a part of, and all parts of that. */
  #keepLongest({ id, parts }: GatheringState): void {
    const wholes = [...this.#entries.values()].filter(({ state }) => !state.ended && state.parts.includes(id));
    const read = [...wholes.flatMap(({ state }) => [state.id, ...state.parts]), ...parts, id];
    for (const name of new Set(read)) {
      const entry = this.#entries.get(name);
      if (entry === undefined) continue;
      this.#entries.delete(name);
      this.#entries.set(name, entry);
    }
  }

  /** False if it is not there. */
  remove(id: string): boolean {
    this.bytes -= this.#entries.get(id)?.bytes ?? 0;
    return this.#entries.delete(id);
  }

  /** False if there is nothing to remove. */
  removeOldest(): boolean {
    for (const id of this.#entries.keys()) {
      this.letGo++;
      return this.remove(id);
    }
    return false;
  }
}

/** One that ended is not opened again by a step that another process made at the same time. */
function isLater(state: GatheringState, known: GatheringState): boolean {
  if (state.step !== known.step) return state.step > known.step;
  if (state.gatheredAt !== known.gatheredAt) return state.gatheredAt > known.gatheredAt;
  return !known.ended && !isDeepStrictEqual(state, known);
}
