import { hash, randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AdLibraryError, type ErrorKind } from '../api/errors.ts';
import { resetAccountOnNewDay } from '../credits/daily-budget.ts';
import { hasProcessEnded, identifyThisProcess } from '../lock.ts';
import { dayMs } from '../views/durations.ts';
import type { StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { Dataset, DatasetCaller, DatasetStore } from './dataset.ts';
import { FileStore, ignoreErrorCodes, readBaseUrl } from './drivers/file.ts';
import { openNamedLocks } from './named-locks.ts';
import type { Store } from './storage.ts';
import type { StoreAccess } from './store/access.ts';
import { SharedDatasetStore } from './store/datasets.ts';
import { DocumentAccess } from './store/documents.ts';
import { noEncryption } from './store/encryption.ts';
import { LeaseTracker } from './store/leases.ts';
import { openLedger, openReachedUsageLimitStore } from './store/ledger.ts';
import { openStoredResponseCache } from './store/response-cache.ts';
import { noQueue, WriteQueue, wrapStoreWithRetries, wrapWithRetryBeforeCalls } from './store/write-queue.ts';

/** The options for storing the data of a single-user server in a folder of the user. */
export interface FolderOptions extends StateOptions {
  folder: string;
  baseUrl: string;
  apiKey: string;
  /**
   * Asks the service which account an API key belongs to. Resolves to the user id of this account, or to undefined if
   * the response contains no user id.
   */
  fetchUserId(caller: DatasetCaller): Promise<string | undefined>;
  warn(message: string, fields?: Record<string, unknown>): void;
}

const MB = 1024 * 1024;
/**
 * The memory limits, in bytes, for the cached API responses of an API key and for failed writes that wait for a retry.
 */
const maxCachedBytes = 64 * MB;
const maxQueueBytes = 96 * MB;
/** The interval, in milliseconds, between two attempts to ask the service which account an API key belongs to. */
const confirmIntervalMs = 30_000;
/**
 * The maximum age of a lease (the mark that a process has a call in progress), in milliseconds. An older lease counts
 * as abandoned even if a process with the same pid exists, because the operating system reuses pids.
 */
const maxLeaseAgeMs = 15 * 60_000;

const createFileName = (...nameParts: string[]): string => `${hash('sha256', nameParts.join('\n')).slice(0, 32)}.log`;

/**
 * The `accounts` folder contains one file per account, with its ads, labels, watches (repeated searches) and reports.
 * The `keys` folder contains one file per API key, with its cached responses, page cursors, locks and spending.
 */
const getAccountsFolder = (folder: string): string => join(folder, 'accounts');
const getKeysFolder = (folder: string): string => join(folder, 'keys');

/**
 * Opens the data that is stored in the user's folder. Any number of processes can use the same folder at the same time.
 */
export function openFolderState(options: FolderOptions) {
  const { folder, baseUrl, apiKey, ttlMs, now, warn } = options;
  const path = join(getKeysFolder(folder), createFileName(baseUrl, apiKey));
  const store = new FileStore({ path, baseUrl, now, maxBytes: maxCachedBytes });
  const keyAccess = createFileAccess(async () => store, options);
  const { queue } = keyAccess;
  return {
    // Resend a call that was lost because its process was killed, if the user repeats the call. The service may charge
    // twice, but the user has seen the failure and wants a result.
    responseCache: wrapWithRetryBeforeCalls(
      queue,
      openStoredResponseCache(keyAccess, { ttlMs, now, canResendLostCalls: true }),
    ),
    reachedUsageLimits: wrapWithRetryBeforeCalls(queue, openReachedUsageLimitStore(keyAccess, options.monotonicNow)),
    openCursors: (tenantId: string) => wrapWithRetryBeforeCalls(queue, openCursors(keyAccess)(tenantId)),
    datasets: new FolderDatasetStore(options, keyAccess),
    locks: wrapWithRetryBeforeCalls(queue, openNamedLocks(keyAccess)),
    dailyLedger: () =>
      openLedger(
        { ...keyAccess, queue: noQueue },
        {
          updateToTime: (account, at) => resetAccountOnNewDay(account, at, path),
          onChargeLost: (error) =>
            warn('the cost of a call could not be recorded', { file: path, error: String(error) }),
        },
      ),
  };
}

/**
 * Returns functions that read and write the file of an API key or account. Other processes may use the same file. A
 * write that fails temporarily is retried when the file is next used.
 * @param findStore returns the store of the file; called for each operation, because the account, and therefore the
 * file, may be unknown at first
 */
function createFileAccess(findStore: () => Promise<Store>, { now, warn }: Pick<FolderOptions, 'now' | 'warn'>) {
  const queue = new WriteQueue({ maxBytes: maxQueueBytes });
  const lazyStore: Store = {
    readDocument: async (...args) => (await findStore()).readDocument(...args),
    swapDocument: async (...args) => (await findStore()).swapDocument(...args),
    readItems: async (...args) => (await findStore()).readItems(...args),
    putItems: async (...args) => (await findStore()).putItems(...args),
    readItemsSince: async (...args) => (await findStore()).readItemsSince(...args),
  };
  const store = { ...wrapStoreWithRetries(lazyStore, queue), isNearlyFull: () => false, isUp: () => true, now };
  return {
    store,
    encryption: noEncryption,
    documents: new DocumentAccess({ store, encryption: noEncryption }),
    leases: new LeaseTracker({
      owner: `${identifyThisProcess()} ${randomUUID()}`,
      hasEnded: (owner, ageMs) => hasProcessEnded(owner) || ageMs > maxLeaseAgeMs,
    }),
    queue,
    // Write only hashes of tenant ids to the file, because a tenant id may be an API key.
    buildKey: (tenantId, kind, ...parts) =>
      [noEncryption.hashName(tenantId), kind, ...(parts.length > 0 ? [noEncryption.hashName(...parts)] : [])].join(' '),
    warn,
  } satisfies StoreAccess;
}

/**
 * The datasets (stored ads) of accounts in the user's folder.
 *
 * This server asks the service which account an API key belongs to, so that a new key of the same account finds the
 * same dataset. While the service is unreachable, the server uses the account that was last stored for the key. If no
 * account is stored, reads fail, and paid responses wait in memory.
 */
class FolderDatasetStore implements DatasetStore {
  readonly #options: FolderOptions;
  readonly #keyAccess: ReturnType<typeof createFileAccess>;
  readonly #accountAccess: ReturnType<typeof createFileAccess>;
  readonly #datasets: SharedDatasetStore;
  #caller: DatasetCaller | undefined;
  #store: Store | undefined;
  #userId: string | undefined;
  /** True if the service has told this process which account the API key belongs to. */
  #isConfirmed = false;
  #pendingConfirmation: Promise<void> | undefined;
  #nextConfirmationAt = Number.NEGATIVE_INFINITY;
  #failure: AdLibraryError | undefined;

  constructor(options: FolderOptions, keyAccess: ReturnType<typeof createFileAccess>) {
    this.#options = options;
    this.#keyAccess = keyAccess;
    this.#accountAccess = createFileAccess(async () => {
      if (this.#store) return this.#store;
      throw this.#failure ?? createUnknownAccountError();
    }, options);
    this.#datasets = new SharedDatasetStore(this.#accountAccess);
  }

  /**
   * Opens the dataset (the stored ads) of an API key. While the account of the key is unknown, every read asks the
   * service which account it is. With `toAdd`, the service is asked at most every `confirmIntervalMs`, because each
   * request delays a paid response.
   */
  async open(caller: DatasetCaller, { toAdd } = { toAdd: false }): Promise<Dataset> {
    this.#caller = caller;
    const isConfirmationDue =
      this.#options.monotonicNow() >= this.#nextConfirmationAt || (this.#store === undefined && !toAdd);
    if (!this.#isConfirmed && isConfirmationDue)
      this.#pendingConfirmation ??= this.#confirmAccount(caller).finally(() => {
        this.#pendingConfirmation = undefined;
      });
    await this.#pendingConfirmation;
    if (!toAdd && this.#failure) throw this.#failure;
    await this.#accountAccess.queue.retryWritesIfDue();
    return { ...(await this.#datasets.open({ tenantId: 'account' })), isOwnerUnconfirmed: !this.#isConfirmed };
  }

  async close(): Promise<void> {
    if (this.#caller) await this.open(this.#caller).catch(() => {});
    await Promise.all([this.#keyAccess, this.#accountAccess].map(({ queue }) => queue.close()));
    await this.#datasets.close();
  }

  async #confirmAccount(caller: DatasetCaller): Promise<void> {
    const { monotonicNow, fetchUserId, warn } = this.#options;
    const { documents, buildKey } = this.#keyAccess;
    const key = buildKey(caller.tenantId, 'user');
    try {
      const userId = await fetchUserId(caller);
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
      this.#nextConfirmationAt = monotonicNow() + confirmIntervalMs;
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

/**
 * How long the folder remembers which account an API key belongs to, in milliseconds. The stored account is used while
 * the service is unreachable.
 */
const accountTtlMs = 400 * dayMs;
/** The kinds of errors that mean that the service is unreachable. */
const unreachableKinds: readonly ErrorKind[] = ['network', 'timeout', 'unavailable'];

const createUnknownAccountError = (cause?: unknown) => {
  const problem =
    'The service did not tell which account the key belongs to (whoami), so the stored files cannot be read now.';
  return new AdLibraryError({ kind: 'unavailable', problem, storage: 'data' }, { cause });
};

/** A file in the data folder, as the `files` command shows it to the user. */
export interface StoredFile {
  path: string;
  bytes: number;
  /** The base URL of the service from which the data comes. Undefined if the file cannot be read. */
  baseUrl?: string | undefined;
  /** The number of stored objects of each kind. Set only for account files that can be read. */
  contents?: Record<'ads' | 'pages' | 'gatherings' | 'labels' | 'watches' | 'reports', number> | undefined;
}

/**
 * Lists the files in the data folder and counts the stored objects in each account file. Used by the `files` command.
 */
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
  const dataset = await new SharedDatasetStore(createFileAccess(async () => store, environment)).open({
    tenantId: 'account',
  });
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
