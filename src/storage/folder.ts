import { hash, randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AdLibraryError, type ErrorKind } from '../api/errors.ts';
import { updateAccountToDay } from '../credits/daily-budget.ts';
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

/** Options of the state in a folder. */
export interface FolderOptions extends StateOptions {
  folder: string;
  baseUrl: string;
  apiKey: string;
  /** Asks the service for the account of a key. Resolves to undefined if the service does not tell. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn(message: string, fields?: Record<string, unknown>): void;
}

const MB = 1024 * 1024;
/** The limits for the cached answers of a key, and for the writes that wait for a file, in bytes. */
const maxAnswerBytes = 64 * MB;
const maxQueueBytes = 96 * MB;
/** The interval between questions to the service which account a key belongs to, in milliseconds. */
const askIntervalMs = 30_000;
/** The longest lifetime of a lease, in milliseconds. It is longer than any call. An older lease counts as abandoned, even if another process uses the same pid. */
const maxLeaseMs = 15 * 60_000;

const createFileName = (...parts: string[]): string => `${hash('sha256', parts.join('\n')).slice(0, 32)}.log`;

/**
 * The folder of accounts has a file for each account, with its dataset, labels, watches and reports. The folder of keys
 * has a file for each key, with its cached answers, cursors, slots and spending.
 */
const getAccountsFolder = (folder: string): string => join(folder, 'accounts');
const getKeysFolder = (folder: string): string => join(folder, 'keys');

/** Opens the state in the folder of a person. Any number of processes can use the same folder. */
export function openFolderState(options: FolderOptions) {
  const { folder, baseUrl, apiKey, ttlMs, now, warn } = options;
  const path = join(getKeysFolder(folder), createFileName(baseUrl, apiKey));
  const store = new FileStore({ path, baseUrl, now, maxBytes: maxAnswerBytes });
  const keyAccess = createAccess(async () => store, options);
  const { queue } = keyAccess;
  return {
    // A person who repeats a call after its process was killed wants the answer, even if the service charges again.
    answers: runQueueBefore(queue, openStoredAnswers(keyAccess, { ttlMs, now, sendsAgain: true })),
    windows: runQueueBefore(queue, openWindows(keyAccess, options.monotonicNow)),
    cursorsOf: (tenantId: string) => runQueueBefore(queue, openCursors(keyAccess)(tenantId)),
    datasets: new FolderDatasets(options, keyAccess),
    slots: runQueueBefore(queue, openSlots(keyAccess)),
    dailyLedger: () =>
      openLedger(
        { ...keyAccess, queue: noQueue },
        {
          accountAt: (account, at) => updateAccountToDay(account, at, path),
          onLost: (error) => warn('the cost of a call could not be recorded', { file: path, error: String(error) }),
        },
      ),
  };
}

/**
 * Creates access to the file of a key or an account, which several processes use. A write that fails temporarily is
 * attempted again when the file is used again.
 * @param findStore returns the store of the file, and is called at each use
 */
function createAccess(findStore: () => Promise<Store>, { now, warn }: Pick<FolderOptions, 'now' | 'warn'>) {
  const queue = new WriteQueue({ maxBytes: maxQueueBytes });
  const foundStore: Store = {
    readDocument: async (...args) => (await findStore()).readDocument(...args),
    swapDocument: async (...args) => (await findStore()).swapDocument(...args),
    readItems: async (...args) => (await findStore()).readItems(...args),
    putItems: async (...args) => (await findStore()).putItems(...args),
    readItemsSince: async (...args) => (await findStore()).readItemsSince(...args),
  };
  const store = { ...runQueueAfterWrites(foundStore, queue), isNearlyFull: () => false, isUp: () => true, now };
  return {
    store,
    encryption: noEncryption,
    documents: new Documents({ store, encryption: noEncryption }),
    leases: new Leases({
      owner: `${identifyThisProcess()} ${randomUUID()}`,
      hasEnded: (owner, ageMs) => hasProcessEnded(owner) || ageMs > maxLeaseMs,
    }),
    queue,
    // Only hashes of tenant ids are written, because the id of a tenant may be its API key.
    keyOf: (tenantId, kind, ...parts) =>
      [noEncryption.hashName(tenantId), kind, ...(parts.length > 0 ? [noEncryption.hashName(...parts)] : [])].join(' '),
    warn,
  } satisfies StoreAccess;
}

/**
 * The datasets of the accounts in a folder. The service tells which account a key belongs to, so that a new key of the same
 * account finds the same dataset. While the service cannot be reached, the account that was stored for the key is used. If
 * no account was stored, reads fail, and paid answers wait in memory.
 */
class FolderDatasets implements Datasets {
  readonly #options: FolderOptions;
  readonly #keyAccess: ReturnType<typeof createAccess>;
  readonly #access: ReturnType<typeof createAccess>;
  readonly #datasets: StoreDatasets;
  #caller: DatasetCaller | undefined;
  #store: Store | undefined;
  #userId: string | undefined;
  /** True if the service has told this process which account the key belongs to. */
  #isConfirmed = false;
  #confirming: Promise<void> | undefined;
  #nextConfirmationAt = Number.NEGATIVE_INFINITY;
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
   * Opens the dataset. After a failure, each read asks the service again which account the key belongs to. An addition asks
   * only after `askIntervalMs`, because the question delays the paid answer.
   */
  async open(caller: DatasetCaller, { toAdd } = { toAdd: false }): Promise<Dataset> {
    this.#caller = caller;
    const isDue = this.#options.monotonicNow() >= this.#nextConfirmationAt || (this.#store === undefined && !toAdd);
    if (!this.#isConfirmed && isDue)
      this.#confirming ??= this.#confirmAccount(caller).finally(() => {
        this.#confirming = undefined;
      });
    await this.#confirming;
    if (!toAdd && this.#failure) throw this.#failure;
    await this.#access.queue.runIfDue();
    return { ...(await this.#datasets.open({ tenantId: 'account' })), isUnconfirmed: !this.#isConfirmed };
  }

  async close(): Promise<void> {
    if (this.#caller) await this.open(this.#caller).catch(() => {});
    await Promise.all([this.#keyAccess, this.#access].map(({ queue }) => queue.run()));
    await this.#datasets.close();
  }

  async #confirmAccount(caller: DatasetCaller): Promise<void> {
    const { monotonicNow, userIdOf, warn } = this.#options;
    const { documents, keyOf } = this.#keyAccess;
    const key = keyOf(caller.tenantId, 'user');
    try {
      const userId = await userIdOf(caller);
      if (userId === undefined) throw createUnknownAccountError();
      this.#openAccount(userId);
      this.#isConfirmed = true;
      await documents.write(key, () => ({ userId }), accountTtlMs).catch(() => {});
    } catch (error) {
      const kind = error instanceof AdLibraryError ? error.failure.kind : 'internal';
      const readStoredAccount = async () => (await documents.read<{ userId: string }>(key)).doc;
      const storedAccount = unreachableKinds.includes(kind)
        ? await readStoredAccount().catch(() => undefined)
        : undefined;
      if (!this.#failure && !storedAccount)
        warn('the dataset cannot be stored in files: the service did not tell which account the key belongs to');
      if (storedAccount) this.#openAccount(storedAccount.userId);
      else {
        this.#store = undefined;
        this.#failure = kind === 'unauthorized' ? (error as AdLibraryError) : createUnknownAccountError(error);
      }
      this.#nextConfirmationAt = monotonicNow() + askIntervalMs;
    }
  }

  #openAccount(userId: string): void {
    const { folder, baseUrl, now } = this.#options;
    const path = join(getAccountsFolder(folder), createFileName(baseUrl, userId));
    if (this.#userId !== userId || this.#store === undefined) this.#store = new FileStore({ path, baseUrl, now });
    this.#userId = userId;
    this.#failure = undefined;
  }
}

/** How long the account of a key is remembered, in milliseconds. */
const accountTtlMs = 400 * dayMs;
/** The kinds of errors with which the service cannot be reached. */
const unreachableKinds: readonly ErrorKind[] = ['network', 'timeout', 'unavailable'];

const createUnknownAccountError = (cause?: unknown) => {
  const problem =
    'The service did not tell which account the key belongs to (whoami), so the stored files cannot be read now.';
  return new AdLibraryError({ kind: 'unavailable', problem, storage: 'data' }, { cause });
};

/** A file of the folder, for the command `files`. */
export interface StoredFile {
  path: string;
  bytes: number;
  /** The URL of the service; undefined if the file cannot be read. */
  baseUrl?: string | undefined;
  /** The numbers of stored objects; undefined if the file cannot be read. */
  contents?: Record<'ads' | 'pages' | 'gatherings' | 'labels' | 'watches' | 'reports', number> | undefined;
}

/** Lists the files of a folder, and counts the contents of the files of accounts. */
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
  const environment = { now: () => 0, warn: () => {} };
  const store = new FileStore({ path, baseUrl, ...environment });
  const dataset = await new StoreDatasets(createAccess(async () => store, environment)).open({ tenantId: 'account' });
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
