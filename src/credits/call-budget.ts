import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { formatCreditAmount } from '../views/numbers.ts';
import { type Budget, createBudgetError, isBudget, type SpendingLimit } from './budget.ts';
import { isAffordable, sumUsedCredits } from './ledger.ts';
import { computePriceBounds, getMaxPrice, isExactPrice, type PriceBounds, type Prices } from './prices.ts';

type ListOperationName = Extract<OperationName, 'searchAds' | 'listCollectionItems'>;

/** The pages of a list whose total cost `estimateCost` estimates. */
interface PagesToRead {
  operation: ListOperationName;
  /** The total number of items on these pages. */
  totalItems: number;
  /** The number of items per page. The last page may have fewer items. */
  pageSize: number;
  /**
   * True if `totalItems` is known before the first page is read. Otherwise the server requests a full first page, which
   * may cost more than the items that exist.
   */
  isTotalKnown: boolean;
}

/** The credit limit of one tool call. It applies to all API calls that this tool call makes. */
export interface CallBudget extends CreditLimit {
  /**
   * Returns the credits used so far: reported charges, estimates for calls with an unknown charge, and reservations for
   * calls in progress.
   */
  readUsedCredits(): Promise<number>;
  /**
   * Returns the largest page size, up to `maxSize`, whose highest expected cost is within the remaining credits of
   * every limit.
   * @throws AdLibraryError `credit_budget` if even a page with one item may cost too much
   */
  choosePageSize(page: { operation: ListOperationName; maxSize: number }): Promise<number>;
  /** Estimates the lowest and the highest cost of reading `pages`. Returns undefined if no upper bound is known. */
  estimateCost(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /**
   * Returns true if every call of this operation so far has cost 0 credits. Returns false if there were no calls yet.
   */
  isFree(operation: ListOperationName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The credit limits of the caller's sign-in connection and of the server, which apply in addition to `callLimit`. */
  callerLimits: readonly SpendingLimit[];
  readPrices(): Promise<Prices>;
  /**
   * True if an operation whose charges so far were all 0 counts as free at any page size. If false, larger pages than
   * those charged so far may cost credits.
   */
  trustsFreeOperations: boolean;
}

/**
 * Creates the credit limit of one tool call. The limits of the connection and of the server, which are in
 * `callerLimits`, apply as well.
 */
export function createCallBudget({
  callLimit,
  callerLimits,
  readPrices: loadPrices,
  trustsFreeOperations,
}: CallBudgetOptions): CallBudget {
  return {
    maxCredits: callLimit.budget,
    readUsedCredits: async () => sumUsedCredits(await callLimit.ledger.read(callLimit.accountId)),
    async choosePageSize({ operation, maxSize }) {
      const page = { operation: operations[operation], prices: await loadPrices(), trustsFreeOperations };
      let size = maxSize;
      for (const limit of [callLimit, ...callerLimits].filter(isBudget)) {
        const account = await limit.ledger.read(limit.accountId);
        const spent = sumUsedCredits(account);
        size = findLargestPageSize({ ...page, maxSize: size, maxCost: limit.budget - spent });
        if (size === 0) {
          const problem = explainSmallRemainder(limit.budget, spent, account.day);
          const creditsAfterCalls = limit.budget - spent + account.reservedCredits;
          const isTransient = findLargestPageSize({ ...page, maxSize, maxCost: creditsAfterCalls }) > 0;
          throw createBudgetError(limit, { problem, isTransient });
        }
      }
      return size;
    },
    async estimateCost({ operation, totalItems, pageSize, isTotalKnown }) {
      const knownPrices = await loadPrices();
      const [fullPages, lastPageItems] = [Math.floor(totalItems / pageSize), totalItems % pageSize];
      const fullPage = computePriceBounds(knownPrices, operations[operation], pageSize);
      const lastPage = computePriceBounds(knownPrices, operations[operation], lastPageItems || pageSize);
      if (!Number.isFinite(fullPage.atMost + lastPage.atMost)) return undefined;
      const combine = (combinePrices: (full: number, last: number) => number) => ({
        atLeast: combinePrices(fullPage.atLeast, lastPage.atLeast),
        atMost: combinePrices(fullPage.atMost, lastPage.atMost),
      });
      if (fullPages > 0 || isTotalKnown)
        return combine((full, last) => fullPages * full + (lastPageItems === 0 ? 0 : last));
      return { atLeast: combine(Math.min).atLeast, atMost: combine(Math.max).atMost };
    },
    isFree: async (operation) => getMaxPrice(await loadPrices(), operation) === 0,
  };
}

/**
 * Returns true for page sizes that may be requested even if their price is unknown, e.g. 10. Services often charge per
 * group of 5 or 10 items, so a page of 7 items would cost as much as a page of 10. Pages of 1 or 2 items are allowed
 * for small credit limits.
 */
const isRoundPageSize = (pageSize: number) => pageSize % 10 === 0 || pageSize === 5 || pageSize <= 2;

/** The input of `findLargestPageSize`: the largest page size to try, and the maximum cost of the page in credits. */
interface PageToFit {
  operation: Operation;
  prices: Prices;
  maxSize: number;
  maxCost: number;
  trustsFreeOperations: boolean;
}

/**
 * Returns the largest page size whose highest possible cost is at most `maxCost` credits, or 0 if there is none. If the
 * cost has no known upper bound, the function assumes one credit per item, or no cost for a free operation.
 */
function findLargestPageSize({ operation, prices, maxSize, maxCost, trustsFreeOperations }: PageToFit): number {
  const isFree = trustsFreeOperations && getMaxPrice(prices, operation.name) === 0;
  for (let size = maxSize; size > 0; size--) {
    const bounds = computePriceBounds(prices, operation, size);
    const highestCost = Number.isFinite(bounds.atMost) ? bounds.atMost : isFree ? 0 : size;
    const isCandidate = size === maxSize || isRoundPageSize(size) || isExactPrice(bounds);
    if (isCandidate && isAffordable(highestCost, maxCost)) return size;
  }
  return 0;
}

/** Returns an error message which says that the remaining credits may not cover another page. */
const explainSmallRemainder = (maxCredits: number, usedCredits: number, day?: string) =>
  `${formatCreditAmount(usedCredits)} of ${formatCreditAmount(maxCredits)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the remaining credits.`;
