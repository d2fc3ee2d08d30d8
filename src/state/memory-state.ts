import { LRUCache } from 'lru-cache';
import { AdLibraryError, type AnswerName, raceAbort } from '../api/call.ts';
import {
  type Admission,
  admit,
  type BalanceReading,
  type CreditAccount,
  type CreditLedger,
  type FullWindow,
  type Lease,
  newAccount,
  type ReserveRequest,
  type Settlement,
} from '../credits/ledger.ts';
import type { AnswerCache, CachedAnswer, CallRegister, CursorState, RejectedKeys, State } from './state.ts';

/** The entries of a tenant, the least recently used first. */
interface Share<Value> {
  entries: Map<string, Entry<Value>>;
  bytes: number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  /** When it expires, in milliseconds. */
  until: number;
}

interface FairStoreOptions {
  /** For all tenants together. */
  maxBytes: number;
  /** How long an entry is kept, in milliseconds. */
  ttl: number;
  /** A clock that only goes on. */
  now: () => number;
}

/** The overhead of an entry: two maps, the entry, its name. */
const entryBytes = 1024;

/**
 * Bounded memory with a fair share for each tenant: when it is full, the tenants who hold the most lose their least
 * recently used entries. So nobody can displace the entries of others by storing a lot.
 */
export class FairStore<Value> {
  readonly #shares = new Map<string, Share<Value>>();
  readonly #options: FairStoreOptions;
  #total = 0;

  constructor(options: FairStoreOptions) {
    this.#options = options;
  }

  /** Bytes held, as they are counted. */
  get bytes(): number {
    return this.#total;
  }

  get(tenantId: string, name: string): Value | undefined {
    const share = this.#shares.get(tenantId);
    const entry = share?.entries.get(name);
    if (share === undefined || entry === undefined) return undefined;
    if (entry.until <= this.#options.now()) {
      this.remove(tenantId, name);
      return undefined;
    }
    // Moves it to the end: the most recently used.
    share.entries.delete(name);
    share.entries.set(name, entry);
    return entry.value;
  }

