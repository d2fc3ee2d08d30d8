import { createHash } from 'node:crypto';
import type { OperationName } from '../../api/operations.ts';
import { type Collection, type CreditStatus, ItemType, type UsageLimit } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { ApiError, notFoundError } from './request.ts';

/** What an operation requires, costs and reports about credits. */
interface OperationRules {
  /**
   * The scope that a key needs for the operation. Names come from the API document (Authentication, rule 5), except
   * `collections:write`, which this library chose.
   */
  scope?: string;
  /** Credits per call, or per started group of `perItems` items in the answer. With `perItems`, an empty answer is free. */
  price?: { credits: number; perItems?: number };
  /** The credit headers of the operation's 200 responses (document, *Endpoints*). */
  creditHeaders: readonly ('Charged' | 'Remaining')[];
}

const [noHeaders, chargedHeader, bothHeaders] = [[], ['Charged'], ['Charged', 'Remaining']] as const;
const pricePerTenItems = { credits: 1, perItems: 10 };
const pricePerCall = { credits: 1 };

/**
 * The rules of each operation. Where the document leaves scopes and prices open, these are this library's choices, which
 * its README.md lists. A real service may choose differently.
 */
export const operationRules: Record<OperationName, OperationRules> = {
  whoami: { creditHeaders: noHeaders },
  getAccount: { creditHeaders: noHeaders, scope: 'account:read' },
  getCredits: { creditHeaders: bothHeaders, scope: 'credits:read' },
  listCollections: { creditHeaders: chargedHeader, scope: 'collections:read' },
  listCollectionItems: { creditHeaders: bothHeaders, scope: 'collections:read', price: pricePerTenItems },
  addCollectionItem: { creditHeaders: chargedHeader, scope: 'collections:write' },
  searchAds: { creditHeaders: bothHeaders, scope: 'ads:read', price: pricePerTenItems },
  getAd: { creditHeaders: bothHeaders, scope: 'ads:read', price: pricePerCall },
  searchPages: { creditHeaders: bothHeaders, scope: 'pages:read', price: pricePerTenItems },
  getPage: { creditHeaders: bothHeaders, scope: 'pages:read', price: pricePerCall },
};

const scopeNames = [...new Set(Object.values(operationRules).flatMap(({ scope }) => scope ?? []))];

/** Credits per month, hour and day for a new key that names no others. */
const defaultPlan = { credits: 10_000, hourlyLimit: 1_000, dailyLimit: 5_000 };

/** A source of ids and secrets. With a seeded source, a library has the same ids and secrets every time. */
export type RandomSource = { bytes(count: number): Uint8Array; uuid(): string };

/** Options of a new key. Amounts default to `defaultPlan`. */
export type KeyOptions = {
  name?: string;
  /** Scopes of the key. By default every scope, which is this library's "standard access set". */
  scopes?: readonly string[];
  /** Credits per period (a calendar month in UTC). */
  credits?: number;
  /** Credits per clock hour. */
  hourlyLimit?: number;
  /** Credits per day in UTC. */
  dailyLimit?: number;
  /** False creates an account without a subscription. Gated calls of its key are answered with 402. */
  subscription?: boolean;
  /** True makes all calls with this key free and exempts them from the limits of its account. */
  unmetered?: boolean;
};

/** A key as `library key list` shows it. The secret is not part of it, because only its hash is stored. */
export type KeyInfo = ReturnType<typeof toKeyInfo>;

/** The key of a request, the account of the key, and the subscription that pays for the account. */
export type Caller = ReturnType<typeof toCaller>;

/** Creates, lists, revokes and checks the keys of a library. */
export type KeyStore = ReturnType<typeof createKeyStore>;

const fixedPrefix = 'svc_live_';
/** Number of leading characters of a key that may be shown. */
const shownPrefixLength = fixedPrefix.length + 8;

/** Hashes a key. A fast hash is enough, because nobody can guess 160 random bits. */
const hashKey = (key: string) => createHash('sha256').update(key).digest('hex');

/** A row of the table `keys`. Times are Unix milliseconds, and flags are 0 or 1. */
type KeyRow = {
  id: string;
  keyPrefix: string;
  name: string;
  /** Scope names, separated by spaces. */
  scopes: string;
  userId: string;
  unmetered: number;
  createdAt: number;
  revokedAt: number | null;
};
type CallerRow = Omit<KeyRow, 'id' | 'name' | 'createdAt'> & {
  keyId: string;
  keyName: string;
  billingUserId: string;
  name: string | null;
  emailAddress: string | null;
  isTeamMember: number;
  planId: string | null;
  subscriptionStatus: string | null;
  creditsMax: number;
  hourlyLimit: number;
  dailyLimit: number;
};

