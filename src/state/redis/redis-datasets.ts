import { LRUCache } from 'lru-cache';
import type { Dataset, DatasetCaller, Datasets } from '../dataset.ts';
import type { DatasetRecord } from '../dataset-record.ts';
import { recordsOf } from '../memory-datasets.ts';
import { DatasetCopy } from './dataset-copy.ts';
import { DATASET_TTL, DatasetLog } from './dataset-log.ts';
import { DatasetRoom } from './dataset-room.ts';
import { Holdings } from './holdings.ts';
import type { Redis } from './open-redis.ts';
import { type RedisCommands, unlessReply } from './redis-commands.ts';
import { Renewals } from './renewals.ts';
import { type SealedRecords, sealedRecords } from './sealed-records.ts';
import { UnsentParts } from './unsent-parts.ts';

export interface RedisDatasetsOptions {
  redis: Pick<Redis, 'connection' | 'seal' | 'keyOf' | 'now'>;
  warn(message: string, fields: Record<string, unknown>): void;
  limits?: RedisDatasetsLimits;
}

export interface RedisDatasetsLimits {
  /** Of Redis, for all tenants together and for one. */
  maxBytes?: number;
  maxBytesEach?: number;
  /** Of the memory of this process, likewise. */
  maxMemory?: number;
  maxMemoryEach?: number;
}

const MB = 1024 * 1024;
/** A gathering should not displace its own first ads. */
const USABLE = 0.8;

/** The parts of one dataset. */
interface Opened {
  name: string;
  log: DatasetLog;
  records: SealedRecords;
}

/**
 * The datasets of all tenants, which all replicas share. Whoever adds to one need not have read it; whoever reads one
 * keeps a copy and fetches only what is new. If Redis cannot be reached, a dataset is `unavailable` and never empty.
 */
export class RedisDatasets implements Datasets {
  readonly #options: RedisDatasetsOptions;
  readonly #limits: Required<RedisDatasetsLimits>;
  readonly #copies: LRUCache<string, DatasetCopy>;
  readonly #holdings: Holdings;
  readonly #unsent = new UnsentParts();
  readonly #merges = new Map<string, Promise<number | undefined>>();
  readonly #retries: Renewals;
  readonly #room: DatasetRoom;
  #copied = 0;
  /** The highest place of all that this replica has seen. */
  #order = 0;
  readonly #notMerged = (error: unknown) => this.#warn('a dataset was not merged', error);

