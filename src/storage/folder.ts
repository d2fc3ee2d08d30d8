import { hash, randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AdLibraryError, type ErrorKind } from '../api/errors.ts';
import { accountOfDay } from '../credits/daily-budget.ts';
import { hasProcessEnded, identifyThisProcess } from '../lock.ts';
import { dayMs } from '../views/durations.ts';
import type { StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { Dataset, DatasetCaller, Datasets } from './dataset.ts';
import { FileStore, ignoreErrorCodes, readBaseUrl } from './drivers/file.ts';
import { openSlots } from './slots.ts';
import type { Store } from './storage.ts';
import type { StoreAccess } from './store/access.ts';
import { openStoredAnswers } from './store/answers.ts';
import { StoreDatasets } from './store/datasets.ts';
import { Documents } from './store/documents.ts';
import { noEncryption } from './store/encryption.ts';
import { Leases } from './store/leases.ts';
import { openLedger, openWindows } from './store/ledger.ts';
import { noQueue, runQueueAfterWrites, runQueueBefore, WriteQueue } from './store/write-queue.ts';

export interface FolderOptions extends StateOptions {
  folder: string;
  baseUrl: string;
  apiKey: string;
  /** The account of a key; undefined if the service does not say. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn(message: string, fields?: Record<string, unknown>): void;
}

const MB = 1024 * 1024;
/** Bytes of the cached answers of a key, and of the writes that wait for a file. */
const maxAnswerBytes = 64 * MB;
const maxQueueBytes = 96 * MB;
/** How long to wait before the service is asked again which account a key belongs to, in milliseconds. */
const askIntervalMs = 30_000;
/** Longer than any call, in milliseconds. An older lease has expired, even if its process id is in use again. */
const maxLeaseMs = 15 * 60_000;

const createFileName = (...parts: string[]): string => `${hash('sha256', parts.join('\n')).slice(0, 32)}.log`;

/** An account has a file with its dataset, labels, watches and reports; a key has one with answers, cursors, slots and spending. */
const getAccountsFolder = (folder: string): string => join(folder, 'accounts');
const getKeysFolder = (folder: string): string => join(folder, 'keys');

/** Opens the state in a person's folder, which any number of processes share. */
export function openFolderState(options: FolderOptions) {
  const { folder, baseUrl, apiKey, ttlMs, now, warn } = options;
  const path = join(getKeysFolder(folder), createFileName(baseUrl, apiKey));
  const store = new FileStore({ path, baseUrl, now, maxBytes: maxAnswerBytes });
  const keyAccess = createAccess(async () => store, options);
  const { queue } = keyAccess;
  return {
    // A person who repeats a call whose process was killed wants its answer, even if the service charges again.
    answers: runQueueBefore(queue, openStoredAnswers(keyAccess, { ttlMs, now, sendsAgain: true })),
    windows: runQueueBefore(queue, openWindows(keyAccess, options.monotonicNow)),
    cursorsOf: (tenantId: string) => runQueueBefore(queue, openCursors(keyAccess)(tenantId)),
    datasets: new FolderDatasets(options, keyAccess),
    slots: runQueueBefore(queue, openSlots(keyAccess)),
    dailyLedger: () =>
      openLedger(
        { ...keyAccess, queue: noQueue },
        {
          accountAt: (account, at) => accountOfDay(account, at, path),
          onLost: (error) => warn('what a call cost could not be counted', { file: path, error: String(error) }),
        },
      ),
  };
}

/**
 * Opens the file of a key or an account, which several processes use. A write that fails for the moment waits until the
 * file is used again.
 * @param find finds the file at each use
 */
function createAccess(find: () => Promise<Store>, { now, warn }: Pick<FolderOptions, 'now' | 'warn'>) {
  const queue = new WriteQueue({ maxBytes: maxQueueBytes });
  const found: Store = {
    readDocument: async (...args) => (await find()).readDocument(...args),
    swapDocument: async (...args) => (await find()).swapDocument(...args),
    readItems: async (...args) => (await find()).readItems(...args),
    putItems: async (...args) => (await find()).putItems(...args),
    readItemsSince: async (...args) => (await find()).readItemsSince(...args),
  };
  const store = { ...runQueueAfterWrites(found, queue), isNearlyFull: () => false, isUp: () => true, now };
  return {
    store,
    encryption: noEncryption,
    documents: new Documents({ store, encryption: noEncryption }),
    leases: new Leases({
      owner: `${identifyThisProcess()} ${randomUUID()}`,
      hasEnded: (owner, ageMs) => hasProcessEnded(owner) || ageMs > maxLeaseMs,
    }),
    queue,
    // The id of a tenant may be its API key, which must not be written to a file.
    keyOf: (tenantId, kind, ...parts) =>
      [noEncryption.hashName(tenantId), kind, ...(parts.length > 0 ? [noEncryption.hashName(...parts)] : [])].join(' '),
    warn,
  } satisfies StoreAccess;
}

/**
 * The dataset of the account that a key belongs to. The service names the account, so a new key of the same account finds
 * the dataset. While the service cannot be reached, the account that was stored for the key is used. If there is none,
 * reads fail, and paid answers wait in memory.
 */
class FolderDatasets implements Datasets {
  readonly #options: FolderOptions;
  readonly #keyAccess: ReturnType<typeof createAccess>;
  readonly #access: ReturnType<typeof createAccess>;
  readonly #datasets: StoreDatasets;
  #caller: DatasetCaller | undefined;
  #store: Store | undefined;
  #userId: string | undefined;
  /** Whether the service has said in this process whose key it is. */
  #isConfirmed = false;
  #asking: Promise<void> | undefined;
  #askAt = Number.NEGATIVE_INFINITY;
  #failure: AdLibraryError | undefined;

  constructor(options: FolderOptions, keyAccess: ReturnType<typeof createAccess>) {
    this.#options = options;
    this.#keyAccess = keyAccess;
    this.#access = createAccess(async () => {
      if (this.#store) return this.#store;
      throw this.#failure ?? createUnknownAccountError();
    }, options);
    this.#datasets = new StoreDatasets(this.#access);
  }

  /**
   * Opens the dataset. After a failure, each read asks the service again which account the key belongs to; an addition
   * asks only after `askAgainMs`, because asking delays the paid answer.
   */
  async open(caller: DatasetCaller, { toAdd } = { toAdd: false }): Promise<Dataset> {
    this.#caller = caller;
    const isDue = this.#options.monotonicNow() >= this.#askAt || (this.#store === undefined && !toAdd);
    if (!this.#isConfirmed && isDue)
      this.#asking ??= this.#ask(caller).finally(() => {
        this.#asking = undefined;
      });
    await this.#asking;
    if (!toAdd && this.#failure) throw this.#failure;
    await this.#access.queue.runIfDue();
    return { ...(await this.#datasets.open({ tenantId: 'account' })), isUnconfirmed: !this.#isConfirmed };
  }

  async close(): Promise<void> {
    if (this.#caller) await this.open(this.#caller).catch(() => {});
    await Promise.all([this.#keyAccess, this.#access].map(({ queue }) => queue.run()));
    await this.#datasets.close();
  }

  async #ask(caller: DatasetCaller): Promise<void> {
    const { monotonicNow, userIdOf, warn } = this.#options;
    const { documents, keyOf } = this.#keyAccess;
    const key = keyOf(caller.tenantId, 'user');
    try {
      const userId = await userIdOf(caller);
      if (userId === undefined) throw createUnknownAccountError();
      this.#open(userId);
      this.#isConfirmed = true;
      await documents.write(key, () => ({ userId }), accountTtlMs).catch(() => {});
    } catch (error) {
      const kind = error instanceof AdLibraryError ? error.failure.kind : 'internal';
      const read = async () => (await documents.read<{ userId: string }>(key)).doc;
      const remembered = unreachableKinds.includes(kind) ? await read().catch(() => undefined) : undefined;
      if (!this.#failure && !remembered)
        warn('the dataset cannot be kept in files: the service did not say whose key this is');
      if (remembered) this.#open(remembered.userId);
      else {
        this.#store = undefined;
        this.#failure = kind === 'unauthorized' ? (error as AdLibraryError) : createUnknownAccountError(error);
      }
      this.#askAt = monotonicNow() + askIntervalMs;
    }
  }

  #open(userId: string): void {
    const { folder, baseUrl, now } = this.#options;
    const path = join(getAccountsFolder(folder), createFileName(baseUrl, userId));
    if (this.#userId !== userId || this.#store === undefined) this.#store = new FileStore({ path, baseUrl, now });
    this.#userId = userId;
    this.#failure = undefined;
  }
}

/** How long the account of a key is remembered, in milliseconds, and why the service may not say whose key it is. */
const accountTtlMs = 400 * dayMs;
const unreachableKinds: readonly ErrorKind[] = ['network', 'timeout', 'unavailable'];

const createUnknownAccountError = (cause?: unknown) => {
  const problem = 'The service did not say whose key this is (whoami), so what is kept in files cannot be read now.';
  return new AdLibraryError({ kind: 'unavailable', problem, storage: 'data' }, { cause });
};

export interface StoredFile {
  path: string;
  bytes: number;
  /** Undefined if the file cannot be read. */
  baseUrl?: string | undefined;
  contents?: Record<'ads' | 'pages' | 'gatherings' | 'labels' | 'watches' | 'reports', number> | undefined;
}

export async function listStoredFiles(folder: string): Promise<{ accounts: StoredFile[]; keys: StoredFile[] }> {
  const accounts = await listFiles(getAccountsFolder(folder));
  for (const file of accounts) file.contents = await countContents(file).catch(() => undefined);
  return { accounts, keys: await listFiles(getKeysFolder(folder)) };
}

async function listFiles(folder: string): Promise<StoredFile[]> {
  const names = (await readdir(folder).catch(ignoreErrorCodes('ENOENT'))) ?? [];
  const paths = names.filter((name) => /^[\da-f]{32}\.log$/.test(name)).sort();
  return Promise.all(
    paths.map(async (name) => {
      const path = join(folder, name);
      return { path, bytes: (await stat(path)).size, baseUrl: await readBaseUrl(path).catch(() => undefined) };
    }),
  );
}

async function countContents({ path, baseUrl }: StoredFile): Promise<StoredFile['contents']> {
  if (baseUrl === undefined) return undefined;
  const about = { now: () => 0, warn: () => {} };
  const store = new FileStore({ path, baseUrl, ...about });
  const dataset = await new StoreDatasets(createAccess(async () => store, about)).open({ tenantId: 'account' });
  const { ads, pages, gatherings, labels } = await dataset.readContents();
  const [watches, reports] = [await dataset.userRecords.read('watch'), await dataset.userRecords.read('report')];
  return {
    ads: ads.length,
    pages: pages.length,
    gatherings: gatherings.length,
    labels: labels.size,
    watches: watches.size,
    reports: reports.size,
  };
}