const toKeyInfo = (row: KeyRow) => ({ ...row, scopes: row.scopes.split(' '), unmetered: row.unmetered === 1 });
const toCaller = (row: CallerRow) => ({
  ...row,
  scopes: row.scopes.split(' '),
  unmetered: row.unmetered === 1,
  isTeamMember: row.isTeamMember === 1,
});

type KeyStoreOptions = { database: Database; collections: CollectionStore; now: () => number; random: RandomSource };

/** Creates the store of API keys in a database. */
export function createKeyStore({ database, collections, now, random }: KeyStoreOptions) {
  const columns = 'id, keyPrefix, name, scopes, userId, unmetered, createdAt, revokedAt';
  const list = () => database.all<KeyRow>(`SELECT ${columns} FROM keys ORDER BY createdAt, rowid`).map(toKeyInfo);

  /**
   * Finds a key by its id, its prefix or the whole key.
   *
   * @throws Error unless exactly one key matches.
   */
  function getKey(text: string): KeyInfo {
    const sql = `SELECT ${columns} FROM keys WHERE id = ? OR keyPrefix = ? OR hash = ?`;
    const [row, ...otherRows] = database.all<KeyRow>(sql, [text, text, hashKey(text)]);
    // The message does not repeat the text, because the text may be a secret that works elsewhere.
    if (!row || otherRows.length > 0) throw new Error('No key has that id or prefix. "library key list" shows them.');
    return toKeyInfo(row);
  }

  /**
   * Creates a key with an account of its own and two default collections. The result holds the secret, which cannot be
   * read again.
   *
   * @throws Error that names the invalid option.
   */
  function create(options: KeyOptions = {}): KeyInfo & { key: string } {
    const problem = findKeyOptionProblem(options);
    if (problem) throw new Error(problem);
    const { name = 'Library key', scopes = scopeNames, unmetered = false, subscription = true } = options;
    const { credits, hourlyLimit, dailyLimit } = { ...defaultPlan, ...options };
    const [planId, subscriptionStatus] = subscription ? ['library', 'active'] : [null, null];
    const key = `${fixedPrefix}${Buffer.from(random.bytes(20)).toString('hex')}`;
    return database.transaction(() => {
      const userId = random.uuid();
      const account = [userId, userId, planId, subscriptionStatus, credits, hourlyLimit, dailyLimit];
      database.run('INSERT INTO accounts VALUES (?, ?, NULL, NULL, 0, ?, ?, ?, ?, ?)', account);
      const owner = { userId, billingUserId: userId };
      for (const itemType of ItemType.options)
        collections.create(owner, { name: `Saved ${itemType}`, type: 'personal', defaultType: itemType });
      const id = random.uuid();
      const keyPrefix = key.slice(0, shownPrefixLength);
      const keyValues = [id, hashKey(key), keyPrefix, name, scopes.join(' '), userId, now(), Number(unmetered)];
      database.run('INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?)', keyValues);
      return { ...getKey(id), key };
    });
  }

  return {
    create,
    list,
    /**
     * Revokes a key immediately. Revoking a key twice changes nothing.
     *
     * @throws Error unless exactly one key has this id or prefix.
     */
    revoke: (keyIdOrPrefix: string): KeyInfo =>
      database.transaction(() => {
        const { id } = getKey(keyIdOrPrefix);
        database.run('UPDATE keys SET revokedAt = ? WHERE id = ? AND revokedAt IS NULL', [now(), id]);
        return getKey(id);
      }),
    /**
     * Returns the caller whose key is in an `Authorization` header.
     *
     * @throws ApiError 401 if the header holds no valid key.
     */
    authenticate(authorization: string | undefined): Caller {
      const [, key] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
      const unauthorized = (code: string, message: string) => new ApiError(401, code, message);
      if (!key) throw unauthorized('missing_api_key', 'Send the API key as "Authorization: Bearer svc_live_…".');
      const row = database.get<CallerRow>(callerSql, [hashKey(key)]);
      if (!row) throw unauthorized('invalid_api_key', 'This API key is not known here.');
      if (row.revokedAt !== null) throw unauthorized('revoked_api_key', 'This API key was revoked.');
      return toCaller(row);
    },
  };
}

const callerSql = `
  SELECT keys.id AS keyId, keys.name AS keyName, keyPrefix, scopes, unmetered, revokedAt,
    account.userId, account.billingUserId, account.name, account.emailAddress, account.isTeamMember,
    payer.planId, payer.subscriptionStatus, payer.creditsMax, payer.hourlyLimit, payer.dailyLimit
  FROM keys JOIN accounts AS account USING (userId) JOIN accounts AS payer ON payer.userId = account.billingUserId
  WHERE hash = ?`;

