import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { type Budget, createBudgetError, isBudget, type Limit } from './budget.ts';
import { formatCreditNumber } from './credit-text.ts';
import { isAffordable, sumUsedCredits } from './ledger.ts';
import { computePriceBounds, getMaxPrice, isExactPrice, type PriceBounds, type Prices } from './prices.ts';

type ListName = Extract<OperationName, 'searchAds' | 'listCollectionItems'>;

/** The list pages that a tool call plans to read. */
interface PagesToRead {
  operation: ListName;
  /** The number of items on all pages together. */
  items: number;
  /** The number of items per page. The last page may have fewer. */
  size: number;
  /**
   * True if the number of items is known before the first page is read. Otherwise the first page is requested at full
   * size.
   */
  isTotalKnown: boolean;
}

/** The credit limit for all API calls that one tool call makes. */
export interface CallBudget extends CreditLimit {
  /**
   * Returns the credits used so far: stated charges, estimates for calls with an unknown charge, and reservations of
   * calls in progress.
   */
  readUsedCredits(): Promise<number>;
  /**
   * Returns the largest page size, up to `max`, whose highest cost fits the remaining credits of every limit.
   * @throws AdLibraryError `credit_budget` if even a page of one item does not fit
   */
  choosePageSize(page: { operation: ListName; max: number }): Promise<number>;
  /**
   * Estimates the lowest and the highest cost of reading `pages`. Returns undefined if earlier charges do not give an
   * upper bound.
   */
  estimateCost(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /** Returns true if every charge for the operation so far was 0. Returns false if no charge was seen yet. */
  isFree(operation: ListName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The connection's limit and the server's limit, which apply in addition to `callLimit`. */
  limits: readonly Limit[];
  prices(): Promise<Prices>;
  /** True if an operation counts as free at any page size, as long as all its charges so far were 0. */
  trustsFreeOperations: boolean;
}

/** Opens the credit limit of one tool call. */
export function openCallBudget({ callLimit, limits, prices, trustsFreeOperations }: CallBudgetOptions): CallBudget {
  return {
    maxCredits: callLimit.budget,
    readUsedCredits: async () => sumUsedCredits(await callLimit.ledger.read(callLimit.account)),
    async choosePageSize({ operation, max }) {
      const page = { operation: operations[operation], prices: await prices(), trustsFreeOperations };
      let size = max;
      for (const limit of [callLimit, ...limits].filter(isBudget)) {
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
      const combine = (combinePrices: (full: number, last: number) => number) => ({
        atLeast: combinePrices(fullPage.atLeast, lastPage.atLeast),
        atMost: combinePrices(fullPage.atMost, lastPage.atMost),
      });
      if (fullPages > 0 || isTotalKnown)
        return combine((full, last) => fullPages * full + (lastPageItems === 0 ? 0 : last));
      return { atLeast: combine(Math.min).atLeast, atMost: combine(Math.max).atMost };
    },
    isFree: async (operation) => getMaxPrice(await prices(), operation) === 0,
  };
}

/**
 * Returns true for page sizes that may be requested although their price is unknown. Services often charge per group of
 * 5 or 10 items, so only such sizes are tried.
 */
const isRoundPageSize = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

/**
 * The input of `findLargestPageSize`. `max` is the largest page size to try, and `credits` is the highest cost allowed.
 */
interface PageToFit {
  operation: Operation;
  prices: Prices;
  max: number;
  credits: number;
  trustsFreeOperations: boolean;
}

/**
 * Returns the largest page size whose highest cost is within `credits`, or 0 if no size fits. If earlier charges give
 * no upper bound, each item is assumed to cost one credit.
 */
function findLargestPageSize({ operation, prices, max, credits, trustsFreeOperations }: PageToFit): number {
  const isFree = trustsFreeOperations && getMaxPrice(prices, operation.name) === 0;
  for (let size = max; size > 0; size--) {
    const bounds = computePriceBounds(prices, operation, size);
    const highestCost = Number.isFinite(bounds.atMost) ? bounds.atMost : isFree ? 0 : size;
    const isCandidate = size === max || isRoundPageSize(size) || isExactPrice(bounds);
    if (isCandidate && isAffordable(highestCost, credits)) return size;
  }
  return 0;
}

/** Returns the error text for the case that no page fits the remaining credits. */
const explainSmallRemainder = (limit: number, spent: number, day?: string) =>
  `${formatCreditNumber(spent)} of ${formatCreditNumber(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the remaining credits.`;
