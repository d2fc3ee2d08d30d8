import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type {
  Admission,
  BalanceReading,
  CreditAccount,
  CreditLedger,
  Lease,
  ReserveRequest,
  Settlement,
} from '../../credits/credit-ledger.ts';
import { dearest } from '../../credits/prices.ts';
import { balanceScript, readScript, renewScript, reserveScript, savedScript, settleScript } from './ledger-script.ts';
import type { Redis } from './open-redis.ts';
import { readPrices, writePrices } from './price-codec.ts';
import { type KnownAccount, pricesOf, readReply, unknownAccount } from './redis-account.ts';
import { mayHaveArrived, type RedisCommands, type Script, unlessReply } from './redis-commands.ts';
import { Renewals, leaseMs as usualLeaseMs } from './renewals.ts';
import type { Waiters } from './waiters.ts';

/** Accounts that this process knows, to write back what Redis has lost. */
const maxKnown = 200_000;
/** How many accounts or settlements are written back at a time. */
const batch = 500;
/** How often prices that others learned meanwhile are learned on top of; after that, they are left out. */
const maxStale = 20;

/** How old an account may be that estimates are made from, in milliseconds: a tool call asks several times. */
const goodEnoughMs = 200;

/** A reservation whose call is in progress. */
interface OpenLease {
  tenantId: string;
  fields: ReserveRequest & { id: string };
}

interface Pending {
  tenantId: string;
  settlement: Settlement;
  /** The same however often it is sent; that of the lease, if there is one. */
  id: string;
}

export interface LedgerOptions {
  /** How long a lease holds that is not renewed, in milliseconds. */
  leaseMs?: number | undefined;
  /** Settlements that wait for Redis to take them; of further ones, the leases count as lost. */
  maxPending?: number;
}

interface RunOptions {
  commands?: RedisCommands;
  values?: Buffer[];
  /** Ids of settlements: the script looks up which of them have arrived. */
  settlements?: string[];
}

const nothingCharged: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };

/** The ledger of all replicas: each change of an account is one script in Redis. */
export class RedisCreditLedger implements CreditLedger {
  readonly #redis: Redis;
  readonly #waiters: Waiters;
  readonly #leaseMs: number;
  readonly #maxPending: number;
  readonly #known = new LRUCache<string, KnownAccount>({ max: maxKnown });
  readonly #open = new Map<string, OpenLease>();
  readonly #renewals: Renewals;
  readonly #pending = new Set<Pending>();