/** Returns a message about the first invalid option of a new key, or undefined if all options are valid. */
export function findKeyOptionProblem(options: KeyOptions): string | undefined {
  const { scopes = scopeNames, unmetered, subscription, credits, hourlyLimit, dailyLimit } = options;
  const amounts = Object.entries({ credits, hourlyLimit, dailyLimit }).filter(([, value]) => value !== undefined);
  const unknownScopes = scopes.filter((scope) => !scopeNames.includes(scope));
  if (unknownScopes.length > 0) return `Unknown scope ${unknownScopes.join(', ')}. Known: ${scopeNames.join(', ')}.`;
  if (scopes.length === 0) return `A key needs at least one scope of ${scopeNames.join(', ')}.`;
  if (unmetered && (subscription === false || amounts.length > 0))
    return 'An unmetered key has no credits or limits and needs no subscription: leave these options out.';
  const invalidAmount = amounts.find(([, value]) => !Number.isSafeInteger(value) || Number(value) < 0);
  return invalidAmount && `${invalidAmount[0]} takes a whole number of credits, 0 or more.`;
}

/** Fields of a collection that are computed for each caller and not stored. */
type ComputedField = 'isDefault' | 'isOwner';
type CollectionRow = { [Key in keyof Collection as Exclude<Key, ComputedField>]: Collection[Key] } & {
  number: number;
  userId: string;
};

const itemCountSql = (itemType: ItemType) =>
  `(SELECT count(*) FROM collection_items WHERE collection = collections.number AND itemType = '${itemType}')`;
const collectionSql = `
  SELECT number, id, userId, name, type, defaultType, ${itemCountSql('ads')} AS adCount, ${itemCountSql('pages')} AS pageCount
  FROM collections WHERE billingUserId = ?`;

function toCollection({ number: _, userId, ...row }: CollectionRow, caller: Caller): Collection {
  return { ...row, isDefault: row.defaultType !== null, isOwner: userId === caller.userId };
}

type CollectionStore = ReturnType<typeof createCollectionStore>;

/**
 * Creates the store of collections in a database. A collection belongs to a billing user, so everybody who shares the
 * subscription sees it. `isOwner` marks the collections that the caller created.
 */