  /** A tenant's values that have not expired, the most recently used last. */
  values(tenantId: string): Value[] {
    const now = this.#options.now();
    return [...(this.#shares.get(tenantId)?.entries.values() ?? [])].flatMap(({ value, until }) =>
      until > now ? value : [],
    );
  }

  /** @param bytes the caller's estimate; a value larger than the whole store is not kept */
  set(tenantId: string, name: string, { value, bytes }: { value: Value; bytes: number }): void {
    const { maxBytes, ttl, now } = this.#options;
    this.remove(tenantId, name);
    const entry = { value, bytes: bytes + 2 * name.length + entryBytes, until: now() + ttl };
    if (entry.bytes > maxBytes) return;
    const share = this.#shares.get(tenantId) ?? { entries: new Map(), bytes: 0 };
    this.#shares.set(tenantId, share);
    share.entries.set(name, entry);
    share.bytes += entry.bytes;
    this.#total += entry.bytes;
    if (this.#total > maxBytes) this.#makeRoom();
  }

  /** Removes a tenant's entries whose names begin with `start`. */
  drop(tenantId: string, start: string): void {
    for (const name of [...(this.#shares.get(tenantId)?.entries.keys() ?? [])])
      if (name.startsWith(start)) this.remove(tenantId, name);
  }

  remove(tenantId: string, name: string): void {
    const share = this.#shares.get(tenantId);
    const entry = share?.entries.get(name);
    if (share === undefined || entry === undefined) return;
    share.entries.delete(name);
    share.bytes -= entry.bytes;
    this.#total -= entry.bytes;
    if (share.entries.size === 0) this.#shares.delete(tenantId);
  }

  /** Frees a little more than necessary, so that not every new entry has to go through all tenants. */
  #makeRoom(): void {
    this.#dropEnded();
    const wanted = this.#options.maxBytes * 0.95;
    const byBytes = [...this.#shares].sort(([, a], [, b]) => b.bytes - a.bytes);
    const level = fairLevel(
      byBytes.map(([, { bytes }]) => bytes),
      wanted,
    );
    // An entry may be much of a share: once there is room, nobody gives up more.
    for (const [tenantId, share] of byBytes)
      for (const name of share.entries.keys()) {
        if (this.#total <= wanted) return;
        if (share.bytes <= level) break;
        this.remove(tenantId, name);
      }
  }

  #dropEnded(): void {
    const now = this.#options.now();
    for (const [tenantId, { entries }] of this.#shares)
      for (const [name, { until }] of entries) if (until <= now) this.remove(tenantId, name);
  }
}

/** The maximum for each tenant with which all together hold no more than `wanted`. */
export function fairLevel(descending: readonly number[], wanted: number): number {
  let rest = descending.reduce((sum, size) => sum + size, 0);
  for (const [index, size] of descending.entries()) {
    rest -= size;
    const level = (wanted - rest) / (index + 1);
    if (level >= (descending[index + 1] ?? 0)) return level;
  }
  return Infinity;
}

/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const perValue = 24;
const perContainer = 64;
const perKey = 80;
const perCharacter = 2;

/** How much memory JSON takes once it is parsed, at most, in bytes: `{}` takes twenty for each character. */
export function memoryOf(json: unknown): number {
  let bytes = 0;
  // No recursion: an answer may be nested as deep as it is long.
  const containers: object[] = [];
  const count = (value: unknown) => {
    bytes += perValue;
    if (typeof value === 'string') bytes += perCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  count(json);
  for (let next = containers.pop(); next !== undefined; next = containers.pop()) {
    bytes += perContainer;
    if (Array.isArray(next)) next.forEach(count);
    else {
      for (const key in next) {
        bytes += perKey + perCharacter * key.length;
        count(next[key as keyof typeof next]);
      }
    }
  }
  return bytes;
}

type Account = { -readonly [Field in keyof CreditAccount]: CreditAccount[Field] } & {
  lines: Set<string>;
  leases: number;
  underWay: number;
  balance: BalanceReading | undefined;
  version: number;
  /** Resolved and replaced with each change. */
  change: { promise: Promise<void>; resolve: () => void };
  paidAt: number;
};

interface MemoryLedgerOptions {
  /** A clock that only goes on. */
  now: () => number;
  /** Remembered tenants who spent nothing. Bounded, because anybody can make them up. */
  maxStrangers?: number;
  /** Remembered tenants who spent something. Nobody can make these up without paying the service. */
  maxSpenders?: number;
}

/** How long spending counts after a tenant's last paid call, in milliseconds: 30 days. */
const spendingEndsAfter = 30 * 86_400_000;

/** After this time, in milliseconds, others may have spent too much of the same balance for a comparison. */
const readingHoldsFor = 600_000;

/**
 * The ledger of one process. Tenants who spent something or have a call in progress stay; strangers only displace each
 * other. When there is no room for another spender, paid calls of new tenants are refused before they are sent.
 */
export function memoryCreditLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxStrangers = 10_000, maxSpenders = 200_000 } = options;
  const spenders = new Map<string, Account>();
  const strangers = new LRUCache<string, Account>({ max: maxStrangers });

  const accountOf = (tenantId: string): Account => {
    const known = spenders.get(tenantId) ?? strangers.get(tenantId);
    if (known) return known;
    const account = emptyAccount();
    strangers.set(tenantId, account);
    return account;
  };

  /** Files a changed account as a spender or a stranger, and wakes the calls that wait for a change. */
  const changed = (tenantId: string, account: Account) => {
    const hasSpent = account.spent + account.uncertain > 0;
    const stays = account.underWay > 0 || (hasSpent && (spenders.has(tenantId) || spenders.size < maxSpenders));
    if (stays && spenders.get(tenantId) !== account) {
      strangers.delete(tenantId);
      spenders.set(tenantId, account);
    } else if (!stays && spenders.delete(tenantId)) strangers.set(tenantId, account);
    account.version++;
    account.change.resolve();
    account.change = deferred();
  };

  const makeRoom = (tenantId: string) => {
    if (spenders.has(tenantId) || spenders.size < maxSpenders) return;
    for (const [id, { underWay, paidAt }] of spenders)
      if (underWay === 0 && now() - paidAt > spendingEndsAfter) spenders.delete(id);
    if (spenders.size >= maxSpenders) throw full();
  };

  const read = async (tenantId: string) => {
    const account = accountOf(tenantId);
    if (account.underWay === 0 && account.paidAt > 0 && now() - account.paidAt > spendingEndsAfter) {
      Object.assign(account, { spent: 0, uncertain: 0, calls: 0, paidAt: 0 });
      changed(tenantId, account);
    }
    return account;
  };

  return {
    read,
    estimate: read,
    reserve: async (tenantId, requestOf) => {
      makeRoom(tenantId);
      const account = await read(tenantId);
      const admission = reserveIn(account, tenantId, requestOf(account));
      if (admission.kind === 'granted') changed(tenantId, account);
      return admission;
    },
    changed: async (tenantId, version, signal) => {
      const account = accountOf(tenantId);
      if (String(account.version) === version) await raceAbort(account.change.promise, signal);
    },
    settle: async (tenantId, settlement, lease) => {
      const account = accountOf(tenantId);
      settleIn(account, settlement, lease);
      if (settlement.isPaidAnswer || settlement.charged + settlement.uncertain > 0) account.paidAt = now();
      changed(tenantId, account);
    },
    saved: async (tenantId, credits) => {
      const account = accountOf(tenantId);
      account.savedCalls++;
      account.savedCredits += credits;
      return account;
    },
    readBalance: async (tenantId, credits) => {
      const account = accountOf(tenantId);
      const before = account.balance;
      account.balance = credits === undefined ? undefined : { credits, explained: 0, lease: account.leases, at: now() };
      return before && now() - before.at < readingHoldsFor ? before : undefined;
    },
  };
}

function reserveIn(account: Account, tenantId: string, request: ReserveRequest): Admission {
  const { credits, paid, line } = request;
  if (line !== undefined && account.lines.has(line)) return { kind: 'wait', version: String(account.version) };
  const admission = admit(account, request);
  if (admission === 'never') return { kind: 'refused', account };
  if (admission === 'later') return { kind: 'wait', version: String(account.version) };
  if (line !== undefined) account.lines.add(line);
  account.reserved += credits;
  account.underWay++;
  if (paid) account.paidUnderWay++;
  const number = ++account.leases;
  return { kind: 'granted', lease: { id: String(number), tenantId, credits, paid, line, number }, account };
}

function settleIn(account: Account, settlement: Settlement, lease: Lease | undefined): void {
  const { charged, uncertain, isPaidAnswer, remaining, learn } = settlement;
  account.spent += charged;
  account.uncertain += uncertain;
  if (isPaidAnswer) account.calls++;
  account.remaining = remaining ?? account.remaining;
  learn?.(account.prices);
  if (lease === undefined) return;
  account.underWay--;
  // Without calls in progress nothing is reserved, despite rounding errors.
  account.reserved = account.underWay === 0 ? 0 : account.reserved - lease.credits;
  if (lease.paid) account.paidUnderWay--;
  if (lease.line !== undefined) account.lines.delete(lease.line);
  if (account.balance && lease.number > account.balance.lease) account.balance.explained += charged;
}

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const emptyAccount = (): Account => ({
  ...newAccount(),
  lines: new Set(),
  leases: 0,
  underWay: 0,
  balance: undefined,
  version: 0,
  change: deferred(),
  paidAt: 0,
});

const full = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server cannot track the spending of any more keys.',
    sent: false,
  });

interface CallRegisterOptions {
  /** Calls in progress, per tenant and in total. */
  maxPerTenant: number;
  maxInAll: number;
}

export interface MemoryStateOptions extends CallRegisterOptions {
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  /** A clock that only goes on. */
  now: () => number;
}

/** Bytes of answers and of cursors, for all tenants together. */
const maxBytes = { answers: 128 * 1024 * 1024, cursors: 32 * 1024 * 1024 };

/** Tenants whose full usage windows are remembered. */
const maxWindows = 10_000;

/** How long a cursor may be used without its filters, in milliseconds: a day. */
const cursorTtl = 86_400_000;

/** The state of one process. */
export function memoryState({ ttl, now, ...limits }: MemoryStateOptions): State {
  const answers = memoryAnswers({ maxBytes: maxBytes.answers, ttl, now });
  const cursors = new FairStore<CursorState>({ maxBytes: maxBytes.cursors, ttl: cursorTtl, now });
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now }),
    calls: memoryCallRegister(limits),
    answers,
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: (tenantId) => ({
      remember: async (cursor, value) =>
        cursors.set(tenantId, cursor, { value, bytes: 2 * JSON.stringify(value).length }),
      recall: async (cursor) => cursors.get(tenantId, cursor),
    }),
    rejectedKeys: memoryRejectedKeys(),
  };
}

