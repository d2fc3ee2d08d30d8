import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { CreditAccount, CreditLedger, Settlement } from '../../credits/ledger.ts';
import type { Prices } from '../../credits/prices.ts';
import {
  type Account,
  creditAccount,
  emptyAccount,
  isUnknown,
  lifetimeOf,
  passTime,
  readBalance,
  readPrices,
  reserve,
  settle,
  writePrices,
} from './account.ts';
import type { Documents } from './documents.ts';
import { atOnce, onlyHere, type Retries } from './parts.ts';
import type { Presence } from './presence.ts';

const day = 86_400_000;
/** Of how many accounts the last lease is known, and for how long: less than the store keeps one that has paid. */
const knownLeases = { max: 10_000, ttl: 28 * day };
/** How old an account may be that estimates are made from, in milliseconds: a tool call asks several times. */
const goodEnoughMs = 200;
/** The same for what an answer says that cost nothing, and how long it takes until it is counted; of how many tenants. */
const writtenBehindMs = 1000;
const maxWrittenBehind = 10_000;

export interface StoreLedgerOptions {
  documents: Pick<Documents, 'known' | 'update' | 'changed'>;
  /** By default, there is this process alone. */
  presence?: Pick<Presence, 'id' | 'isDead' | 'epoch' | 'confirm' | 'lost'>;
  /** By default, nothing has to be tried again. */
  retries?: Pick<Retries, 'do'>;
  keyOf(tenantId: string): string;
  newId?: () => string;
  /** What becomes of an account before anything else. */
  begin?(account: Account, now: number): void;
  /** Receives why something that was charged could not be recorded. */
  onLost?(error: unknown): void;
}

const nothing: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };
const recordsNothing = ({ charged, uncertain, isPaidAnswer, remaining, keeps }: Settlement): boolean =>
  charged === 0 && uncertain === 0 && !isPaidAnswer && remaining === undefined && !keeps;

function learns({ learn }: Settlement, prices: Prices): boolean {
  const before = writePrices(prices);
  const after = readPrices(before);
  learn?.(after);
  return writePrices(after) !== before;
}

