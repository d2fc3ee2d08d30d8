import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type CreditAccount,
  type CreditLedger,
  decideAdmission,
  type ReachedUsageLimit,
  type ReachedUsageLimitStore,
  type ReserveRequest,
  type Settlement,
} from '../../credits/ledger.ts';
import type { Prices, PriceTable } from '../../credits/prices.ts';
import { dayMs } from '../../views/durations.ts';
import type { StoreAccess } from './access.ts';

/**
 * The maximum age of a cached credit account that is used to estimate a cost, in milliseconds. The cache saves reads
 * when one tool call makes several estimates.
 */
const maxEstimateAgeMs = 200;

interface LedgerOptions {
  createId?: () => string;
  /**
   * True if replicas share the ledger. Each settlement (the recorded cost of a call) then has an id. If a settlement is
   * retried because the store's reply was lost, the id ensures that the settlement counts only once.
   */
  isShared?: boolean;
  /** Brings an account up to date before each change. For example, resets the spending on a new day. */
  updateToTime?(account: StoredAccount, now: number): StoredAccount;
  /** Called with the error if charged credits could not be recorded, e.g. to warn the operator. */
  onChargeLost?(error: unknown): void;
}

const emptySettlement: Settlement = { chargedCredits: 0, uncertainCredits: 0, isPaidResponse: false };
const isEmptySettlement = ({
  chargedCredits,
  uncertainCredits,
  isPaidResponse,
  remainingCredits,
  extendsRetention,
}: Settlement): boolean =>
  chargedCredits === 0 &&
  uncertainCredits === 0 &&
  !isPaidResponse &&
  remainingCredits === undefined &&
  !extendsRetention;

const hasPriceChange = ({ updatePrices }: Settlement, prices: Prices): boolean =>
  updatePrices !== undefined && updatePrices(prices) !== prices;

