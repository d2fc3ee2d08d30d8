import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Redis } from './open-redis.ts';
import { type KnownAccount, pricesOf, readReply, unknownAccount } from './redis-account.ts';
import type { RedisCommands, Script } from './redis-commands.ts';

export interface KnownAccountsLimits {
  /** Accounts that spent something, to write back what Redis has lost. */
  maxSpenders?: number;
  /** Accounts that spent nothing: anybody can make them up, so that they only displace each other. */
  maxStrangers?: number;
}

interface RunOptions {
  commands?: RedisCommands;
  values?: Buffer[];
  /** Ids of settlements: the script looks up which of them have arrived. */
  settlements?: string[];
}

/** The accounts in Redis, and what this process knows of them. Each change of one is a script. */
export class RedisAccounts {
  readonly #redis: Redis;
  readonly #channel: string;
  readonly #spenders: LRUCache<string, KnownAccount>;
  readonly #strangers: LRUCache<string, KnownAccount>;

  /** @param channel on which changes are published */
  constructor(redis: Redis, channel: string, limits: KnownAccountsLimits = {}) {
    const { maxSpenders = 200_000, maxStrangers = 10_000 } = limits;
    this.#spenders = new LRUCache({ max: maxSpenders });
    this.#strangers = new LRUCache({ max: maxStrangers });
    this.#redis = redis;
    this.#channel = channel;
  }

  keyOf(tenantId: string): string {
    return this.#redis.keyOf(tenantId, 'account');
  }

  known(tenantId: string): KnownAccount {
    return this.#spenders.get(tenantId) ?? this.#strangers.get(tenantId) ?? unknownAccount;
  }

  spenders(): string[] {
    return [...this.#spenders.keys()];
  }

  /** Every script is told the spending that this process knows. */
  async run(script: Script, tenantId: string, ask: object = {}, options: RunOptions = {}) {
    const { commands = this.#redis.connection, values = [], settlements = [] } = options;
    const key = this.keyOf(tenantId);
    const settledKeyOf = (id: string) => this.#redis.keyOf(tenantId, 'settled', id);
    const before = this.known(tenantId);
    const { pricesVersion: prices, spending: known } = before;
    const reply = await commands.run(
      script,
      [key, ...settlements.map(settledKeyOf)],
      [this.#channel, JSON.stringify({ newVersion: randomUUID(), prices, known, ...ask }), ...values],
    );
    const { outcome, known: now } = readReply(reply, { key, seal: this.#redis.seal, before });
    this.#keep(tenantId, now);
    return { outcome, ...now };
  }

  sealedPrices(tenantId: string, pricesText: string): Buffer {
    return this.#redis.seal.close(pricesOf(this.keyOf(tenantId)), pricesText);
  }

  #keep(tenantId: string, account: KnownAccount): void {
    const [kept, other] = account.spending ? [this.#spenders, this.#strangers] : [this.#strangers, this.#spenders];
    other.delete(tenantId);
    kept.set(tenantId, account);
  }
}
