import { createHash } from 'node:crypto';
import type { OperationName } from '../../api/operations.ts';
import { type Collection, type CreditStatus, ItemType, type UsageLimit } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { ApiError, notFound } from './request.ts';

interface Terms {
  /** A name of the API document (Authentication, rule 5), or `collections:write`, which is this library's choice. */
  scope?: string;
  /** Credits per call, or per started group of `perItems` items in the answer (then an empty answer is free). */
  price?: { credits: number; perItems?: number };
  /** The credit headers of its 200 answers (document, *Endpoints*). */
  states: readonly ('Charged' | 'Remaining')[];
}

const [nothing, charged, both] = [[], ['Charged'], ['Charged', 'Remaining']] as const;
const perItems = { credits: 1, perItems: 10 };
const perCall = { credits: 1 };

/** What the document leaves open, scopes and prices among it, so a real service may differ; README.md lists it. */
export const terms: Record<OperationName, Terms> = {
  whoami: { states: nothing },
  getAccount: { states: nothing, scope: 'account:read' },
  getCredits: { states: both, scope: 'credits:read' },
  listCollections: { states: charged, scope: 'collections:read' },
  listCollectionItems: { states: both, scope: 'collections:read', price: perItems },
  addCollectionItem: { states: charged, scope: 'collections:write' },
  searchAds: { states: both, scope: 'ads:read', price: perItems },
  getAd: { states: both, scope: 'ads:read', price: perCall },
  searchPages: { states: both, scope: 'pages:read', price: perItems },
  getPage: { states: both, scope: 'pages:read', price: perCall },
};

const scopeNames = [...new Set(Object.values(terms).flatMap(({ scope }) => scope ?? []))];

const plan = { credits: 10_000, hourlyLimit: 1_000, dailyLimit: 5_000 };

/** The source of ids and secrets. With a seeded one a library is the same every time. */
export type Random = { bytes(count: number): Uint8Array; uuid(): string };

/** Options of a new key; defaults come from `plan`. */
export type KeyOptions = {
  name?: string;
  /** Default: every scope; that is this library's "standard access set". */
  scopes?: readonly string[];
  /** Credits per period (calendar month, UTC). */
  credits?: number;
  hourlyLimit?: number;
  dailyLimit?: number;
  /** false: without a subscription, so gated calls are answered 402. */
  subscription?: boolean;
  /** Calls with this key cost nothing and meet no limits, whatever its account has. */
  unmetered?: boolean;
};

/** A key without its secret, which is not stored. */
export type KeyInfo = ReturnType<typeof toKeyInfo>;
/** The key of a request, its account, and the subscription that pays. */
export type Caller = ReturnType<typeof toCaller>;
export type Keys = ReturnType<typeof keysIn>;

const fixedPrefix = 'svc_live_';
/** How many characters of a key are ever shown. */
const prefixLength = fixedPrefix.length + 8;

/** A fast hash is enough, because 160 random bits cannot be guessed. */
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