/** Opens the credit ledger in a store. The ledger contains the credit accounts of API keys and sign-in connections. */
export function openLedger(
  { documents, leases, queue, buildKey }: Pick<StoreAccess, 'documents' | 'leases' | 'queue' | 'buildKey'>,
  options: LedgerOptions = {},
): CreditLedger {
  const {
    createId = () => randomBytes(9).toString('base64url'),
    updateToTime,
    onChargeLost,
    isShared = false,
  } = options;
  const getAccountKey = (accountId: string) => buildKey(accountId, 'account');

  /**
   * Changes a credit account.
   * @param change changes `account` in place. Returns a result, and true if the account must be written.
   */
  const changeAccount = <Result>(
    accountId: string,
    change: (account: StoredAccount, now: number) => readonly [Result, boolean],
  ) => {
    type Changed = { result: Result; account: StoredAccount; version: string };
    return documents.update<StoredAccount, Changed>(getAccountKey(accountId), (doc, now, version) => {
      const storedAccount = doc ?? createEmptyAccount();
      const account = updateToTime?.(storedAccount, now) ?? storedAccount;
      const isLost = (id: string, lease: StoredLease) => leases.isClosed(id, lease) || leases.isAbandoned(lease, now);
      const hasTimeChanged = applyElapsedTime(account, now, isLost);
      const [result, isChanged] = change(account, now);
      const written = (isChanged || hasTimeChanged) && { next: account, ttlMs: getAccountTtlMs(account) };
      return { result: { result, account, version }, ...written };
    });
  };

  const read = async (accountId: string): Promise<CreditAccount> =>
    summarizeAccount((await changeAccount(accountId, () => [undefined, false])).account);
  const getCachedAccount = (accountId: string) =>
    summarizeAccount(documents.getCached<StoredAccount>(getAccountKey(accountId))?.doc);

  /**
   * Settles a call: replaces its reserved credits with the charge. If the call has made a reservation (`hasLease`),
   * writes the account even if the reservation is missing there. This changes the version of the account, so that a
   * reservation that is still being written fails.
   */
  const settleOnce = async (accountId: string, callId: string, settlement: Settlement, hasLease: boolean) => {
    const onGiveUp = (error: unknown) => {
      leases.close(callId);
      if (!isEmptySettlement(settlement)) onChargeLost?.(error);
    };
    const settleInAccount = async () => {
      await changeAccount(accountId, (account, now) => [
        undefined,
        settleCall(account, callId, settlement, { hasLease, now }) || hasLease,
      ]);
      leases.close(callId);
    };
    await queue.write(settleInAccount, { onGiveUp });
  };

  return {
    read,
    readPossiblyOutdated: async (accountId) => {
      const ageMs = documents.getCached(getAccountKey(accountId))?.ageMs ?? Infinity;
      return ageMs < maxEstimateAgeMs
        ? getCachedAccount(accountId)
        : read(accountId).catch(() => getCachedAccount(accountId));
    },
    reserve: async (accountId, buildRequest) => {
      const id = createId();
      leases.open(id);
      const reservation = changeAccount(accountId, (account, now) => {
        const request = buildRequest(summarizeAccount(account));
        const kind = reserve(account, request, { id, owner: leases.owner, takenAt: now });
        return [{ kind, request }, kind === 'granted'] as const;
      });
      const { result, account, version } = await reservation.catch((error) => {
        // The store may contain the lease (the reservation) although the write reported a failure. End the lease here,
        // because no other code will end it.
        void settleOnce(accountId, id, emptySettlement, true);
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
    waitForChange: (accountId, version, signal) => documents.waitForChange(getAccountKey(accountId), version, signal),
    settle: async (accountId, settlement, lease) => {
      const id = lease?.id ?? settlement.id ?? (isShared ? createId() : '');
      // Do not write a settlement (the recorded cost of a call) that charges nothing. Otherwise, made-up API keys could
      // fill the store with accounts.
      if (!lease && isEmptySettlement(settlement) && !hasPriceChange(settlement, getCachedAccount(accountId).prices))
        return;
      await settleOnce(accountId, id, settlement, lease !== undefined);
    },
  };
}

/** The stored credit account of an API key or a sign-in connection. */
export interface StoredAccount {
  /** The UTC day of the spending, e.g. `2026-11-22`. Set only if the credit budget applies per day. */
  day?: string;
  /** The sum of the charges that the service reported, in credits. */
  spent: number;
  /** The estimated credits of calls with an unknown charge. The service may or may not have charged them. */
  uncertain: number;
  /** The number of responses that the service charged for. */
  calls: number;
  /** The time of the last paid call by the store's clock, or 0 if there was none. */
  paidAt: number;
  /** The credit balance that the service last reported. */
  remainingCredits?: number;
  /** The known prices, in the format of `serializePrices`. */
  prices: string;
  /**
   * The reservations of calls in progress, by id. If the process of a call dies, its reservation stays in the account
   * for a day, because the charge may still be reported.
   */
  leases: Record<string, StoredLease>;
  /**
   * The ids of recently settled calls without a reservation. If such a settlement is repeated, it is not counted again.
   */
  settledCallIds: string[];
}

interface StoredLease extends ReserveRequest {
  owner: string;
  takenAt: number;
  /**
   * The credits of the call that count as possibly charged, and the time from which they count. Set when the process of
   * the call has died before the service reported a charge.
   */
  possibleCharge?: { credits: number; countedAt: number };
}

/** How long spending is remembered after the last paid call of a tenant (API key), in milliseconds. */
const spendingTtlMs = 30 * dayMs;
const maxSettledIds = 300;
/**
 * The upper limit for sums of credits. The limit keeps these sums finite, even if the service reports absurd charges.
 */
const maxCredits = 1e300;

const createEmptyAccount = (): StoredAccount => ({
  spent: 0,
  uncertain: 0,
  calls: 0,
  paidAt: 0,
  prices: noPrices,
  leases: {},
  settledCallIds: [],
});

const noPrices = '[]';

const isEmptyAccount = ({ paidAt, leases, remainingCredits, prices }: StoredAccount): boolean =>
  paidAt === 0 && Object.keys(leases).length === 0 && remainingCredits === undefined && prices === noPrices;

/**
 * Returns the lifetime of an account in the store, in milliseconds. An account without spending or reservations expires
 * after an hour, and an empty account after a minute, because such accounts may belong to made-up API keys.
 */
function getAccountTtlMs(account: StoredAccount): number {
  if (account.paidAt > 0 || Object.keys(account.leases).length > 0) return spendingTtlMs;
  return isEmptyAccount(account) ? dayMs / 24 / 60 : dayMs / 24;
}

const listOpenLeases = ({ leases }: StoredAccount) =>
  Object.values(leases).filter(({ possibleCharge }) => possibleCharge === undefined);

/** Adds up the open reservations of a stored account and parses its prices. */
export function summarizeAccount(account = createEmptyAccount()): CreditAccount {
  const {
    spent: spentCredits,
    uncertain: uncertainCredits,
    calls: paidCallCount,
    remainingCredits,
    prices,
    day,
  } = account;
  const leases = listOpenLeases(account);
  return {
    spentCredits,
    uncertainCredits,
    paidCallCount,
    remainingCredits,
    reservedCredits: leases.reduce((sum, { credits }) => sum + credits, 0),
    minReservedCredits: leases.reduce((sum, { credits, atLeast = credits }) => sum + atLeast, 0),
    runningPaidCallCount: leases.filter(({ isPaid }) => isPaid).length,
    prices: parsePricesCached(prices),
    ...(day !== undefined && { day }),
  };
}

/**
 * Updates the account for the time since its last change. Spending expires 30 days after the last paid call. If the
 * process of a call has died, its reserved credits count as possibly charged. Returns true if the account changed.
 */
function applyElapsedTime(
  account: StoredAccount,
  now: number,
  isLost: (id: string, lease: StoredLease) => boolean,
): boolean {
  let isChanged = false;
  if (account.paidAt > 0 && account.paidAt + spendingTtlMs <= now && listOpenLeases(account).length === 0) {
    Object.assign(account, { spent: 0, uncertain: 0, calls: 0, paidAt: 0, leases: {} });
    isChanged = true;
  }
  for (const [id, lease] of Object.entries(account.leases)) {
    const { possibleCharge, creditsIfLost, budget } = lease;
    if (possibleCharge && now - possibleCharge.countedAt > dayMs) delete account.leases[id];
    else if (!possibleCharge && isLost(id, lease)) {
      const credits = creditsIfLost ?? Math.max(1, budget - account.spent - account.uncertain);
      lease.possibleCharge = { credits, countedAt: now };
      account.uncertain += credits;
      account.paidAt = now;
    } else continue;
    isChanged = true;
  }
  return isChanged;
}

function reserve(
  account: StoredAccount,
  request: ReserveRequest,
  { id, ...lease }: { id: string; owner: string; takenAt: number },
): 'granted' | 'wait' | 'refused' {
  if (listOpenLeases(account).some((openLease) => isBlockedBy(openLease, request))) return 'wait';
  const admission = decideAdmission(summarizeAccount(account), request);
  if (admission !== 'now') return admission === 'never' ? 'refused' : 'wait';
  account.leases[id] = { ...lease, ...request };
  return 'granted';
}

/**
 * Returns true if a call must wait until the call of an open lease has ended. Calls in the same queue run one at a
 * time. While a paid call in a queue runs, no other paid call starts, because a call without an exact price may use up
 * the whole budget.
 */
const isBlockedBy = (openLease: StoredLease, request: ReserveRequest): boolean =>
  openLease.queue !== undefined && (openLease.queue === request.queue || (openLease.isPaid && request.isPaid));

/**
 * Adds the charge of a call to the account, unless the call was settled before. A call with a lease (a reservation) was
 * settled if the lease is missing. A call without a lease was settled if `settledCallIds` contains its id. If the call
 * was counted as possibly charged because its process seemed dead, these credits are subtracted. Returns true if the
 * account changed.
 */
function settleCall(
  account: StoredAccount,
  callId: string,
  settlement: Settlement,
  { hasLease, now }: { hasLease: boolean; now: number },
) {
  const { chargedCredits, uncertainCredits, isPaidResponse, remainingCredits, extendsRetention, updatePrices } =
    settlement;
  if (extendsRetention && account.paidAt === 0) return false;
  const lease = account.leases[callId];
  if (hasLease ? lease === undefined : account.settledCallIds.includes(callId)) return false;
  if (hasLease) delete account.leases[callId];
  else if (callId !== '') account.settledCallIds = [...account.settledCallIds, callId].slice(-maxSettledIds);
  account.spent = Math.min(account.spent + chargedCredits, maxCredits);
  account.uncertain = Math.min(
    account.uncertain + uncertainCredits - (lease?.possibleCharge?.credits ?? 0),
    maxCredits,
  );
  if (isPaidResponse) account.calls++;
  if (isPaidResponse || chargedCredits + uncertainCredits > 0 || extendsRetention) account.paidAt = now;
  if (remainingCredits !== undefined) account.remainingCredits = remainingCredits;
  if (updatePrices) {
    const prices = parsePricesCached(account.prices);
    const updatedPrices = updatePrices(prices);
    if (updatedPrices !== prices) account.prices = serializePrices(updatedPrices);
  }
  return true;
}

const serializePrices = (prices: Prices): string =>
  JSON.stringify([...prices].map(([operation, { bySize, ...rest }]) => [operation, { bySize: [...bySize], ...rest }]));

/** Caches parsed prices, keyed by their serialized form, because many accounts have the same prices. */
const cachedPrices = new LRUCache<string, Prices>({
  max: 1000,
  memoMethod: (serializedPrices) => parsePrices(serializedPrices),
});
const parsePricesCached = (serializedPrices: string): Prices => cachedPrices.memo(serializedPrices);

const parsePrices = (serializedPrices: string): Prices =>
  new Map(
    (JSON.parse(serializedPrices) as [string, Omit<PriceTable, 'bySize'> & { bySize: [number, never][] }][]).map(
      ([operation, table]) => [operation, { ...table, bySize: new Map(table.bySize) }],
    ),
  );

/**
 * Opens the record of the hourly and daily usage limits that API keys have reached. Replicas share this record. If the
 * record cannot be read, the only effect is one call that the service rejects.
 */
export function openReachedUsageLimitStore(
  { documents, buildKey }: StoreAccess,
  monotonicNow: () => number,
): ReachedUsageLimitStore {
  type StoredUsageLimit = { window: ReachedUsageLimit; at: number };
  return {
    get: async (tenantId) => {
      const pendingRead = documents.read<StoredUsageLimit>(buildKey(tenantId, 'window'));
      const { doc, readAt } = await pendingRead.catch(() => ({ doc: undefined, readAt: 0 }));
      // JSON cannot represent infinity, so a missing number means that there is no limit. The store's clock determines
      // the age of the record.
      return (
        doc && {
          ...doc.window,
          remainingCredits: doc.window.remainingCredits ?? Infinity,
          checkedAt: monotonicNow() - Math.abs(readAt - doc.at),
        }
      );
    },
    set: (tenantId, window) =>
      documents.write(buildKey(tenantId, 'window'), (at) => (window ? { window, at } : null), dayMs).catch(() => {}),
  };
}
