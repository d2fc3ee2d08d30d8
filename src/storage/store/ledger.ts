import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type CreditAccount,
  type CreditLedger,
  decideAdmission,
  type FullWindow,
  type FullWindows,
  type ReserveRequest,
  type Settlement,
} from '../../credits/ledger.ts';
import type { Prices, PriceTable } from '../../credits/prices.ts';
import { dayMs } from '../../views/durations.ts';
import type { StoreAccess } from './access.ts';

/** The largest age of a cached account that estimates may use, in milliseconds. A tool call asks for estimates several times. */
const maxEstimateAgeMs = 200;

interface LedgerOptions {
  newId?: () => string;
  /**
   * Whether replicas share the ledger. Each settlement then has an id, so that a settlement that is repeated after a lost
   * reply counts once.
   */
  isShared?: boolean;
  /** Adjusts an account to the current time before any other change, for example to a new day. */
  accountAt?(account: Account, now: number): Account;
  /** Receives the error if charged credits could not be recorded. */
  onLost?(error: unknown): void;
}

const emptySettlement: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };
const isEmptySettlement = ({
  charged,
  uncertain,
  isPaidAnswer,
  remaining,
  extendsRetention: keeps,
}: Settlement): boolean => charged === 0 && uncertain === 0 && !isPaidAnswer && remaining === undefined && !keeps;

const changesPrices = ({ updatePrices: learn }: Settlement, prices: Prices): boolean =>
  learn !== undefined && learn(prices) !== prices;

/** Opens the ledger of all tenants in a store. */
export function openLedger(
  { documents, leases, queue, keyOf }: Pick<StoreAccess, 'documents' | 'leases' | 'queue' | 'keyOf'>,
  options: LedgerOptions = {},
): CreditLedger {
  const { newId = () => randomBytes(9).toString('base64url'), accountAt, onLost, isShared = false } = options;
  const key = (tenantId: string) => keyOf(tenantId, 'account');

  /** Changes an account. @param work returns its result, and whether the account has to be written */
  const changeAccount = <Result>(
    tenantId: string,
    work: (account: Account, now: number) => readonly [Result, boolean],
  ) => {
    type Changed = { result: Result; account: Account; version: string };
    return documents.update<Account, Changed>(key(tenantId), (doc, now, version) => {
      const stored = doc ?? createEmptyAccount();
      const account = accountAt?.(stored, now) ?? stored;
      const isLost = (id: string, lease: StoredLease) => leases.isClosed(id, lease) || leases.isAbandoned(lease, now);
      const hasPassed = applyElapsedTime(account, now, isLost);
      const [result, isChanged] = work(account, now);
      const written = (isChanged || hasPassed) && { next: account, ttlMs: getAccountTtlMs(account) };
      return { result: { result, account, version }, ...written };
    });
  };

  const read = async (tenantId: string): Promise<CreditAccount> =>
    summarizeAccount((await changeAccount(tenantId, () => [undefined, false])).account);
  const getCachedAccount = (tenantId: string) => summarizeAccount(documents.getCached<Account>(key(tenantId))?.doc);

  /**
   * Settles a call. Writes the account even if the lease is missing: the new version makes the compare-and-swap of a
   * reservation that is still in progress fail.
   */
  const settleOnce = async (tenantId: string, id: string, settlement: Settlement, hasLease: boolean) => {
    const onGiveUp = (error: unknown) => {
      leases.close(id);
      if (!isEmptySettlement(settlement)) onLost?.(error);
    };
    const work = async () => {
      await changeAccount(tenantId, (account, now) => [
        undefined,
        settle(account, id, settlement, { hasLease, now }) || hasLease,
      ]);
      leases.close(id);
    };
    await queue.write(work, { onGiveUp });
  };

  return {
    read,
    estimate: async (tenantId) => {
      const age = documents.getCached(key(tenantId))?.ageMs ?? Infinity;
      return age < maxEstimateAgeMs
        ? getCachedAccount(tenantId)
        : read(tenantId).catch(() => getCachedAccount(tenantId));
    },
    reserve: async (tenantId, requestOf) => {
      const id = newId();
      leases.open(id);
      const reserving = changeAccount(tenantId, (account, now) => {
        const request = requestOf(summarizeAccount(account));
        const kind = reserve(account, request, { id, owner: leases.owner, at: now });
        return [{ kind, request }, kind === 'granted'] as const;
      });
      const { result, account, version } = await reserving.catch((error) => {
        // The store may have stored the lease although the call to the store failed. No other code would settle the lease.
        void settleOnce(tenantId, id, emptySettlement, true);
        throw error;
      });
      const { kind, request } = result;
      if (kind === 'granted') {
        const { credits, isPaid } = request;
        const lease = { id, credits, isPaid };
        return { kind, lease, account: summarizeAccount(account) };
      }
      leases.close(id);
      if (kind === 'refused') return { kind, account: summarizeAccount(account) };
      return { kind, version };
    },
    changed: (tenantId, version, signal) => documents.waitForChange(key(tenantId), version, signal),
    settle: async (tenantId, settlement, lease) => {
      const id = lease?.id ?? settlement.id ?? (isShared ? newId() : '');
      // An empty settlement is not written. Otherwise invented keys would fill the store with accounts.
      if (!lease && isEmptySettlement(settlement) && !changesPrices(settlement, getCachedAccount(tenantId).prices))
        return;
      await settleOnce(tenantId, id, settlement, lease !== undefined);
    },
  };
}

