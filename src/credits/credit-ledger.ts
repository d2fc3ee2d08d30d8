import { LRUCache } from 'lru-cache';
import type { CreditStatusAnswer, UsageLimitAnswer } from '../api/response-schemas.ts';
import { emptyPrices, type Prices } from './prices.ts';

/** What this process knows of one key's credits. */
export interface CreditLedger {
  /** Credits that the service says it charged through this process, and in how many calls. */
  spent: number;
  calls: number;
  /** Credits of calls that may have been charged: nobody told. A budget counts them as spent. */
  uncertain: number;
  /** Credits left, as the service last said. */
  remaining: number | undefined;
  /** Calls that kept answers made unnecessary, and what they would have cost again. */
  savedCalls: number;
  savedCredits: number;
  prices: Prices;
  /** Credits set aside for calls under way. */
  reserved: number;
  /** Calls whose price nobody knows yet go one at a time: the one under way, if any. */
  alone: Promise<unknown> | undefined;
  /** The usage windows as last seen too full, the credits left in them, and when that was last asked. */
  full: { usageLimit: UsageLimitAnswer; left: number; askedAt: number } | undefined;
  /** The question for balance and windows that is under way. */
  asking: Promise<CreditStatusAnswer | undefined> | undefined;
  /** What was said to be nearly used up: each is said once, until there is more of it. */
  warned: Set<'credits' | 'budget'>;
}

/** By the owner of calls. */
export type CreditLedgers = (owner: string) => CreditLedger;

/** Keys in one process; the least used are forgotten past that, their spending with them. */
const mostBooks = 50_000;

export function createCreditLedgers(): CreditLedgers {
  const books = new LRUCache<string, CreditLedger>({ maxSize: mostBooks, sizeCalculation: () => 1 });
  return (owner) => {
    const known = books.get(owner);
    if (known) return known;
    const book = emptyBook();
    books.set(owner, book);
    return book;
  };
}

const emptyBook = (): CreditLedger => ({
  spent: 0,
  calls: 0,
  uncertain: 0,
  remaining: undefined,
  savedCalls: 0,
  savedCredits: 0,
  prices: emptyPrices(),
  reserved: 0,
  alone: undefined,
  full: undefined,
  asking: undefined,
  warned: new Set(),
});
