import { LRUCache } from 'lru-cache';
import { raceAbort } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import {
  type Admission,
  admit,
  type BalanceReading,
  type CreditAccount,
  type CreditLedger,
  type Lease,
  newAccount,
  type ReserveRequest,
  type Settlement,
} from '../credits/ledger.ts';

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

export interface MemoryLedgerOptions {
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