export function createCollectionStore(database: Database, createUuid: () => string) {
  return {
    /** Creates a collection and returns its row number. */
    create(
      { userId, billingUserId }: Pick<Caller, 'userId' | 'billingUserId'>,
      { name, type, defaultType }: { name: string; type: string; defaultType: ItemType | null },
    ): number {
      const sql =
        'INSERT INTO collections (id, userId, billingUserId, name, type, defaultType) VALUES (?, ?, ?, ?, ?, ?)';
      return database.run(sql, [createUuid(), userId, billingUserId, name, type, defaultType]).rowid;
    },
    /** Returns the collections that a caller may see. */
    list: (caller: Caller): Collection[] =>
      database
        .all<CollectionRow>(`${collectionSql} ORDER BY number`, [caller.billingUserId])
        .map((row) => toCollection(row, caller)),
    /**
     * Returns a collection and its row number.
     *
     * @throws ApiError 404 if the collection does not exist or belongs to another billing user.
     */
    get(caller: Caller, id: string): { rowNumber: number; collection: Collection } {
      const row = database.get<CollectionRow>(`${collectionSql} AND id = ?`, [caller.billingUserId, id.toLowerCase()]);
      if (!row) throw notFoundError('collection', id);
      return { rowNumber: row.number, collection: toCollection(row, caller) };
    },
    /**
     * Returns the row numbers of the items of a collection, the latest additions first.
     *
     * @param after The `position` of the previous page. Without it, the list starts at the newest item.
     */
    listItems(collection: number, itemType: ItemType, limit: number, after = Number.MAX_SAFE_INTEGER) {
      const sql = `SELECT number, item FROM collection_items WHERE collection = ? AND itemType = ? AND number < ?
         ORDER BY number DESC LIMIT ?`;
      const rows = database.all<{ number: number; item: number }>(sql, [collection, itemType, after, limit + 1]);
      const pageRows = rows.slice(0, limit);
      return {
        rowNumbers: pageRows.map(({ item }) => item),
        hasMore: rows.length > limit,
        position: pageRows.at(-1)?.number,
      };
    },
    /** Adds an item to a collection. Returns false if the collection already holds the item. */
    addItem(collection: number, itemType: ItemType, item: number): boolean {
      const sql = 'INSERT OR IGNORE INTO collection_items (collection, itemType, item) VALUES (?, ?, ?)';
      return database.run(sql, [collection, itemType, item]).changes > 0;
    },
  };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const toHourNumber = (timeMs: number) => Math.floor(timeMs / hourMs);

/**
 * Creates the meter that reads and charges credits. The only record of spending is one table with credits per billing
 * user and hour. The balance and the usage windows are sums over this table, so they cannot disagree.
 *
 * Usage windows follow the clock in UTC: the current hour and the current day. The billing period is the current calendar
 * month. The balance is full again when a new month begins.
 */
export function createCreditMeter(database: Database, now: () => number) {
  function sumSpendingSince(billingUserId: string, firstHour: number): number {
    const sql = 'SELECT coalesce(sum(credits), 0) AS spent FROM spending WHERE billingUserId = ? AND hour >= ?';
    return database.get<{ spent: number }>(sql, [billingUserId, firstHour])?.spent ?? 0;
  }

  function getStatus(caller: Caller): CreditStatus {
    const { planId, billingUserId, creditsMax, subscriptionStatus, hourlyLimit, dailyLimit, unmetered } = caller;
    const currentTimeMs = now();
    const hourlyCredits = sumSpendingSince(billingUserId, toHourNumber(currentTimeMs));
    const dailyCredits = sumSpendingSince(billingUserId, toHourNumber(currentTimeMs - (currentTimeMs % dayMs)));
    const usage = { hourlyCredits, hourlyLimit, dailyCredits, dailyLimit };
    const limitType = (!unmetered && findFullWindow(usage, 0)?.name) || 'none';
    const usageLimit = { isLimitReached: limitType !== 'none', limitType, ...usage };
    if (subscriptionStatus === null) {
      const noSubscription = { periodStart: null, periodEnd: null, credits: null, creditsMax: null };
      return { planId, billingUserId, ...noSubscription, usageLimit };
    }
    const { start, end } = getCalendarMonth(currentTimeMs);
    const credits = Math.max(0, creditsMax - sumSpendingSince(billingUserId, toHourNumber(start)));
    return { planId, billingUserId, periodStart: start / 1000, periodEnd: end / 1000, credits, creditsMax, usageLimit };
  }

  return {
    /** Returns the balance and the usage windows of a caller. */
    getStatus,
    /**
     * Charges the whole price, or nothing if it does not fit. Call this inside the transaction that produces the answer.
     *
     * @returns The remaining credits.
     * @throws ApiError 402 without a subscription or enough credits, and 429 if the price does not fit a usage window.
     */
    charge(caller: Caller, price: number): number {
      const { credits: balance, periodEnd, usageLimit } = getStatus(caller);
      if (balance === null) {
        throw new ApiError(402, 'subscription_required', 'This account has no subscription; the operation needs one.');
      }
      if (balance === 0 || price > balance) {
        const reason = balance === 0 ? 'No credits remain' : `This answer costs ${price} credits and ${balance} remain`;
        const details = { price, credits: balance, periodEnd };
        throw new ApiError(402, 'credits_exhausted', `${reason} until the period ends.`, details);
      }
      const fullWindow = findFullWindow(usageLimit, price);
      if (fullWindow) {
        const { name, lengthMs, used, limit } = fullWindow;
        const resetsAtMs = now() - (now() % lengthMs) + lengthMs;
        const message = `This answer costs ${price} credits; ${used} of the ${name} limit of ${limit} are used. The window ends at ${new Date(resetsAtMs).toISOString()}.`;
        const details = { price, usageLimit, resetsAt: resetsAtMs / 1000 };
        throw new ApiError(429, 'usage_limit_exceeded', message, details);
      }
      if (price > 0) {
        database.run(
          `INSERT INTO spending VALUES (?, ?, ?)
           ON CONFLICT (billingUserId, hour) DO UPDATE SET credits = credits + excluded.credits`,
          [caller.billingUserId, toHourNumber(now()), price],
        );
      }
      return balance - price;
    },
  };
}

type Usage = Pick<UsageLimit, 'hourlyCredits' | 'hourlyLimit' | 'dailyCredits' | 'dailyLimit'>;

/** Returns the usage window that is full or too full for a price, the daily window first. */
function findFullWindow({ hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: Usage, price: number) {
  const windows = [
    { name: 'daily', lengthMs: dayMs, used: dailyCredits, limit: dailyLimit },
    { name: 'hourly', lengthMs: hourMs, used: hourlyCredits, limit: hourlyLimit },
  ];
  return windows.find(({ used, limit }) => used >= limit || used + price > limit);
}

/** Returns the start and the end of the calendar month around a time, all in Unix milliseconds. */
function getCalendarMonth(timeMs: number): { start: number; end: number } {
  const date = new Date(timeMs);
  const monthStart = (monthOffset: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthOffset, 1);
  return { start: monthStart(0), end: monthStart(1) };
}
