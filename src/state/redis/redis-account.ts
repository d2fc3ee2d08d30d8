import { type CreditAccount, newAccount } from '../../credits/ledger.ts';
import { readPrices, writePrices } from '../store/account.ts';
import type { Seal } from '../store/seal.ts';

/** An account as this process last saw it. */
export interface KnownAccount {
  /** Changes with the account. */
  version: string;
  /** Of the prices; empty without any. */
  pricesVersion: string;
  pricesText: string;
  /** Figures that only grow, to write back what Redis has lost. Undefined if nothing was ever spent. */
  spending: Record<'spent' | 'counted' | 'returned' | 'calls' | 'paidAt', number> | undefined;
  account: CreditAccount;
  /** When it was read, in milliseconds of the monotonic clock. */
  at: number;
}

export const noPrices = writePrices(new Map());

export const unknownAccount: KnownAccount = {
  version: '',
  pricesVersion: '',
  pricesText: noPrices,
  spending: undefined,
  account: newAccount(),
  at: Number.NEGATIVE_INFINITY,
};

/** The name under which an account's prices are sealed. */
export const pricesOf = (key: string): string => `${key}:prices`;

/** Reads what a script of the ledger answered; prices come along only if `before` has others. */
export function readReply(reply: unknown, { key, seal, before }: { key: string; seal: Seal; before: KnownAccount }) {
  const [outcome, json, sealed] = reply as [Buffer, Buffer, Buffer | null];
  const stored = JSON.parse(String(json)) as Record<string, string | undefined>;
  const figure = (name: string) => Number(stored[name] ?? 0);
  const { version = '', prices: pricesVersion = '', remaining } = stored;
  const opened = sealed ? seal.open(pricesOf(key), sealed) : undefined;
  const isSame = pricesVersion === before.pricesVersion;
  const pricesText = isSame ? before.pricesText : (opened?.toString() ?? noPrices);
  const spending = {
    spent: figure('spent'),
    counted: figure('counted'),
    returned: figure('returned'),
    calls: figure('calls'),
    paidAt: figure('paidAt'),
  };
  const known: KnownAccount = {
    version,
    pricesVersion,
    pricesText,
    spending: spending.paidAt > 0 ? spending : undefined,
    account: {
      spent: spending.spent,
      calls: spending.calls,
      uncertain: spending.counted - spending.returned,
      reserved: figure('reserved'),
      paidUnderWay: figure('paidUnderWay'),
      remaining: remaining === undefined ? undefined : Number(remaining),
      savedCalls: figure('savedCalls'),
      savedCredits: figure('savedCredits'),
      prices: isSame ? before.account.prices : readPrices(pricesText),
    },
    at: performance.now(),
  };
  return { outcome: String(outcome), known };
}