/** Times are Unix milliseconds; flags are 0 or 1. */
type KeyRow = {
  id: string;
  keyPrefix: string;
  name: string;
  /** With spaces between them. */
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

type KeyParts = { database: Database; collections: Collections; now: () => number; random: Random };

export function keysIn({ database, collections, now, random }: KeyParts) {
  const columns = 'id, keyPrefix, name, scopes, userId, unmetered, createdAt, revokedAt';
  const list = () => database.all<KeyRow>(`SELECT ${columns} FROM keys ORDER BY createdAt, rowid`).map(toKeyInfo);

  /** Finds a key by itself, its id or its prefix. */
  function one(text: string): KeyInfo {
    const sql = `SELECT ${columns} FROM keys WHERE id = ? OR keyPrefix = ? OR hash = ?`;
    const [row, ...others] = database.all<KeyRow>(sql, [text, text, hashOf(text)]);
    // The message does not repeat the text: it may be a secret that works elsewhere.
    if (!row || others.length > 0) throw new Error('No key has that id or prefix. "library key list" shows them.');
    return toKeyInfo(row);
  }

  /** Returns the secret, once. @throws Error naming the option that is wrong */
  function create(options: KeyOptions = {}): KeyInfo & { key: string } {
    const wrong = wrongOption(options);
    if (wrong) throw new Error(wrong);
    const { name = 'Library key', scopes = scopeNames, unmetered = false, subscription = true } = options;
    const { credits, hourlyLimit, dailyLimit } = { ...plan, ...options };
    const paid = subscription ? ['library', 'active'] : [null, null];
    const key = `${fixedPrefix}${Buffer.from(random.bytes(20)).toString('hex')}`;
    return database.transaction(() => {
      const userId = random.uuid();
      const account = [userId, userId, ...paid, credits, hourlyLimit, dailyLimit];
      database.run('INSERT INTO accounts VALUES (?, ?, NULL, NULL, 0, ?, ?, ?, ?, ?)', account);
      const owner = { userId, billingUserId: userId };
      for (const kind of ItemType.options)
        collections.create(owner, { name: `Saved ${kind}`, type: 'personal', defaultType: kind });
      const id = random.uuid();
      const given = [id, hashOf(key), key.slice(0, prefixLength), name, scopes.join(' '), userId, now()];
      database.run('INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?)', [...given, Number(unmetered)]);
      return { ...one(id), key };
    });
  }

  return {
    create,
    list,
    /** Revokes at once; revoking twice changes nothing. @throws Error where not exactly one key has that id or prefix */
    revoke: (keyIdOrPrefix: string): KeyInfo =>
      database.transaction(() => {
        const { id } = one(keyIdOrPrefix);
        database.run('UPDATE keys SET revokedAt = ? WHERE id = ? AND revokedAt IS NULL', [now(), id]);
        return one(id);
      }),
    /** @throws ApiError 401 when the header names no key that works */
    authenticate(authorization: string | undefined): Caller {
      const [, key] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
      const unauthorized = (code: string, message: string) => new ApiError(401, code, message);
      if (!key) throw unauthorized('missing_api_key', 'Send the API key as "Authorization: Bearer svc_live_…".');
      const row = database.get<CallerRow>(callerQuery, [hashOf(key)]);
      if (!row) throw unauthorized('invalid_api_key', 'This API key is not known here.');
      if (row.revokedAt !== null) throw unauthorized('revoked_api_key', 'This API key was revoked.');
      return toCaller(row);
    },
  };
}

const callerQuery = `
  SELECT keys.id AS keyId, keys.name AS keyName, keyPrefix, scopes, unmetered, revokedAt,
    account.userId, account.billingUserId, account.name, account.emailAddress, account.isTeamMember,
    payer.planId, payer.subscriptionStatus, payer.creditsMax, payer.hourlyLimit, payer.dailyLimit
  FROM keys JOIN accounts AS account USING (userId) JOIN accounts AS payer ON payer.userId = account.billingUserId
  WHERE hash = ?`;

export function wrongOption({ scopes = scopeNames, unmetered, subscription, ...others }: KeyOptions) {
  const { credits, hourlyLimit, dailyLimit } = others;
  const amounts = Object.entries({ credits, hourlyLimit, dailyLimit }).filter(([, value]) => value !== undefined);
  const unknown = scopes.filter((scope) => !scopeNames.includes(scope));
  if (unknown.length > 0) return `Unknown scope ${unknown.join(', ')}. Known: ${scopeNames.join(', ')}.`;
  if (scopes.length === 0) return `A key needs at least one scope of ${scopeNames.join(', ')}.`;
  if (unmetered && (subscription === false || amounts.length > 0))
    return 'An unmetered key has no credits or limits and needs no subscription: leave these options out.';
  const wrong = amounts.find(([, value]) => !Number.isSafeInteger(value) || Number(value) < 0);
  return wrong && `${wrong[0]} takes a whole number of credits, 0 or more.`;
}

type Derived = 'isDefault' | 'isOwner';
type CollectionRow = { [Key in keyof Collection as Exclude<Key, Derived>]: Collection[Key] } & {
  number: number;
  userId: string;
};

const count = (kind: ItemType) =>
  `(SELECT count(*) FROM collection_items WHERE collection = collections.number AND itemType = '${kind}')`;
const select = `
  SELECT number, id, userId, name, type, defaultType, ${count('ads')} AS adCount, ${count('pages')} AS pageCount
  FROM collections WHERE billingUserId = ?`;

function toCollection({ number: _, userId, ...row }: CollectionRow, caller: Caller): Collection {
  return { ...row, isDefault: row.defaultType !== null, isOwner: userId === caller.userId };
}

type Collections = ReturnType<typeof collectionsIn>;

/** Collections belong to a billing user: everybody who shares the subscription sees them; `isOwner` marks one's own. */
export function collectionsIn(database: Database, uuid: () => string) {
  return {
    /** @returns its row */
    create(
      { userId, billingUserId }: Pick<Caller, 'userId' | 'billingUserId'>,
      { name, type, defaultType }: { name: string; type: string; defaultType: ItemType | null },
    ): number {
      const sql =
        'INSERT INTO collections (id, userId, billingUserId, name, type, defaultType) VALUES (?, ?, ?, ?, ?, ?)';
      return database.run(sql, [uuid(), userId, billingUserId, name, type, defaultType]).rowid;
    },
    list: (caller: Caller): Collection[] =>
      database
        .all<CollectionRow>(`${select} ORDER BY number`, [caller.billingUserId])
        .map((row) => toCollection(row, caller)),
    /** `number` is its row. @throws ApiError 404, also for a collection of another account */
    open(caller: Caller, id: string): { number: number; collection: Collection } {
      const row = database.get<CollectionRow>(`${select} AND id = ?`, [caller.billingUserId, id.toLowerCase()]);
      if (!row) throw notFound('collection', id);
      return { number: row.number, collection: toCollection(row, caller) };
    },
    /** Item row numbers, newest first, from the position where an earlier page ended. */
    items(collection: number, kind: ItemType, limit: number, after = Number.MAX_SAFE_INTEGER) {
      const sql = `SELECT number, item FROM collection_items WHERE collection = ? AND itemType = ? AND number < ?
         ORDER BY number DESC LIMIT ?`;
      const rows = database.all<{ number: number; item: number }>(sql, [collection, kind, after, limit + 1]);
      const page = rows.slice(0, limit);
      return { numbers: page.map(({ item }) => item), hasMore: rows.length > limit, position: page.at(-1)?.number };
    },
    /** @returns false if the item was already there */
    add(collection: number, kind: ItemType, item: number): boolean {
      const sql = 'INSERT OR IGNORE INTO collection_items (collection, itemType, item) VALUES (?, ?, ?)';
      return database.run(sql, [collection, kind, item]).changes > 0;
    },
  };
}

const hour = 3_600_000;
const day = 24 * hour;
const hourOf = (time: number) => Math.floor(time / hour);

/**
 * Credits. The only record of spending is one table, credits per billing user and hour. The balance and the usage
 * windows are sums over it, so they cannot disagree.
 *
 * Windows follow the clock in UTC: the current hour and the current day. The period is the current calendar month; the
 * balance is full again when it starts.
 */
export function meterIn(database: Database, now: () => number) {
  function spentSince(billingUserId: string, since: number): number {
    const sql = 'SELECT coalesce(sum(credits), 0) AS spent FROM spending WHERE billingUserId = ? AND hour >= ?';
    return database.get<{ spent: number }>(sql, [billingUserId, since])?.spent ?? 0;
  }

  function status(caller: Caller): CreditStatus {
    const { planId, billingUserId, creditsMax, subscriptionStatus, hourlyLimit, dailyLimit, unmetered } = caller;
    const at = now();
    const hourlyCredits = spentSince(billingUserId, hourOf(at));
    const dailyCredits = spentSince(billingUserId, hourOf(at - (at % day)));
    const counted = { hourlyCredits, hourlyLimit, dailyCredits, dailyLimit };
    const limitType = (!unmetered && fullWindow(counted, 0)?.name) || 'none';
    const usageLimit = { isLimitReached: limitType !== 'none', limitType, ...counted };
    if (subscriptionStatus === null) {
      const none = { periodStart: null, periodEnd: null, credits: null, creditsMax: null };
      return { planId, billingUserId, ...none, usageLimit };
    }
    const { start, end } = period(at);
    const credits = Math.max(0, creditsMax - spentSince(billingUserId, hourOf(start)));
    return { planId, billingUserId, periodStart: start / 1000, periodEnd: end / 1000, credits, creditsMax, usageLimit };
  }

  return {
    status,
    /**
     * Takes the whole price or nothing. Call it inside the transaction that produces the answer.
     * @returns credits remaining
     * @throws ApiError 402 without subscription or credits, 429 when a window would overflow
     */
    charge(caller: Caller, credits: number): number {
      const { credits: balance, periodEnd, usageLimit } = status(caller);
      if (balance === null) {
        throw new ApiError(402, 'subscription_required', 'This account has no subscription; the operation needs one.');
      }
      if (balance === 0 || credits > balance) {
        const message =
          balance === 0 ? 'No credits remain' : `This answer costs ${credits} credits and ${balance} remain`;
        const details = { price: credits, credits: balance, periodEnd };
        throw new ApiError(402, 'credits_exhausted', `${message} until the period ends.`, details);
      }
      const full = fullWindow(usageLimit, credits);
      if (full) {
        const { name, length, used, limit } = full;
        const resetsAt = now() - (now() % length) + length;
        const message = `This answer costs ${credits} credits; ${used} of the ${name} limit of ${limit} are used. The window ends at ${new Date(resetsAt).toISOString()}.`;
        const details = { price: credits, usageLimit, resetsAt: resetsAt / 1000 };
        throw new ApiError(429, 'usage_limit_exceeded', message, details);
      }
      if (credits > 0) {
        database.run(
          `INSERT INTO spending VALUES (?, ?, ?)
           ON CONFLICT (billingUserId, hour) DO UPDATE SET credits = credits + excluded.credits`,
          [caller.billingUserId, hourOf(now()), credits],
        );
      }
      return balance - credits;
    },
  };
}

type Counted = Pick<UsageLimit, 'hourlyCredits' | 'hourlyLimit' | 'dailyCredits' | 'dailyLimit'>;

/** The window that has no room for an answer of this price. */
function fullWindow({ hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: Counted, price: number) {
  const windows = [
    { name: 'daily', length: day, used: dailyCredits, limit: dailyLimit },
    { name: 'hourly', length: hour, used: hourlyCredits, limit: hourlyLimit },
  ];
  return windows.find(({ used, limit }) => used >= limit || used + price > limit);
}

/** The calendar month around `at`, in unix milliseconds. */
function period(at: number): { start: number; end: number } {
  const date = new Date(at);
  const start = (month: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1);
  return { start: start(0), end: start(1) };
}
