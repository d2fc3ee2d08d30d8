import { randomUUID } from 'node:crypto';
import type {
  Admission,
  BalanceReading,
  CreditAccount,
  CreditLedger,
  Lease,
  ReserveRequest,
  Settlement,
} from '../../credits/ledger.ts';
import { dearest } from '../../credits/prices.ts';
import { readPrices, writePrices } from '../store/account.ts';
import { LeaseRenewals } from './lease-renewals.ts';
import { balanceScript, readScript, reserveScript, savedScript, settleScript } from './ledger-script.ts';
import type { Redis } from './open-redis.ts';
import { type KnownAccountsLimits, RedisAccounts } from './redis-accounts.ts';
import { batches, mayHaveArrived, type RedisCommands, unlessReply } from './redis-commands.ts';
import { Renewals, leaseMs as usualLeaseMs } from './renewals.ts';
import type { Waiters } from './waiters.ts';

/** How often prices that others learned meanwhile are learned on top of; after that, they are left out. */
const maxStale = 20;

/** How old an account may be that estimates are made from, in milliseconds: a tool call asks several times. */
const goodEnoughMs = 200;

interface Pending {
  tenantId: string;
  settlement: Settlement;
  /** The same however often it is sent; that of the lease, if there is one. */
  id: string;
  hasLease: boolean;
}

export interface LedgerOptions extends KnownAccountsLimits {
  /** How long a lease holds that is not renewed, in milliseconds. */
  leaseMs?: number | undefined;
  /** Settlements that wait for Redis to take them; of further ones, the leases count as lost. */
  maxPending?: number;
}

const nothingCharged: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };

/** The ledger of all replicas: each change of an account is one script in Redis. */
export class RedisCreditLedger implements CreditLedger {
  readonly #accounts: RedisAccounts;
  readonly #leases: LeaseRenewals;
  readonly #commands: RedisCommands;
  readonly #waiters: Waiters;
  readonly #leaseMs: number;
  readonly #maxPending: number;
  readonly #renewals: Renewals;
  readonly #pending = new Set<Pending>();

  constructor(redis: Redis, waiters: Waiters, options: LedgerOptions = {}) {
    const { leaseMs = usualLeaseMs, maxPending = 100_000, ...limits } = options;
    this.#accounts = new RedisAccounts(redis, waiters.channel, limits);
    this.#leases = new LeaseRenewals(this.#accounts, leaseMs);
    this.#commands = redis.connection;
    this.#waiters = waiters;
    this.#leaseMs = leaseMs;
    this.#maxPending = maxPending;
    this.#renewals = new Renewals(async () => {
      await this.#leases.renew(redis.connection);
      await this.#settlePending(redis.connection);
    });
    redis.connection.onUp(async (commands) => {
      await this.#leases.restore(commands);
      await this.#settlePending(commands);
    });
  }

  async read(tenantId: string): Promise<CreditAccount> {
    return (await this.#accounts.run(readScript, tenantId)).account;
  }

  async estimate(tenantId: string): Promise<CreditAccount> {
    const { at, account } = this.#accounts.known(tenantId);
    if (performance.now() - at < goodEnoughMs) return account;
    return this.read(tenantId).catch(() => account);
  }

  async reserve(tenantId: string, requestOf: (account: CreditAccount) => ReserveRequest): Promise<Admission> {
    const id = randomUUID();
    for (;;) {
      const request = requestOf(this.#accounts.known(tenantId).account);
      const { credits, paid, line } = request;
      const ask = { id, leaseMs: this.#leaseMs, ...request };
      const reply = await this.#accounts.run(reserveScript, tenantId, ask, { settlements: [id] }).catch((error) => {
        // If it was granted all the same, it would count as spent before long.
        if (mayHaveArrived(error)) this.#later({ tenantId, settlement: nothingCharged, id, hasLease: true });
        throw error;
      });
      const { outcome, version, account } = reply;
      if (outcome === 'wait') return { kind: 'wait', version };
      if (outcome === 'refused') return { kind: 'refused', account };
      if (outcome === 'granted') {
        this.#leases.open(tenantId, { ...request, id });
        this.#startOrStop();
        return { kind: 'granted', lease: { id, tenantId, credits, paid, line, number: 0 }, account };
      }
    }
  }

  async changed(tenantId: string, version: string, signal: AbortSignal): Promise<void> {
    const watch = this.#waiters.watch(this.#accounts.keyOf(tenantId));
    try {
      while ((await this.#accounts.run(readScript, tenantId)).version === version) await watch.next(signal);
    } finally {
      watch.end();
    }
  }

  async settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void> {
    const id = lease?.id ?? settlement.id ?? randomUUID();
    const pending = { tenantId, settlement, id, hasLease: lease !== undefined };
    // If this does not arrive, nobody renews the lease, and Redis counts it as spent until it does.
    this.#leases.close(pending.id);
    await this.#settle(this.#commands, pending).catch(() => this.#later(pending));
    this.#startOrStop();
  }

  async saved(tenantId: string, credits: number): Promise<CreditAccount> {
    return this.#accounts.run(savedScript, tenantId, { credits }).then(
      ({ account }) => account,
      () => this.#accounts.known(tenantId).account,
    );
  }

  async readBalance(tenantId: string, credits: number | undefined): Promise<BalanceReading | undefined> {
    try {
      const { outcome } = await this.#accounts.run(balanceScript, tenantId, { credits });
      return outcome === '' ? undefined : (JSON.parse(outcome) as BalanceReading);
    } catch {
      return undefined;
    }
  }

  async #settle(commands: RedisCommands, { tenantId, settlement, id, hasLease }: Pending): Promise<void> {
    const { learn, ...figures } = settlement;
    for (let attempt = 0, outcome = 'stale'; outcome === 'stale'; attempt++) {
      const { pricesText } = this.#accounts.known(tenantId);
      const prices = readPrices(pricesText);
      learn?.(prices);
      const learned = attempt < maxStale && writePrices(prices) !== pricesText;
      if (!learned && !hasLease && recordsNothing(settlement)) return;
      const ask = { ...figures, id, ...(learned && { learned, dearest: dearest(prices) }) };
      const values = learned ? [this.#accounts.sealedPrices(tenantId, writePrices(prices))] : [];
      ({ outcome } = await this.#accounts.run(settleScript, tenantId, ask, { commands, values, settlements: [id] }));
    }
    if (hasLease) this.#leases.settled(tenantId, id);
  }

  #later(pending: Pending): void {
    if (this.#pending.size < this.#maxPending) this.#pending.add(pending);
    this.#renewals.start();
  }

  #startOrStop(): void {
    if (this.#leases.isIdle() && this.#pending.size === 0) this.#renewals.stop();
    else this.#renewals.start();
  }

  /** What Redis refuses, because it is full, is tried again later. */
  async #settlePending(commands: RedisCommands): Promise<void> {
    const settle = (pending: Pending) =>
      this.#settle(commands, pending).then(() => void this.#pending.delete(pending), unlessReply);
    for (const some of batches([...this.#pending])) await Promise.all(some.map(settle));
    this.#startOrStop();
  }
}

/** Nobody has to hear of it: keys that somebody made up take no room in Redis. */
const recordsNothing = ({ charged, uncertain, isPaidAnswer, remaining }: Settlement): boolean =>
  charged === 0 && uncertain === 0 && !isPaidAnswer && remaining === undefined;
