import { createHash } from 'node:crypto';
import type { OperationName } from '../../api/operations.ts';
import { type Collection, type CreditStatus, ItemType, type UsageLimit } from '../../api/schemas.ts';
import { dayMs } from '../../views/durations.ts';
import type { Database } from '../database/database.ts';
import { ApiError, createNotFoundError } from './request.ts';

/** The permission that a caller needs for an operation of the API, and the price of a call. */
interface OperationPolicy {
  /**
   * The scope (permission) that an API key needs for the operation, e.g. `account:read`. The API document defines the
   * scopes (*Authentication*, rule 5). The only exception is `collections:write`, which this library has added.
   */
  scope?: string;
  /**
   * The price in credits. Without `perItems`, this is the price of a call. With `perItems: 10`, this is the price of
   * each group of up to ten items in the response. For example, 11 items cost twice the price, and an empty response is
   * free.
   */
  price?: { credits: number; perItems?: number };
  /** The headers in successful responses that tell the client about credits (API document, *Endpoints*). */
  creditHeaders: readonly ('Charged' | 'Remaining')[];
}

const [noCreditHeaders, chargedCreditHeader, bothCreditHeaders] = [[], ['Charged'], ['Charged', 'Remaining']] as const;
const pricePerTenItems = { credits: 1, perItems: 10 };
const pricePerCall = { credits: 1 };

/**
 * The scope and price of each operation. The API document does not specify all of them. The library's README.md lists
 * the rules that this library has added, which may not apply in other services.
 */
export const operationPolicies: Record<OperationName, OperationPolicy> = {
  whoami: { creditHeaders: noCreditHeaders },
  getAccount: { creditHeaders: noCreditHeaders, scope: 'account:read' },
  getCredits: { creditHeaders: bothCreditHeaders, scope: 'credits:read' },
  listCollections: { creditHeaders: chargedCreditHeader, scope: 'collections:read' },
  listCollectionItems: { creditHeaders: bothCreditHeaders, scope: 'collections:read', price: pricePerTenItems },
  addCollectionItem: { creditHeaders: chargedCreditHeader, scope: 'collections:write' },
  searchAds: { creditHeaders: bothCreditHeaders, scope: 'ads:read', price: pricePerTenItems },
  getAd: { creditHeaders: bothCreditHeaders, scope: 'ads:read', price: pricePerCall },
  searchPages: { creditHeaders: bothCreditHeaders, scope: 'pages:read', price: pricePerTenItems },
  getPage: { creditHeaders: bothCreditHeaders, scope: 'pages:read', price: pricePerCall },
};

const scopeNames = [...new Set(Object.values(operationPolicies).flatMap(({ scope }) => scope ?? []))];

/** The default credits of a new API key: the monthly credits, and the limits per hour and per day. */
const defaultCreditPlan = { credits: 10_000, hourlyLimit: 1_000, dailyLimit: 5_000 };

/** A source of random ids and secrets. The source of the demo always returns the same sequence. */
export type RandomSource = { generateBytes(count: number): Uint8Array; generateUuid(): string };

/** The options for creating an API key of the library. `defaultCreditPlan` contains the default credits and limits. */
export type KeyOptions = {
  name?: string;
  /** The scopes (permissions) of the key. By default, the key has all scopes. */
  scopes?: readonly string[];
  /** The number of credits that the account receives for each calendar month (UTC). */
  credits?: number;
  /** The maximum number of credits that the account can spend in a clock hour, e.g. from 10:00 to 11:00. */
  hourlyLimit?: number;
  /** The maximum number of credits that the account can spend in a day (UTC). */
  dailyLimit?: number;
  /** False for an account without a subscription, whose paid calls fail with status 402. */
  subscription?: boolean;
  /** True for a key whose calls are free and have no usage limits. */
  unmetered?: boolean;
};

/**
 * The properties of an API key that `library key list` shows. The secret is not among them, because the database stores
 * only its hash.
 */
export type ApiKeyMetadata = ReturnType<typeof toApiKeyMetadata>;

/** The sender of a request: the API key, its account, and the subscription that pays for the calls. */
export type Caller = ReturnType<typeof toCaller>;

/** The API keys of a library, with methods that create, list, revoke and verify keys. */
export type KeyStore = ReturnType<typeof createKeyStore>;

const fixedKeyPrefix = 'svc_live_';
/** The number of characters at the start of an API key that may be shown, so that users recognize the key. */
const visiblePrefixLength = fixedKeyPrefix.length + 8;

/** Hashes an API key. A fast hash is secure enough, because nobody can guess the 160 random bits of a key. */
const hashKey = (key: string) => createHash('sha256').update(key).digest('hex');