  constructor(redis: Redis, waiters: Waiters, { leaseMs = usualLeaseMs, maxPending = 100_000 }: LedgerOptions = {}) {
    this.#redis = redis;
    this.#waiters = waiters;
    this.#leaseMs = leaseMs;
    this.#maxPending = maxPending;
    this.#renewals = new Renewals(async () => {
      await this.#renew(redis.connection);
      await this.#settlePending(redis.connection);
    });
    redis.connection.onUp((commands) => this.#restore(commands));
  }

  async read(tenantId: string): Promise<CreditAccount> {
    return (await this.#run(readScript, tenantId)).account;
  }

  async estimate(tenantId: string): Promise<CreditAccount> {
    const { at, account } = this.#knownOf(tenantId);
    if (performance.now() - at < goodEnoughMs) return account;
    return this.read(tenantId).catch(() => account);
  }

  async reserve(tenantId: string, requestOf: (account: CreditAccount) => ReserveRequest): Promise<Admission> {
    const id = randomUUID();
    for (;;) {
      const request = requestOf(this.#knownOf(tenantId).account);
      const { credits, paid, line } = request;
      const reply = await this.#run(reserveScript, tenantId, { id, leaseMs: this.#leaseMs, ...request }).catch(
        (error) => {
          // If it was granted all the same, it would count as spent before long.
          if (mayHaveArrived(error)) this.#later({ tenantId, settlement: nothingCharged, id });
          throw error;
        },
      );
      const { outcome, version, account } = reply;
      if (outcome === 'wait') return { kind: 'wait', version };
      if (outcome === 'refused') return { kind: 'refused', account };
      if (outcome === 'granted') {
        this.#open.set(id, { tenantId, fields: { ...request, id } });
        this.#renewals.start();
        return { kind: 'granted', lease: { id, tenantId, credits, paid, line, number: 0 }, account };
      }
    }
  }

  async changed(tenantId: string, version: string, signal: AbortSignal): Promise<void> {
    const watch = this.#waiters.watch(this.#keyOf(tenantId));
    try {
      while ((await this.#run(readScript, tenantId)).version === version) await watch.next(signal);
    } finally {
      watch.end();
    }
  }

  async settle(tenantId: string, settlement: Settlement, lease?: Lease): Promise<void> {
    const pending = { tenantId, settlement, id: lease?.id ?? randomUUID() };
    // If this does not arrive, nobody renews the lease, and Redis counts it as spent until it does.
    this.#open.delete(pending.id);
    await this.#settle(this.#redis.connection, pending).catch(() => this.#later(pending));
    this.#stopIfIdle();
  }

  async saved(tenantId: string, credits: number): Promise<CreditAccount> {
    return this.#run(savedScript, tenantId, { credits }).then(
      ({ account }) => account,
      () => this.#knownOf(tenantId).account,
    );
  }

  async readBalance(tenantId: string, credits: number | undefined): Promise<BalanceReading | undefined> {
    try {
      const { outcome } = await this.#run(balanceScript, tenantId, { credits });
      return outcome === '' ? undefined : (JSON.parse(outcome) as BalanceReading);
    } catch {
      return undefined;
    }
  }

  async #settle(commands: RedisCommands, { tenantId, settlement, id }: Pending): Promise<void> {
    const { learn, ...figures } = settlement;
    for (let attempt = 0, outcome = 'stale'; outcome === 'stale'; attempt++) {
      const { pricesText } = this.#knownOf(tenantId);
      const prices = readPrices(pricesText);
      learn?.(prices);
      const learned = attempt < maxStale && writePrices(prices) !== pricesText;
      const extra = {
        ...figures,
        id,
        ...(learned && { learned, dearest: dearest(prices) }),
      };
      const values = learned ? [this.#sealed(tenantId, writePrices(prices))] : [];
      ({ outcome } = await this.#run(settleScript, tenantId, extra, { commands, values, settlements: [id] }));
    }
  }

  #later(pending: Pending): void {
    if (this.#pending.size < this.#maxPending) this.#pending.add(pending);
    this.#renewals.start();
  }

  #stopIfIdle(): void {
    if (this.#open.size + this.#pending.size === 0) this.#renewals.stop();
  }

  /** What Redis refuses, because it is full, is tried again later. */
  async #settlePending(commands: RedisCommands): Promise<void> {
    await inBatches([...this.#pending], (pending) =>
      this.#settle(commands, pending).then(() => void this.#pending.delete(pending), unlessReply),
    );
    this.#stopIfIdle();
  }

  /** After a time without Redis: what it may have lost, and what could not be told to it. */
  async #restore(commands: RedisCommands): Promise<void> {
    const spenders = [...this.#known].flatMap(([tenantId, { spending }]) => (spending ? tenantId : []));
    await this.#renew(commands, spenders);
    await this.#settlePending(commands);
  }

  /** Renews the leases of this process; of tenants without any, it only writes back what is known. */
  async #renew(commands: RedisCommands, alsoOf: readonly string[] = []): Promise<void> {
    const leases = new Map<string, OpenLease['fields'][]>(alsoOf.map((tenantId) => [tenantId, []]));
    for (const { tenantId, fields } of this.#open.values())
      leases.set(tenantId, [...(leases.get(tenantId) ?? []), fields]);
    await inBatches([...leases], (one) => this.#renewOne(commands, one).catch(unlessReply));
  }

  async #renewOne(
    commands: RedisCommands,
    [tenantId, open]: [tenantId: string, open: OpenLease['fields'][]],
  ): Promise<void> {
    const { account, pricesVersion, pricesText } = this.#knownOf(tenantId);
    const learned = pricesVersion !== '';
    const extra = { open, leaseMs: this.#leaseMs, ...(learned && { learned, dearest: dearest(account.prices) }) };
    const values = learned ? [this.#sealed(tenantId, pricesText)] : [];
    const settlements = open.map(({ id }) => id);
    await this.#run(renewScript, tenantId, extra, { commands, values, settlements });
  }

  async #run(
    script: Script,
    tenantId: string,
    extra: object = {},
    { commands = this.#redis.connection, values = [], settlements = [] }: RunOptions = {},
  ) {
    const key = this.#keyOf(tenantId);
    const settledKeyOf = (id: string) => this.#redis.keyOf(tenantId, 'settled', id);
    const before = this.#knownOf(tenantId);
    const { pricesVersion: prices, spending: known } = before;
    const ask = JSON.stringify({ epoch: randomUUID(), prices, known, ...extra });
    const reply = await commands.run(
      script,
      [key, ...settlements.map(settledKeyOf)],
      [this.#waiters.channel, ask, ...values],
    );
    const { outcome, known: now } = readReply(reply, { key, seal: this.#redis.seal, before });
    this.#known.set(tenantId, now);
    return { outcome, ...now };
  }

  #keyOf(tenantId: string): string {
    return this.#redis.keyOf(tenantId, 'account');
  }

  #knownOf(tenantId: string): KnownAccount {
    return this.#known.get(tenantId) ?? unknownAccount;
  }

  #sealed(tenantId: string, pricesText: string): Buffer {
    return this.#redis.seal.close(pricesOf(this.#keyOf(tenantId)), pricesText);
  }
}

async function inBatches<T>(all: readonly T[], write: (one: T) => Promise<void>): Promise<void> {
  for (let start = 0; start < all.length; start += batch) await Promise.all(all.slice(start, start + batch).map(write));
}