/** The ledger over a store: an account is a document, which the rules of `account.ts` change. */
export function storeLedger(options: StoreLedgerOptions): CreditLedger {
  const { documents, presence = onlyHere, retries = atOnce, keyOf } = options;
  const { newId = () => randomBytes(9).toString('base64url'), begin = () => {}, onLost = () => {} } = options;
  /** Leases whose calls are in progress here. One of this process that is not among them is lost. */
  const own = new Set<string>();
  /** The numbers of the last leases, and in which store: if a later one has no higher number, that lost some. */
  const lastLeases = new LRUCache<string, { number: number; epoch: string }>(knownLeases);

  /** @param work returns its result, and whether the account has to be written */
  const change = async <Result>(
    tenantId: string,
    work: (account: Account, now: number) => readonly [Result, boolean],
  ) => {
    type Changed = { result: Result; account: Account; version: string; hasPaid: boolean };
    const { epoch } = presence;
    const changed = await documents.update<Account, Changed>(keyOf(tenantId), (doc, now, version) => {
      const account = doc ?? emptyAccount();
      begin(account, now);
      const hasPassed = passTime(account, now, (id, { owner, at }) =>
        owner === presence.id ? !own.has(id) : presence.isDead(owner, at),
      );
      const [result, isChanged] = work(account, now);
      const written = (isChanged || hasPassed) && { next: account, ttlMs: lifetimeOf(account) };
      return { ...written, result: { result, account, version, hasPaid: now - account.paidAt < day } };
    });
    const { number } = changed.account;
    const last = lastLeases.get(tenantId);
    const isNewer = last?.epoch !== epoch || number > last.number;
    if (changed.hasPaid && isNewer) lastLeases.set(tenantId, { number, epoch });
    return changed;
  };

  /** Answers that cost nothing, which the store does not know of yet. */
  const saved = new Map<string, { calls: number; credits: number }>();
  const withSaved = (tenantId: string, account?: Account): CreditAccount => {
    const { savedCalls, savedCredits, ...rest } = creditAccount(account);
    const { calls = 0, credits = 0 } = (account && !isUnknown(account) && saved.get(tenantId)) || {};
    return { ...rest, savedCalls: savedCalls + calls, savedCredits: savedCredits + credits };
  };
  const writeSaved = async () => {
    for (const [tenantId, { calls, credits }] of saved) {
      saved.delete(tenantId);
      await change(tenantId, (account) => {
        // Keys that somebody made up take no room.
        if (isUnknown(account)) return [undefined, false];
        account.savedCalls += calls;
        account.savedCredits += credits;
        return [undefined, true];
      }).catch(() => {});
    }
  };

  const read = async (tenantId: string): Promise<CreditAccount> =>
    withSaved(tenantId, (await change(tenantId, () => [undefined, false])).account);
  const knownAccount = (tenantId: string) => withSaved(tenantId, documents.known<Account>(keyOf(tenantId))?.doc);
  const estimate = async (tenantId: string, ms = goodEnoughMs) => {
    const age = documents.known(keyOf(tenantId))?.ageMs ?? Infinity;
    return age < ms ? knownAccount(tenantId) : read(tenantId).catch(() => knownAccount(tenantId));
  };

  /**
   * A lease that is not there is written, too: then the account was as it was read, and a reservation or a settlement
   * that is still under way finds another version, so that it is in vain.
   */
  const settleOnce = (tenantId: string, id: string, settlement: Settlement, hasLease: boolean) => {
    const giveUp = (error: unknown) => {
      own.delete(id);
      if (!recordsNothing(settlement)) onLost(error);
    };
    const work = async () => {
      await change(tenantId, (account, now) => {
        const isChanged = settle(account, id, settlement, { hasLease, now });
        return [undefined, isChanged || hasLease];
      });
      own.delete(id);
    };
    return retries.do(work, { giveUp });
  };

  /** Rejects if the store has lost what was spent. */
  const confirmed = async (hasLost: boolean) => {
    if (hasLost) await presence.lost();
    await presence.confirm();
  };

  return {
    read,
    estimate: (tenantId) => estimate(tenantId),
    reserve: async (tenantId, requestOf) => {
      const id = newId();
      own.add(id);
      const last = lastLeases.get(tenantId);
      const reserving = change(tenantId, (account, now) => {
        const request = requestOf(creditAccount(account));
        const kind = reserve(account, request, { id, owner: presence.id, now });
        return [{ kind, request }, kind === 'granted'] as const;
      });
      const { result, account, version } = await reserving.catch((error) => {
        // If it was granted all the same, nobody would settle it.
        void settleOnce(tenantId, id, nothing, true);
        throw error;
      });
      const { kind, request } = result;
      if (kind === 'granted') {
        const { credits, paid, line } = request;
        const { number = 0 } = account.leases[id] ?? {};
        if (paid || credits > 0)
          await confirmed(last?.epoch === presence.epoch && number <= last.number).catch((error) => {
            void settleOnce(tenantId, id, nothing, true);
            throw error;
          });
        const lease = { id, tenantId, credits, paid, line, number };
        return { kind, lease, account: creditAccount(account) };
      }
      own.delete(id);
      if (kind === 'refused') return { kind, account: creditAccount(account) };
      return { kind, version };
    },
    changed: (tenantId, version, signal) => documents.changed(keyOf(tenantId), version, signal),
    settle: async (tenantId, settlement, lease) => {
      // Where nothing is tried again, nothing is settled twice.
      const id = lease?.id ?? settlement.id ?? (options.retries ? newId() : '');
      // Keys that somebody made up take no room.
      if (!lease && recordsNothing(settlement) && !learns(settlement, knownAccount(tenantId).prices)) return;
      await settleOnce(tenantId, id, settlement, lease !== undefined);
    },
    saved: async (tenantId, credits) => {
      const before = saved.get(tenantId) ?? { calls: 0, credits: 0 };
      if (saved.size === 0) setTimeout(writeSaved, writtenBehindMs).unref();
      if (saved.size < maxWrittenBehind)
        saved.set(tenantId, { calls: before.calls + 1, credits: before.credits + credits });
      return estimate(tenantId, writtenBehindMs);
    },
    readBalance: async (tenantId, credits) =>
      change(tenantId, (account, now) => [readBalance(account, credits, now), true]).then(
        ({ result }) => result,
        () => undefined,
      ),
  };
}