/** The credit account of one tenant, as it is stored. All times are by the clock of the store. */
export interface Account {
  /** The UTC day of a daily account, such as `2026-11-22`. */
  day?: string;
  /** Charged credits. */
  spent: number;
  /** Credits of calls that the service may have charged. */
  uncertain: number;
  /** The number of paid answers. */
  calls: number;
  /** When a call was charged last; 0 if never. */
  paidAt: number;
  /** The remaining credits that the service stated last. */
  remaining?: number;
  /** The known prices, as `serializePrices` writes them. */
  prices: string;
  /** The leases of calls in progress. The lease of a call whose process died stays here, in case the call is settled later. */
  leases: Record<string, StoredLease>;
  /** The ids of the last settlements without a lease, so that a repeated settlement counts once. */
  settled: string[];
}

interface StoredLease extends ReserveRequest {
  owner: string;
  at: number;
  /** The credits that were counted as uncertain when the process of the call had died, and when. */
  booked?: { credits: number; at: number };
}

/** How long spending counts after the last paid call of a tenant, in milliseconds. */
const spendingTtlMs = 30 * dayMs;
const maxSettled = 300;
/** The largest sum of charges. With this limit, sums stay finite numbers. */
const maxCredits = 1e300;

const createEmptyAccount = (): Account => ({
  spent: 0,
  uncertain: 0,
  calls: 0,
  paidAt: 0,
  prices: noPrices,
  leases: {},
  settled: [],
});

const noPrices = '[]';

const isEmptyAccount = ({ paidAt, leases, remaining, prices }: Account): boolean =>
  paidAt === 0 && Object.keys(leases).length === 0 && remaining === undefined && prices === noPrices;

/** Returns the lifetime of an account. An account without spending expires soon, because anybody can invent a key. */
function getAccountTtlMs(account: Account): number {
  if (account.paidAt > 0 || Object.keys(account.leases).length > 0) return spendingTtlMs;
  return isEmptyAccount(account) ? dayMs / 24 / 60 : dayMs / 24;
}

const listOpenLeases = ({ leases }: Account) => Object.values(leases).filter(({ booked }) => booked === undefined);

/** Returns the account as the budget rules read it. */
export function summarizeAccount(account = createEmptyAccount()): CreditAccount {
  const { spent, uncertain, calls, remaining, prices, day } = account;
  const leases = listOpenLeases(account);
  return {
    spent,
    uncertain,
    calls,
    remaining,
    reserved: leases.reduce((sum, { credits }) => sum + credits, 0),
    reservedAtLeast: leases.reduce((sum, { credits, atLeast = credits }) => sum + atLeast, 0),
    paidInFlight: leases.filter(({ isPaid }) => isPaid).length,
    prices: parsePricesCached(prices),
    ...(day !== undefined && { day }),
  };
}

/**
 * Applies the time that has passed to an account. Spending expires 30 days after the last paid call. If the process of a
 * call has died, the possible cost of the call counts as uncertain. Returns whether anything changed.
 */
