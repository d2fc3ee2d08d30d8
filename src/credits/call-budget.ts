import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { formatRounded } from '../views/numbers.ts';
import { type Budget, createBudgetError, isBudget, type Limit } from './budget.ts';
import { isAffordable, sumUsedCredits } from './ledger.ts';
import { computePriceBounds, getMaxPrice, isExactPrice, type PriceBounds, type Prices } from './prices.ts';

type ListName = Extract<OperationName, 'searchAds' | 'listCollectionItems'>;

/** The list pages that a tool call plans to read. */
interface PagesToRead {
  operation: ListName;
  /** Total number of items on all pages. */
  items: number;
  /** Number of items per page. The last page may have fewer. */
  size: number;
  /**
   * True if the total is known before the first page is read. If it is unknown, the first page is requested at full
   * size and may cost more.
   */
  isTotalKnown: boolean;
}

/** The credit limit for all API calls that one tool call makes. */
export interface CallBudget extends CreditLimit {
  /**
   * Returns the credits used so far: charges that the service reported, estimates for calls with an unknown charge, and
   * reservations for calls in progress.
   */
  readUsedCredits(): Promise<number>;
  /**
   * Returns the largest page size, up to `max`, that is within the remaining credits of every limit even at its highest
   * expected cost.
   * @throws AdLibraryError `credit_budget` if even a page with one item does not fit
   */
  choosePageSize(page: { operation: ListName; max: number }): Promise<number>;
  /**
   * Estimates the lowest and the highest cost of reading `pages`. Returns undefined if earlier charges do not imply an
   * upper bound.
   */
  estimateCost(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /**
   * Returns true if the service has charged 0 credits for every call of this operation so far. Returns false if there
   * were no calls yet.
   */
  isFree(operation: ListName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The limits of the connection and the server. They apply in addition to `callLimit`. */
  limits: readonly Limit[];
  prices(): Promise<Prices>;
  /**
   * True if an operation whose charges were all 0 is expected to be free at any page size. Otherwise larger pages may
   * cost credits.
   */
  trustsFreeOperations: boolean;
}

/** Creates the credit limit of one tool call. */
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
          throw createBudgetError(limit, { problem, isTransient: false });
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
 * Returns true for page sizes that may be requested even if their price is unknown. Services often charge per group of
 * 5 or 10 items, so other sizes would pay for a group without using all of it.
 */
const isRoundPageSize = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

/**
 * The input of `findLargestPageSize`. `max` is the largest page size to try, and `credits` is the highest acceptable
 * cost.
 */
interface PageToFit {
  operation: Operation;
  prices: Prices;
  max: number;
  credits: number;
  trustsFreeOperations: boolean;
}

/**
 * Returns the largest page size whose highest cost is within `credits`, or 0 if no size fits. If earlier charges do not
 * imply an upper bound, the estimate is one credit per item.
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

/** Explains in an error message that the remaining credits may not cover another page. */
const explainSmallRemainder = (limit: number, spent: number, day?: string) =>
  `${formatRounded(spent)} of ${formatRounded(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the remaining credits.`;