  constructor(options: RedisDatasetsOptions) {
    const {
      maxBytes = 1024 * MB,
      maxBytesEach = 64 * MB,
      maxMemory = 256 * MB,
      maxMemoryEach = 128 * MB,
    } = options.limits ?? {};
    this.#options = options;
    this.#limits = { maxBytes, maxBytesEach: Math.min(maxBytes, maxBytesEach), maxMemory, maxMemoryEach };
    this.#copies = new LRUCache({ maxSize: maxMemory, sizeCalculation: ({ bytes }) => bytes });
    this.#holdings = new Holdings(options.redis, 'datasets', DATASET_TTL);
    this.#room = new DatasetRoom({
      holdings: this.#holdings,
      maxBytes,
      merge: async (name, maxBytesOfIt) => {
        await this.#merges.get(name)?.catch(() => {});
        return this.#merge(this.#open(name), maxBytesOfIt);
      },
      onError: this.#notMerged,
    });
    const { connection } = options.redis;
    this.#retries = new Renewals(() => this.#sendUnsent(connection));
    connection.onUp((commands) => this.#sendUnsent(commands).catch(unlessReply));
  }

  /** Bytes of all copies, as they are counted. */
  get memory(): number {
    return this.#copies.calculatedSize;
  }

  async of({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const opened = this.#open(this.#nameOf(tenantId));
    const synced = () => this.#synced(opened);
    const order = () => this.#nextOrder(opened);
    return {
      order,
      addItems: async (batch) => this.#add(opened, recordsOf({ ...batch, order: batch.order ?? (await order()) })),
      saveGathering: (step) => this.#add(opened, [{ ...step, kind: 'gathering' }]),
      item: async (type, id) => (await synced()).item(type, id),
      contents: async () => (await synced()).contents(),
      maxAds: async () => (await synced()).adsIn(USABLE * this.#limits.maxMemoryEach),
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#merges.values());
    await this.#room.made();
    for (const name of this.#unsent.names()) await this.#send(this.#open(name)).catch(() => {});
    this.#retries.stop();
    this.#copies.clear();
  }

  #nameOf(tenantId: string): string {
    return this.#options.redis.keyOf(tenantId, 'dataset');
  }

  #open(name: string): Opened {
    const { connection, seal } = this.#options.redis;
    return { name, log: new DatasetLog(connection, name), records: sealedRecords(seal, name) };
  }

  async #synced(opened: Opened) {
    const { name } = opened;
    await this.#send(opened);
    const copy = this.#copyOf(opened);
    const dataset = await copy.synced();
    this.#order = Math.max(this.#order, dataset.order);
    this.#keep(name, copy);
    return dataset;
  }

  /** While Redis cannot be reached, by what this replica knows. */
  async #nextOrder({ log }: Opened): Promise<number> {
    const known = Math.max(this.#order, this.#options.redis.now() - 1);
    this.#order = await log.order(this.#order).catch(() => known + 1);
    return this.#order;
  }

  #copyOf({ name, log, records }: Opened): DatasetCopy {
    const known = this.#copies.get(name);
    if (known !== undefined) return known;
    const newName = () => `r${++this.#copied}`;
    const copy = new DatasetCopy({ log, records, maxBytes: this.#limits.maxMemoryEach, newName });
    this.#keep(name, copy);
    return copy;
  }

  /** With the size that it has now. */
  #keep(name: string, copy: DatasetCopy): void {
    this.#copies.delete(name);
    this.#copies.set(name, copy);
  }

  /** What cannot be sent now is sent later: it was paid for. */
  async #add(opened: Opened, records: readonly DatasetRecord[]): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of opened.records.write(records)) parts.push(part);
    await this.#send(opened, parts);
  }

  async #send(opened: Opened, added: readonly Buffer[] = []): Promise<void> {
    const { name, log } = opened;
    const parts = [...this.#unsent.take(name), ...added];
    try {
      if (parts.length === 0) return;
      const appended = await log.append(parts);
      // Sent: what goes wrong from here on need not keep them.
      parts.length = 0;
      await this.#afterAppend(opened, appended);
    } catch (error) {
      this.#keepUnsent(name, parts, error);
      throw error;
    }
  }

  #keepUnsent(name: string, parts: readonly Buffer[], error: unknown): void {
    const lost = parts.filter((part) => !this.#unsent.add(name, part));
    this.#retries.start();
    if (lost.length > 0) this.#warn('answers are lost to a dataset: too much waits for the shared state', error);
  }

  /** Others should not have to wait until this replica is asked for the same dataset again. */
  async #sendUnsent(commands: RedisCommands): Promise<void> {
    for (const name of this.#unsent.names()) {
      const parts = this.#unsent.take(name);
      await new DatasetLog(commands, name).append(parts).catch((error: unknown) => {
        this.#keepUnsent(name, parts, error);
        throw error;
      });
    }
    if (this.#unsent.names().length === 0) this.#retries.stop();
  }

  /** Callers wait only where there is no more room for their own. */
  async #afterAppend(opened: Opened, { bytes, isLong }: { bytes: number; isLong: boolean }): Promise<void> {
    const { maxBytesEach } = this.#limits;
    const merged = () =>
      this.#merge(opened, maxBytesEach)
        .then((total) => this.#room.make(total))
        .catch(this.#notMerged);
    const total = await this.#holdings.set({ name: opened.name, bytes }).catch(this.#notMerged);
    if (bytes > maxBytesEach) await merged();
    else if (isLong) void merged();
    this.#room.make(total ?? 0);
  }

  /** Returns how much all datasets hold; undefined if another replica was faster. */
  #merge(opened: Opened, maxBytes: number): Promise<number | undefined> {
    const { name } = opened;
    const running = this.#merges.get(name);
    if (running !== undefined) return running;
    const merge = async () => {
      const bytes = await this.#copyOf(opened).merge(maxBytes);
      return bytes === undefined ? undefined : this.#holdings.set({ name, bytes });
    };
    const merged = merge().finally(() => this.#merges.delete(name));
    this.#merges.set(name, merged);
    return merged;
  }

  #warn(message: string, error: unknown): void {
    this.#options.warn(message, { error: String(error) });
  }
}
