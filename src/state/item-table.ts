import { idKey, type StoredItem } from './dataset.ts';
import { firstVersion, type ItemRecord, withVersion } from './item-history.ts';

/** Ads have a few kilobytes. */
const MAX_ITEM_BYTES = 1024 * 1024;
const MAX_ID_CHARS = 200;
/** The overhead of an item: its objects, its entry in the map, its buffer. Measured. */
const ITEM_BYTES = 1024;
const VERSION_BYTES = 300;

/** The newest versions of ads or pages with their earlier ones. The one that came longest ago is first. */
export class ItemTable {
  readonly #items = new Map<string, StoredItem>();
  bytes = 0;
  letGo = 0;

  get size(): number {
    return this.#items.size;
  }

  get(id: string): StoredItem | undefined {
    return this.#items.get(idKey(id));
  }

  all(): StoredItem[] {
    return [...this.#items.values()];
  }

  /** Takes a version in; the same one twice changes nothing. Returns whether anything changed. */
  add(record: ItemRecord): boolean {
    const key = idKey(record.id);
    const known = this.#items.get(key);
    if (key === '' || key.length > MAX_ID_CHARS) return false;
    const item = known === undefined ? firstVersion(record) : comparedWith(known, record);
    if (item === known) return false;
    if (item === undefined || item.json.length > MAX_ITEM_BYTES) {
      this.letGo++;
      return false;
    }
    if (known !== undefined) this.bytes -= bytesOf(known);
    if (item.at !== known?.at) this.#items.delete(key);
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
