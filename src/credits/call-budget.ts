import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { type Budget, hasBudget, type Limit, overLimit } from './budget.ts';
import { creditsFigure } from './credit-text.ts';
import { fits, used } from './ledger.ts';
import { isKnown, maxPriceOf, type PriceBounds, type Prices, priceBounds } from './prices.ts';

type ListName = Extract<OperationName, 'searchAds' | 'listCollectionItems'>;

interface PagesToRead {
  operation: ListName;
  items: number;
  /** Items of each page but the last. */
  size: number;
  /** Whether the number of items is known when the first page is asked for: otherwise the first page is a full one. */
  isTotalKnown: boolean;
}

/** A limit of credits for all calls of the API that one tool call makes. */
export interface CallBudget extends CreditLimit {
  /** Returns the credits that the calls of the tool call cost, may have cost, and may still cost. */
  used(): Promise<number>;
  /**
   * Returns the largest page size, up to `max`, whose highest cost fits the remaining credits of every limit.
   * @throws AdLibraryError `credit_budget` if no page fits
   */
  pageSize(page: { operation: ListName; max: number }): Promise<number>;
  /** Returns the bounds of what reading pages costs; undefined while no charge bounds it. */
  costOf(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /** Returns whether every charge seen for an operation was 0, and there was one. */
  isFree(operation: ListName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The limits that apply besides: of the connection and of the server. */
  limits: readonly Limit[];
  prices(): Promise<Prices>;
  /** Trusts that an operation whose charges were all 0 stays free, whatever the size of the page. */
  trustsFree: boolean;
}

export function openCallBudget({ callLimit, limits, prices, trustsFree }: CallBudgetOptions): CallBudget {
  return {
    maxCredits: callLimit.budget,
    used: async () => used(await callLimit.ledger.read(callLimit.account)),
    async pageSize({ operation, max }) {
      const page = { operation: operations[operation], prices: await prices(), trustsFree };
      let size = max;
      for (const limit of [callLimit, ...limits].filter(hasBudget)) {
        const account = await limit.ledger.read(limit.account);
        const spent = used(account);
        size = largestPage({ ...page, max: size, credits: limit.budget - spent });
        if (size === 0) {
          const problem = remainderTooSmall(limit.budget, spent, account.day);
          throw overLimit(limit, { problem, transient: false });
        }
      }
      return size;
    },
    async costOf({ operation, items, size, isTotalKnown }) {
      const seen = await prices();
      const [pages, rest] = [Math.floor(items / size), items % size];
      const full = priceBounds(seen, operations[operation], size);
      const last = priceBounds(seen, operations[operation], rest || size);
      if (!Number.isFinite(full.atMost + last.atMost)) return undefined;
      const both = (join: (full: number, last: number) => number) => ({
        atLeast: join(full.atLeast, last.atLeast),
        atMost: join(full.atMost, last.atMost),
      });
      if (pages > 0 || isTotalKnown) return both((page, end) => pages * page + (rest === 0 ? 0 : end));
      return { atLeast: both(Math.min).atLeast, atMost: both(Math.max).atMost };
    },
    isFree: async (operation) => maxPriceOf(await prices(), operation) === 0,
  };
}

/** Page sizes while their price is not known: whole groups of whatever a service may charge by. */
const isRound = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

interface PageToFit {
  operation: Operation;
  prices: Prices;
  max: number;
  credits: number;
  trustsFree: boolean;
}

/** Returns the largest page that fits the credits, or 0. While no charge bounds the price, an item counts as a credit. */
function largestPage({ operation, prices, max, credits, trustsFree }: PageToFit): number {
  const isFree = trustsFree && maxPriceOf(prices, operation.name) === 0;
  for (let size = max; size > 0; size--) {
    const bounds = priceBounds(prices, operation, size);
    const most = Number.isFinite(bounds.atMost) ? bounds.atMost : isFree ? 0 : size;
    const isPlain = size === max || isRound(size) || isKnown(bounds);
    if (isPlain && fits(most, credits)) return size;
  }
  return 0;
}

const remainderTooSmall = (limit: number, spent: number, day?: string) =>
  `${creditsFigure(spent)} of ${creditsFigure(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the rest.`;
