import type { ItemType } from '../api/schemas.ts';
import { type DatasetContents, type ItemBatch, idKey, type StoredItem } from './dataset.ts';
import type { DatasetRecord } from './dataset-record.ts';
import { GatheringTable } from './gathering-table.ts';
import { firstVersion, type ItemRecord, jsonBytes, withVersion } from './item-history.ts';

/** The overhead of a dataset, however little is in it. */
const DATASET_BYTES = 4096;
/** Bytes of an ad while there are too few to tell. */
const TYPICAL_AD_BYTES = 10_000;
const MIN_ADS = 50;

/** A dataset in the memory of this process. */
export class MemoryDataset {
  readonly #items: Record<ItemType, ItemTable> = { ads: new ItemTable(idKey), pages: new ItemTable((id) => id) };
  readonly #gatherings = new GatheringTable(this.#items.ads);
  /** Tells the versions of this object from those of one that took its place. */
  readonly name: string;
  /** The highest place of an item. */
  order = 0;
  #changes = 0;

  /** @param letGo what was removed before */
  constructor(name: string, letGo?: DatasetContents['letGo']) {
    this.name = name;
    this.#items.ads.letGo = letGo?.ads ?? 0;
    this.#items.pages.letGo = letGo?.pages ?? 0;
    this.#gatherings.letGo = letGo?.gatherings ?? 0;
  }

  /** Its estimated memory. */
  get bytes(): number {
    const { ads, pages } = this.#items;
    return DATASET_BYTES + ads.bytes + pages.bytes + this.#gatherings.bytes;
  }

  get isEmpty(): boolean {
    return this.#items.ads.size + this.#items.pages.size + this.#gatherings.size === 0;
  }

  get letGo(): DatasetContents['letGo'] {
    const { ads, pages } = this.#items;
    return { ads: ads.letGo, pages: pages.letGo, gatherings: this.#gatherings.letGo };
  }

  get version(): string {
    return `${this.name}.${this.#changes}`;
  }

  item(type: ItemType, id: string) {
    return this.#items[type].get(id);
  }

  apply(record: DatasetRecord): void {
    if (this.#apply(record)) this.#changes++;
  }

  #apply(record: DatasetRecord): boolean {
    if (record.kind === 'gathering') return this.#gatherings.save(record);
    this.order = Math.max(this.order, record.order);
    return this.#items[record.kind].add(record);
  }

  /** Everything in it. */
  *records(): Generator<DatasetRecord> {
    for (const kind of ['ads', 'pages'] as const)
      for (const { versions, ...item } of this.#items[kind].all())
        for (const version of [...versions, item]) yield { ...item, ...version, kind };
    for (const step of this.#gatherings.steps()) yield { ...step, kind: 'gathering' };
  }

  contents(): DatasetContents {
    const { ads, pages } = this.#items;
    return {
      version: this.version,
      ads: ads.all(),
      pages: pages.all(),
      gatherings: this.#gatherings.all(),
      letGo: this.letGo,
    };
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
    const each = ads.size < MIN_ADS ? TYPICAL_AD_BYTES : ads.bytes / ads.size;
    return Math.floor(bytes / each);
  }
}

/** Ads or pages that have their place. */
export type OrderedBatch = ItemBatch & { order: number };

/** What is an ad or a page in an answer. */
export function recordsOf({ items, ...source }: OrderedBatch): DatasetRecord[] {
  return items.flatMap((item) => recordOf(item, source) ?? []);
}

function recordOf(item: unknown, { type, ...source }: Omit<OrderedBatch, 'items'>): DatasetRecord | undefined {
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
const MAX_ITEM_BYTES = 1024 * 1024;
const MAX_ID_CHARS = 200;
/** The overhead of an item: its objects, its entry in the map, its buffer. Measured. */
const ITEM_BYTES = 1024;
const VERSION_BYTES = 300;

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
    if (key === '' || key.length > MAX_ID_CHARS) return false;
    const item = known === undefined ? firstVersion(record) : comparedWith(known, record);
    if (item === known) return false;
    if (item === undefined || item.json.length > MAX_ITEM_BYTES) {
      this.letGo++;
      return false;
    }
    if (known !== undefined) this.bytes -= bytesOf(known);
    if (item.order !== known?.order) this.#items.delete(key);
    this.#items.set(key, item);
    this.bytes += bytesOf(item);
    return true;
  }

  /** False if there is nothing to remove. */
  removeOldest(): boolean {
    for (const [key, item] of this.#items) {
      this.#items.delete(key);
      this.bytes -= bytesOf(item);
      this.letGo++;
      return true;
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
  versions.reduce(
    (sum, version) => sum + version.json.length + VERSION_BYTES,
    ITEM_BYTES + 4 * id.length + json.length,
  );