/** Keys that were accepted, of which it is remembered whether they were rejected since. */
const maxAccepted = 200_000;

function memoryRejectedKeys(): RejectedKeys {
  const isRejected = new Map<string, boolean>();
  return {
    has: async (tenantId) => isRejected.get(tenantId) === true,
    add: async (tenantId) => {
      if (isRejected.has(tenantId)) isRejected.set(tenantId, true);
    },
    answered: (tenantId, isNamed) => {
      const before = isRejected.get(tenantId);
      isRejected.delete(tenantId);
      isRejected.set(tenantId, before === true && !isNamed);
      if (isRejected.size > maxAccepted) isRejected.delete(isRejected.keys().next().value ?? '');
    },
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups whose last removal is remembered, for reads that began before it. */
const maxDropped = 10_000;

/** The cached answers of one process. */
export function memoryAnswers(options: FairStoreOptions): AnswerCache {
  const cache = new FairStore<CachedAnswer>(options);
  const dropped = new LRUCache<string, object>({ max: maxDropped });
  const nameOf = ({ group = '', fingerprint }: AnswerName) => group + fingerprint;
  const get = (tenantId: string, name: AnswerName) => cache.get(tenantId, nameOf(name));
  return {
    get: async (tenantId, name) => get(tenantId, name),
    begin: async (tenantId, name) => {
      const groups = [`${tenantId} `, `${tenantId} ${name.group ?? ''}`];
      const before = groups.map((group) => dropped.get(group));
      return {
        cached: get(tenantId, name),
        store: async (value) => {
          if (groups.some((group, index) => dropped.get(group) !== before[index])) return;
          cache.set(tenantId, nameOf(name), { value, bytes: memoryOf(value.answer.raw) + answerBytes });
        },
      };
    },
    remove: async (tenantId, name) => cache.remove(tenantId, nameOf(name)),
    invalidate: async (tenantId, group = '') => {
      dropped.set(`${tenantId} ${group}`, {});
      cache.drop(tenantId, group);
    },
  };
}

/** The calls in progress of one process. */
export function memoryCallRegister({ maxPerTenant, maxInAll }: CallRegisterOptions): CallRegister {
  const perTenant = new Map<string, number>();
  let inAll = 0;
  return {
    begin: async (tenantId) => {
      const ofTenant = perTenant.get(tenantId) ?? 0;
      if (inAll >= maxInAll || ofTenant >= maxPerTenant) return false;
      perTenant.set(tenantId, ofTenant + 1);
      inAll++;
      return true;
    },
    end: async (tenantId) => {
      const left = (perTenant.get(tenantId) ?? 1) - 1;
      if (left === 0) perTenant.delete(tenantId);
      else perTenant.set(tenantId, left);
      inAll--;
    },
  };
}
