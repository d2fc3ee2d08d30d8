import { LRUCache } from 'lru-cache';
import {
  admit,
  type BalanceReading,
  type CreditAccount,
  type ReserveRequest,
  type Settlement,
} from '../../credits/ledger.ts';
import type { Prices, PriceTable } from '../../credits/prices.ts';

/** What is known of the credits of one tenant, as it is written. All times are by the clock of the store. */
export interface Account {
  /** The day (UTC, ISO text) that it is about, if it is about one. */
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  paidAt: number;
  remaining?: number;
  savedCalls: number;
  savedCredits: number;
  prices: string;
  balance?: BalanceReading;
  /** Leases that were ever given. */
  number: number;
  /** Of calls in progress, and of those whose process died: these count until they are settled after all. */
  leases: Record<string, KeptLease>;
  /** The last settlements without a lease: one that comes again counts once. */
  settled: string[];
}

interface KeptLease extends ReserveRequest {
  number: number;
  owner: string;
  at: number;
  /** What was counted when its process died, and at that time. */
  booked?: { credits: number; at: number };
}

const day = 86_400_000;
/** How long spending counts after a tenant's last paid call, in milliseconds. */
const spendingEndsAfter = 30 * day;
/** After this time, in milliseconds, others may have spent too much of the same balance for a comparison. */
const readingHoldsFor = 600_000;
const maxSettled = 300;
/** What sums of charges end at, so that they stay numbers. */
const maxCredits = 1e300;

export const emptyAccount = (): Account => ({
  ...{ spent: 0, uncertain: 0, calls: 0, paidAt: 0, savedCalls: 0, savedCredits: 0 },
  ...{ prices: noPrices, number: 0, leases: {}, settled: [] },
});

const noPrices = '[]';

/** Nothing was ever learned of it. */
export const isUnknown = ({ paidAt, leases, remaining, prices }: Account): boolean =>
  paidAt === 0 && Object.keys(leases).length === 0 && remaining === undefined && prices === noPrices;

/** How long an account is kept: one that has spent nothing ends soon, since anybody can make one up. */
export function lifetimeOf(account: Account): number {
  if (account.paidAt > 0 || Object.keys(account.leases).length > 0) return spendingEndsAfter;
  return isUnknown(account) ? day / 24 / 60 : day / 24;
}

const open = ({ leases }: Account) => Object.values(leases).filter(({ booked }) => booked === undefined);

export function creditAccount(account: Account = emptyAccount()): CreditAccount {
  const { spent, uncertain, calls, remaining, savedCalls, savedCredits, prices, day } = account;
  const leases = open(account);
  return {
    ...(day !== undefined && { day }),
    ...{ spent, uncertain, calls, remaining, savedCalls, savedCredits },
    reserved: leases.reduce((sum, { credits }) => sum + credits, 0),
    paidUnderWay: leases.filter(({ paid }) => paid).length,
    prices: pricesIn(prices),
  };
}

/**
 * What time has done to an account: spending has ended, even if somebody keeps asking, and what the call of a process
 * that died may have cost counts as spent. Returns whether anything changed.
 */
export function passTime(account: Account, now: number, isLost: (id: string, lease: KeptLease) => boolean): boolean {
  let isChanged = false;
  if (account.paidAt > 0 && account.paidAt + spendingEndsAfter <= now && open(account).length === 0) {
    Object.assign(account, { spent: 0, uncertain: 0, calls: 0, paidAt: 0, leases: {} });
    isChanged = true;
  }
  for (const [id, lease] of Object.entries(account.leases)) {
    const { booked, ifLost, budget } = lease;
    if (booked && now - booked.at > day) delete account.leases[id];
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

interface NewLease {
  id: string;
  owner: string;
  now: number;
}

/** Reserves, by the rule of budgets. What has been reserved already is granted again. */
export function reserve(
  account: Account,
  request: ReserveRequest,
  { id, owner, now }: NewLease,
): 'granted' | 'wait' | 'refused' {
  if (account.leases[id]) return 'granted';
  if (request.line !== undefined && open(account).some(({ line }) => line === request.line)) return 'wait';
  const admission = admit(creditAccount(account), request);
  if (admission !== 'now') return admission === 'never' ? 'refused' : 'wait';
  account.leases[id] = { ...request, number: ++account.number, owner, at: now };
  return 'granted';
}

/**
 * Settles once: a lease that is not there has been settled, and without one the id says so. What was counted for a
 * process that seemed dead is taken back. Returns whether anything changed.
 */
export function settle(
  account: Account,
  id: string,
  settlement: Settlement,
  { hasLease, now }: { hasLease: boolean; now: number },
) {
  const { charged, uncertain, isPaidAnswer, remaining, keeps, learn } = settlement;
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
    const prices = readPrices(account.prices);
    learn(prices);
    account.prices = writePrices(prices);
  }
  if (account.balance && lease && lease.number > account.balance.lease) account.balance.explained += charged;
  return true;
}

export function readBalance(account: Account, credits: number | undefined, now: number): BalanceReading | undefined {
  const before = account.balance;
  if (credits === undefined) delete account.balance;
  else account.balance = { credits, explained: 0, lease: account.number, at: now };
  return before && now - before.at < readingHoldsFor ? before : undefined;
}

/** The charges seen, as text. */
export const writePrices = (prices: Prices): string =>
  JSON.stringify([...prices].map(([operation, { bySize, ...rest }]) => [operation, { ...rest, bySize: [...bySize] }]));

/** What many accounts have in common is read once. */
const pricesRead = new LRUCache<string, Prices>({ max: 1000 });

function pricesIn(text: string): Prices {
  const prices = pricesRead.get(text) ?? readPrices(text);
  pricesRead.set(text, prices);
  return prices;
}

export const readPrices = (text: string): Prices =>
  new Map(
    (JSON.parse(text) as [string, Omit<PriceTable, 'bySize'> & { bySize: [number, never][] }][]).map(
      ([operation, table]) => [operation, { ...table, bySize: new Map(table.bySize) }],
    ),
  );
