import { LRUCache } from 'lru-cache';
import type { ReserveRequest } from '../../credits/ledger.ts';
import { dearest } from '../../credits/prices.ts';
import { renewScript } from './ledger-script.ts';
import type { RedisAccounts } from './redis-accounts.ts';
import { batches, type RedisCommands, unlessReply } from './redis-commands.ts';

/** Leases of which it is remembered that they were settled. */
const maxSettled = 20_000;

/** A reservation whose call is in progress. */
interface OpenLease {
  tenantId: string;
  fields: ReserveRequest & { id: string };
}

/** Keeps in Redis what this process knows of accounts: the leases of calls in progress, and all that Redis has lost. */
export class LeaseRenewals {
  readonly #accounts: RedisAccounts;
  readonly #leaseMs: number;
  readonly #open = new Map<string, OpenLease>();
  /** The tenants of settled leases, by id: an earlier copy of Redis may still hold them, and nobody would settle them. */
  readonly #settled = new LRUCache<string, string>({ max: maxSettled });
  /** Accounts that have to be written back. What Redis refuses, because it is full, stays here. */
  readonly #lost = new Set<string>();

  constructor(accounts: RedisAccounts, leaseMs: number) {
    this.#accounts = accounts;
    this.#leaseMs = leaseMs;
  }

  isIdle(): boolean {
    return this.#open.size + this.#lost.size === 0;
  }

  open(tenantId: string, fields: OpenLease['fields']): void {
    this.#open.set(fields.id, { tenantId, fields });
  }

  /** From now on nobody renews it. */
  close(id: string): void {
    this.#open.delete(id);
  }

  settled(tenantId: string, id: string): void {
    this.#settled.set(id, tenantId);
  }

  /** Writes back all that is known, after a time without Redis. */
  async restore(commands: RedisCommands): Promise<void> {
    for (const tenantId of [...this.#accounts.spenders(), ...this.#settled.values()]) this.#lost.add(tenantId);
    await this.renew(commands);
  }

  async renew(commands: RedisCommands): Promise<void> {
    const open = byTenant([...this.#open.values()].map(({ tenantId, fields }) => [tenantId, fields]));
    const settled = byTenant(this.#lost.size === 0 ? [] : [...this.#settled].map(([id, tenantId]) => [tenantId, id]));
    const renew = (tenantId: string) =>
      this.#renewOne(commands, { tenantId, open: open.get(tenantId) ?? [], settled: settled.get(tenantId) ?? [] });
    for (const some of batches([...open.keys()])) await Promise.all(some.map(renew));
    for (const some of batches([...this.#lost])) {
      const areWritten = await Promise.all(some.map(renew));
      if (!areWritten.includes(true)) return;
    }
  }

  /** Returns whether Redis took it. */
  async #renewOne(
    commands: RedisCommands,
    { tenantId, open, settled }: { tenantId: string; open: readonly OpenLease['fields'][]; settled: readonly string[] },
  ): Promise<boolean> {
    const { account, pricesVersion, pricesText } = this.#accounts.known(tenantId);
    const learned = pricesVersion !== '';
    const ask = { open, settled, leaseMs: this.#leaseMs, learned, dearest: dearest(account.prices) };
    const values = learned ? [this.#accounts.sealedPrices(tenantId, pricesText)] : [];
    const settlements = open.map(({ id }) => id);
    // If it is refused, others come first the next time.
    const isLost = this.#lost.delete(tenantId);
    try {
      await this.#accounts.run(renewScript, tenantId, ask, { commands, values, settlements });
      return true;
    } catch (error) {
      if (isLost) this.#lost.add(tenantId);
      unlessReply(error);
      return false;
    }
  }
}

function byTenant<Item>(entries: readonly [tenantId: string, item: Item][]): Map<string, Item[]> {
  const items = new Map<string, Item[]>();
  for (const [tenantId, item] of entries) {
    const ofTenant = items.get(tenantId);
    if (ofTenant) ofTenant.push(item);
    else items.set(tenantId, [item]);
  }
  return items;
}
