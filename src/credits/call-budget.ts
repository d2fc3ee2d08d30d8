import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { type Budget, createBudgetError, hasBudget, type Limit } from './budget.ts';
import { formatCreditNumber } from './credit-text.ts';
import { isAffordable, sumUsedCredits } from './ledger.ts';
import { computePriceBounds, getMaxPrice, isExactPrice, type PriceBounds, type Prices } from './prices.ts';

type ListName = Extract<OperationName, 'searchAds' | 'listCollectionItems'>;

/** The pages of a list that a tool call intends to read. */
interface PagesToRead {
  operation: ListName;
  /** The number of items of all pages together. */
  items: number;
  /** The number of items of each page. The last page may have fewer. */
  size: number;
  /** Whether the number of items is known before the first page is read. If not, the first page is requested at full size. */
  isTotalKnown: boolean;
}

/** A limit of credits for all API calls that one tool call makes. */
export interface CallBudget extends CreditLimit {
  /** Returns the credits that the API calls have cost, may have cost, and may still cost while they are in progress. */
  readUsedCredits(): Promise<number>;
  /**
   * Returns the largest page size, up to `max`, whose highest cost fits the remaining credits of every limit.
   * @throws AdLibraryError `credit_budget` if no page fits
   */
  choosePageSize(page: { operation: ListName; max: number }): Promise<number>;
  /** Estimates the lowest and the highest cost of reading pages. Returns undefined if no charge was seen that bounds the cost. */
  estimateCost(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /** Returns whether the operation has charged 0 credits every time so far. False if there was no charge yet. */
  isFree(operation: ListName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The other limits that apply to the calls: the limit of the connection and the limit of the server. */
  limits: readonly Limit[];
  prices(): Promise<Prices>;
  /** True if an operation counts as free for pages of any size, as long as all its charges so far were 0. */
  trustsFreeOperations: boolean;
}

/** Opens the limit of one tool call. */
export function openCallBudget({ callLimit, limits, prices, trustsFreeOperations }: CallBudgetOptions): CallBudget {
  return {
    maxCredits: callLimit.budget,
    readUsedCredits: async () => sumUsedCredits(await callLimit.ledger.read(callLimit.account)),
    async choosePageSize({ operation, max }) {
      const page = { operation: operations[operation], prices: await prices(), trustsFreeOperations };
      let size = max;
      for (const limit of [callLimit, ...limits].filter(hasBudget)) {
        const account = await limit.ledger.read(limit.account);
        const spent = sumUsedCredits(account);
        size = findLargestPageSize({ ...page, max: size, credits: limit.budget - spent });
        if (size === 0) {
          const problem = explainSmallRemainder(limit.budget, spent, account.day);
          throw createBudgetError(limit, { problem, transient: false });
        }
      }
      return size;
    },
    async estimateCost({ operation, items, size, isTotalKnown }) {
      const knownPrices = await prices();
      const [fullPages, lastPageItems] = [Math.floor(items / size), items % size];
      const fullPage = computePriceBounds(knownPrices, operations[operation], size);
      const lastPage = computePriceBounds(knownPrices, operations[operation], lastPageItems || size);
      if (!Number.isFinite(fullPage.atMost + lastPage.atMost)) return undefined;
      const combine = (join: (full: number, last: number) => number) => ({
        atLeast: join(fullPage.atLeast, lastPage.atLeast),
        atMost: join(fullPage.atMost, lastPage.atMost),
      });
      if (fullPages > 0 || isTotalKnown)
        return combine((full, last) => fullPages * full + (lastPageItems === 0 ? 0 : last));
      return { atLeast: combine(Math.min).atLeast, atMost: combine(Math.max).atMost };
    },
    isFree: async (operation) => getMaxPrice(await prices(), operation) === 0,
  };
}

/** Returns whether a page size is tried while its price is unknown. Services may charge by groups of 5 or 10 items. */
const isRoundPageSize = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

/** The largest wanted page, and the credits that its cost must not exceed. */
interface PageToFit {
  operation: Operation;
  prices: Prices;
  max: number;
  credits: number;
  trustsFreeOperations: boolean;
}

/**
 * Returns the largest page size whose highest cost fits the credits, or 0 if no size fits. If no charge bounds the
 * price, each item is assumed to cost one credit.
 */
function findLargestPageSize({ operation, prices, max, credits, trustsFreeOperations }: PageToFit): number {
  const isFree = trustsFreeOperations && getMaxPrice(prices, operation.name) === 0;
  for (let size = max; size > 0; size--) {
    const bounds = computePriceBounds(prices, operation, size);
    const most = Number.isFinite(bounds.atMost) ? bounds.atMost : isFree ? 0 : size;
    const isCandidate = size === max || isRoundPageSize(size) || isExactPrice(bounds);
    if (isCandidate && isAffordable(most, credits)) return size;
  }
  return 0;
}

/** Explains why no page fits the remaining credits. */
const explainSmallRemainder = (limit: number, spent: number, day?: string) =>
  `${formatCreditNumber(spent)} of ${formatCreditNumber(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the rest.`;