function applyElapsedTime(account: Account, now: number, isLost: (id: string, lease: StoredLease) => boolean): boolean {
  let isChanged = false;
  if (account.paidAt > 0 && account.paidAt + spendingTtlMs <= now && listOpenLeases(account).length === 0) {
    Object.assign(account, { spent: 0, uncertain: 0, calls: 0, paidAt: 0, leases: {} });
    isChanged = true;
  }
  for (const [id, lease] of Object.entries(account.leases)) {
    const { booked, ifLost, budget } = lease;
    if (booked && now - booked.at > dayMs) delete account.leases[id];
    else if (!booked && isLost(id, lease)) {
      const credits = ifLost ?? Math.max(1, budget - account.spent - account.uncertain);
      lease.booked = { credits, at: now };
      account.uncertain += credits;
      account.paidAt = now;
    } else continue;
    isChanged = true;
  }
  return isChanged;
}

function reserve(
  account: Account,
  request: ReserveRequest,
  { id, ...lease }: { id: string; owner: string; at: number },
): 'granted' | 'wait' | 'refused' {
  if (request.queue !== undefined && listOpenLeases(account).some(({ queue }) => queue === request.queue))
    return 'wait';
  const admission = decideAdmission(summarizeAccount(account), request);
  if (admission !== 'now') return admission === 'never' ? 'refused' : 'wait';
  account.leases[id] = { ...lease, ...request };
  return 'granted';
}

/**
 * Settles a call, at most once. If the lease is missing, the call was settled before; without a lease, the id tells. If the
 * process of the call had counted as dead, the credits that were counted for it are subtracted. Returns whether anything
 * changed.
 */
function settle(
  account: Account,
  id: string,
  settlement: Settlement,
  { hasLease, now }: { hasLease: boolean; now: number },
) {
  const { charged, uncertain, isPaidAnswer, remaining, extendsRetention: keeps, updatePrices: learn } = settlement;
  if (keeps && account.paidAt === 0) return false;
  const lease = account.leases[id];
  if (hasLease ? lease === undefined : account.settled.includes(id)) return false;
  if (hasLease) delete account.leases[id];
  else if (id !== '') account.settled = [...account.settled, id].slice(-maxSettled);
  account.spent = Math.min(account.spent + charged, maxCredits);
  account.uncertain = Math.min(account.uncertain + uncertain - (lease?.booked?.credits ?? 0), maxCredits);
  if (isPaidAnswer) account.calls++;
  if (isPaidAnswer || charged + uncertain > 0 || keeps) account.paidAt = now;
  if (remaining !== undefined) account.remaining = remaining;
  if (learn) {
    const prices = parsePricesCached(account.prices);
    const learned = learn(prices);
    if (learned !== prices) account.prices = serializePrices(learned);
  }
  return true;
}

const serializePrices = (prices: Prices): string =>
  JSON.stringify([...prices].map(([operation, { bySize, ...rest }]) => [operation, { bySize: [...bySize], ...rest }]));

/** Caches parsed prices by their text, because many accounts have the same prices. */
const parsedPrices = new LRUCache<string, Prices>({ max: 1000, memoMethod: (text) => parsePrices(text) });
const parsePricesCached = (text: string): Prices => parsedPrices.memo(text);

const parsePrices = (text: string): Prices =>
  new Map(
    (JSON.parse(text) as [string, Omit<PriceTable, 'bySize'> & { bySize: [number, never][] }][]).map(
      ([operation, table]) => [operation, { ...table, bySize: new Map(table.bySize) }],
    ),
  );

/**
 * Opens the full usage windows that replicas share. If a window cannot be read, the only cost is a call that the service
 * refuses.
 */
export function openWindows({ documents, keyOf }: StoreAccess, clock: () => number): FullWindows {
  type StoredWindow = { window: FullWindow; at: number };
  return {
    get: async (tenantId) => {
      const reading = documents.read<StoredWindow>(keyOf(tenantId, 'window'));
      const { doc, now } = await reading.catch(() => ({ doc: undefined, now: 0 }));
      // JSON has no infinity, so a missing number means that the service stated no limit. The age of the window is measured
      // by the clock of the store.
      return (
        doc && {
          ...doc.window,
          remaining: doc.window.remaining ?? Infinity,
          checkedAt: clock() - Math.abs(now - doc.at),
        }
      );
    },
    set: (tenantId, window) =>
      documents.write(keyOf(tenantId, 'window'), (at) => (window ? { window, at } : null), dayMs).catch(() => {}),
  };
}