/** A row of the database table `keys`. Times are in Unix milliseconds, and `unmetered` is 0 or 1. */
type KeyRow = {
  id: string;
  keyPrefix: string;
  name: string;
  /** The names of the scopes, separated by spaces. */
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

const toApiKeyMetadata = (row: KeyRow) => ({ ...row, scopes: row.scopes.split(' '), unmetered: row.unmetered === 1 });
const toCaller = (row: CallerRow) => ({
  ...row,
  scopes: row.scopes.split(' '),
  unmetered: row.unmetered === 1,
  isTeamMember: row.isTeamMember === 1,
});

type KeyStoreOptions = { database: Database; collections: CollectionStore; now: () => number; random: RandomSource };

/** Creates the store that manages the API keys in a database. */
export function createKeyStore({ database, collections, now, random }: KeyStoreOptions) {
  const keyColumns = 'id, keyPrefix, name, scopes, userId, unmetered, createdAt, revokedAt';
  const listKeys = () =>
    database.all<KeyRow>(`SELECT ${keyColumns} FROM keys ORDER BY createdAt, rowid`).map(toApiKeyMetadata);

  /**
   * Finds an API key by its id, its visible prefix, or the whole key.
   *
   * @throws Error unless exactly one key matches
   */
  function getApiKeyMetadata(idOrKey: string): ApiKeyMetadata {
    const sql = `SELECT ${keyColumns} FROM keys WHERE id = ? OR keyPrefix = ? OR hash = ?`;
    const [keyRow, ...otherKeyRows] = database.all<KeyRow>(sql, [idOrKey, idOrKey, hashKey(idOrKey)]);
    // Do not repeat the input in the message, because it may be a valid key of another service.
    if (!keyRow || otherKeyRows.length > 0)
      throw new Error('No key has that id or prefix. "library key list" shows them.');
    return toApiKeyMetadata(keyRow);
  }

  /**
   * Creates an API key with a new account and two default collections. This is the only time that the secret key is
   * returned, because the database stores only its hash.
   *
   * @throws Error that names the invalid option
   */
  function createKey(options: KeyOptions = {}): ApiKeyMetadata & { key: string } {
    const problem = findKeyOptionProblem(options);
    if (problem) throw new Error(problem);
    const { name = 'Library key', scopes = scopeNames, unmetered = false, subscription = true } = options;
    const { credits, hourlyLimit, dailyLimit } = { ...defaultCreditPlan, ...options };
    const [planId, subscriptionStatus] = subscription ? ['library', 'active'] : [null, null];
    const key = `${fixedKeyPrefix}${Buffer.from(random.generateBytes(20)).toString('hex')}`;
    return database.transaction(() => {
      const userId = random.generateUuid();
      const accountValues = [userId, userId, planId, subscriptionStatus, credits, hourlyLimit, dailyLimit];
      database.run('INSERT INTO accounts VALUES (?, ?, NULL, NULL, 0, ?, ?, ?, ?, ?)', accountValues);
      const owner = { userId, billingUserId: userId };
      for (const itemType of ItemType.options)
        collections.createCollection(owner, { name: `Saved ${itemType}`, type: 'personal', defaultType: itemType });
      const id = random.generateUuid();
      const keyPrefix = key.slice(0, visiblePrefixLength);
      const keyValues = [id, hashKey(key), keyPrefix, name, scopes.join(' '), userId, now(), Number(unmetered)];
      database.run('INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?)', keyValues);
      return { ...getApiKeyMetadata(id), key };
    });
  }

  return {
    create: createKey,
    list: listKeys,
    /**
     * Revokes a key immediately. A second call has no effect.
     *
     * @throws Error unless exactly one key has this id or prefix
     */
    revoke: (keyIdOrPrefix: string): ApiKeyMetadata =>
      database.transaction(() => {
        const { id } = getApiKeyMetadata(keyIdOrPrefix);
        database.run('UPDATE keys SET revokedAt = ? WHERE id = ? AND revokedAt IS NULL', [now(), id]);
        return getApiKeyMetadata(id);
      }),
    /**
     * Identifies the caller by the API key in an `Authorization` header.
     *
     * @throws ApiError 401 if the header contains no valid key
     */
    authenticate(authorization: string | undefined): Caller {
      const [, key] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
      const createUnauthorizedError = (code: string, message: string) => new ApiError(401, code, message);
      if (!key)
        throw createUnauthorizedError('missing_api_key', 'Send the API key as "Authorization: Bearer svc_live_…".');
      const row = database.get<CallerRow>(callerSql, [hashKey(key)]);
      if (!row) throw createUnauthorizedError('invalid_api_key', 'This API key is not known here.');
      if (row.revokedAt !== null) throw createUnauthorizedError('revoked_api_key', 'This API key was revoked.');
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

/**
 * Checks the options of a new key. Returns a message about the first invalid option, or undefined if all options are
 * valid.
 */
export function findKeyOptionProblem(options: KeyOptions): string | undefined {
  const { scopes = scopeNames, unmetered, subscription, credits, hourlyLimit, dailyLimit } = options;
  const creditAmounts = Object.entries({ credits, hourlyLimit, dailyLimit }).filter(([, value]) => value !== undefined);
  const unknownScopes = scopes.filter((scope) => !scopeNames.includes(scope));
  if (unknownScopes.length > 0) return `Unknown scope ${unknownScopes.join(', ')}. Known: ${scopeNames.join(', ')}.`;
  if (scopes.length === 0) return `A key needs at least one scope of ${scopeNames.join(', ')}.`;
  if (unmetered && (subscription === false || creditAmounts.length > 0))
    return 'An unmetered key has no credits or limits and needs no subscription: leave these options out.';
  const invalidAmount = creditAmounts.find(([, value]) => !Number.isSafeInteger(value) || Number(value) < 0);
  return invalidAmount && `${invalidAmount[0]} takes a whole number of credits, 0 or more.`;
}

/** The fields of a collection that depend on the caller, so the database does not store them. */
type ComputedField = 'isDefault' | 'isOwner';
type CollectionRow = { [Key in keyof Collection as Exclude<Key, ComputedField>]: Collection[Key] } & {
  number: number;
  userId: string;
};

const buildItemCountSql = (itemType: ItemType) =>
  `(SELECT count(*) FROM collection_items WHERE collection = collections.number AND itemType = '${itemType}')`;
const collectionSql = `
  SELECT number, id, userId, name, type, defaultType, ${buildItemCountSql('ads')} AS adCount, ${buildItemCountSql('pages')} AS pageCount
  FROM collections WHERE billingUserId = ?`;

function toCollection({ number: _, userId, ...row }: CollectionRow, caller: Caller): Collection {
  return { ...row, isDefault: row.defaultType !== null, isOwner: userId === caller.userId };
}

type CollectionStore = ReturnType<typeof createCollectionStore>;

/**
 * Creates the store of the collections in a database. A collection belongs to the user who pays for the subscription,
 * so that all members of the subscription see it. `isOwner` is true for the member who created the collection.
 */
export function createCollectionStore(database: Database, generateUuid: () => string) {
  return {
    /** Creates an empty collection, and returns its row number in the database. */
    createCollection(
      { userId, billingUserId }: Pick<Caller, 'userId' | 'billingUserId'>,
      { name, type, defaultType }: { name: string; type: string; defaultType: ItemType | null },
    ): number {
      const sql =
        'INSERT INTO collections (id, userId, billingUserId, name, type, defaultType) VALUES (?, ?, ?, ?, ?, ?)';
      return database.run(sql, [generateUuid(), userId, billingUserId, name, type, defaultType]).rowid;
    },
    /** Returns all collections that the caller can see, starting with the oldest. */
    listCollections: (caller: Caller): Collection[] =>
      database
        .all<CollectionRow>(`${collectionSql} ORDER BY number`, [caller.billingUserId])
        .map((row) => toCollection(row, caller)),
    /**
     * Returns a collection and its row number.
     *
     * @throws ApiError 404 if the collection does not exist or belongs to another billing user
     */
    getCollection(caller: Caller, id: string): { rowNumber: number; collection: Collection } {
      const row = database.get<CollectionRow>(`${collectionSql} AND id = ?`, [caller.billingUserId, id.toLowerCase()]);
      if (!row) throw createNotFoundError('collection', id);
      return { rowNumber: row.number, collection: toCollection(row, caller) };
    },
    /**
     * Returns the row numbers of the items in a collection, starting with the most recently added item.
     *
     * @param previousPosition the `position` of the previous page; if omitted, the first page is returned
     */
    listItems(
      collectionRowNumber: number,
      itemType: ItemType,
      limit: number,
      previousPosition = Number.MAX_SAFE_INTEGER,
    ) {
      const sql = `SELECT number, item FROM collection_items WHERE collection = ? AND itemType = ? AND number < ?
         ORDER BY number DESC LIMIT ?`;
      const rows = database.all<{ number: number; item: number }>(sql, [
        collectionRowNumber,
        itemType,
        previousPosition,
        limit + 1,
      ]);
      const pageRows = rows.slice(0, limit);
      return {
        rowNumbers: pageRows.map(({ item }) => item),
        hasMore: rows.length > limit,
        position: pageRows.at(-1)?.number,
      };
    },
    /** Adds an item to a collection. Returns false if the collection already contains the item. */
    addItem(collectionRowNumber: number, itemType: ItemType, itemRowNumber: number): boolean {
      const sql = 'INSERT OR IGNORE INTO collection_items (collection, itemType, item) VALUES (?, ?, ?)';
      return database.run(sql, [collectionRowNumber, itemType, itemRowNumber]).changes > 0;
    },
  };
}

const hourMs = 3_600_000;
const toHourNumber = (timeMs: number) => Math.floor(timeMs / hourMs);

/**
 * Creates the meter that charges credits for calls. A database table stores the number of credits that each paying user
 * has spent in each hour. The balance and the usage limits are computed from this table, so they always agree.
 *
 * The usage limits apply to the current hour and the current day in UTC. The billing period is the current calendar
 * month, and the full balance is available again in each new month.
 */
export function createCreditMeter(database: Database, now: () => number) {
  function sumSpendingSince(billingUserId: string, firstHour: number): number {
    const sql = 'SELECT coalesce(sum(credits), 0) AS spent FROM spending WHERE billingUserId = ? AND hour >= ?';
    return database.get<{ spent: number }>(sql, [billingUserId, firstHour])?.spent ?? 0;
  }

  function getCreditStatus(caller: Caller): CreditStatus {
    const { planId, billingUserId, creditsMax, subscriptionStatus, hourlyLimit, dailyLimit, unmetered } = caller;
    const currentTimeMs = now();
    const hourlyCredits = sumSpendingSince(billingUserId, toHourNumber(currentTimeMs));
    const dailyCredits = sumSpendingSince(billingUserId, toHourNumber(currentTimeMs - (currentTimeMs % dayMs)));
    const usage = { hourlyCredits, hourlyLimit, dailyCredits, dailyLimit };
    const limitType = (!unmetered && findExceededUsageLimit(usage, 0)?.name) || 'none';
    const usageLimit = { isLimitReached: limitType !== 'none', limitType, ...usage };
    if (subscriptionStatus === null) {
      const emptyPeriod = { periodStart: null, periodEnd: null, credits: null, creditsMax: null };
      return { planId, billingUserId, ...emptyPeriod, usageLimit };
    }
    const { startMs, endMs } = getCalendarMonth(currentTimeMs);
    const credits = Math.max(0, creditsMax - sumSpendingSince(billingUserId, toHourNumber(startMs)));
    return {
      planId,
      billingUserId,
      periodStart: startMs / 1000,
      periodEnd: endMs / 1000,
      credits,
      creditsMax,
      usageLimit,
    };
  }

  return {
    /** Returns the caller's credit balance and the usage of the hourly and daily limits. */
    getCreditStatus,
    /**
     * Charges the whole price, or nothing if the price exceeds the balance or a usage limit. Call this method in the
     * same transaction as the operation, so that both succeed or fail together.
     *
     * @returns the remaining credits
     * @throws ApiError 402 if the account has no subscription or not enough credits
     * @throws ApiError 429 if the price exceeds the remaining credits of the hourly or daily limit
     */
    charge(caller: Caller, price: number): number {
      const { credits: balance, periodEnd, usageLimit } = getCreditStatus(caller);
      if (balance === null) {
        throw new ApiError(402, 'subscription_required', 'This account has no subscription; the operation needs one.');
      }
      if (balance === 0 || price > balance) {
        const reason = balance === 0 ? 'No credits remain' : `This answer costs ${price} credits and ${balance} remain`;
        const details = { price, credits: balance, periodEnd };
        throw new ApiError(402, 'credits_exhausted', `${reason} until the period ends.`, details);
      }
      const exceededLimit = findExceededUsageLimit(usageLimit, price);
      if (exceededLimit) {
        const { name, windowMs, usedCredits, creditLimit } = exceededLimit;
        const resetsAtMs = now() - (now() % windowMs) + windowMs;
        const message = `This answer costs ${price} credits; ${usedCredits} of the ${name} limit of ${creditLimit} are used. The window ends at ${new Date(resetsAtMs).toISOString()}.`;
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

/**
 * Returns the usage limit (hourly or daily) that the price would exceed, or undefined. If the price would exceed both
 * limits, returns the daily limit.
 */
function findExceededUsageLimit({ hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: Usage, price: number) {
  const usageLimits = [
    { name: 'daily', windowMs: dayMs, usedCredits: dailyCredits, creditLimit: dailyLimit },
    { name: 'hourly', windowMs: hourMs, usedCredits: hourlyCredits, creditLimit: hourlyLimit },
  ];
  return usageLimits.find(
    ({ usedCredits, creditLimit }) => usedCredits >= creditLimit || usedCredits + price > creditLimit,
  );
}

/** Returns the start and end of the calendar month (UTC) that contains a time, in Unix milliseconds. */
function getCalendarMonth(timeMs: number): { startMs: number; endMs: number } {
  const date = new Date(timeMs);
  const getMonthStart = (monthOffset: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthOffset, 1);
  return { startMs: getMonthStart(0), endMs: getMonthStart(1) };
}
