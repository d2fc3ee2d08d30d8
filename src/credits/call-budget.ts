import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { formatCreditAmount } from '../views/numbers.ts';
import { createBudgetError, hasBudget, type LimitWithBudget, type SpendingLimit } from './budget.ts';
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
  toolCallLimit: LimitWithBudget;
  /**
   * The credit limits of the caller's sign-in connection and of the server, which apply in addition to `toolCallLimit`.
   */
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
  toolCallLimit,
  callerLimits,
  readPrices,
  trustsFreeOperations,
}: CallBudgetOptions): CallBudget {
  return {
    maxCredits: toolCallLimit.budget,
    readUsedCredits: async () => sumUsedCredits(await toolCallLimit.ledger.read(toolCallLimit.accountId)),
    async choosePageSize({ operation, maxSize }) {
      const pagePricing = { operation: operations[operation], prices: await readPrices(), trustsFreeOperations };
      let pageSize = maxSize;
      for (const limit of [toolCallLimit, ...callerLimits].filter(hasBudget)) {
        const account = await limit.ledger.read(limit.accountId);
        const usedCredits = sumUsedCredits(account);
        pageSize = findLargestPageSize({ ...pagePricing, maxSize: pageSize, maxCost: limit.budget - usedCredits });
        if (pageSize === 0) {
          const problem = explainTooFewCredits(limit.budget, usedCredits, account.day);
          const remainingWithoutReservations = limit.budget - usedCredits + account.reservedCredits;
          const isTransient =
            findLargestPageSize({ ...pagePricing, maxSize, maxCost: remainingWithoutReservations }) > 0;
          throw createBudgetError(limit, { problem, isTransient });
        }
      }
      return pageSize;
    },
    async estimateCost({ operation, totalItems, pageSize, isTotalKnown }) {
      const prices = await readPrices();
      const [fullPageCount, lastPageItems] = [Math.floor(totalItems / pageSize), totalItems % pageSize];
      const fullPage = computePriceBounds(prices, operations[operation], pageSize);
      const lastPage = computePriceBounds(prices, operations[operation], lastPageItems || pageSize);
      if (!Number.isFinite(fullPage.atMost + lastPage.atMost)) return undefined;
      const applyToBounds = (combineCosts: (fullPageCost: number, lastPageCost: number) => number) => ({
        atLeast: combineCosts(fullPage.atLeast, lastPage.atLeast),
        atMost: combineCosts(fullPage.atMost, lastPage.atMost),
      });
      if (fullPageCount > 0 || isTotalKnown)
        return applyToBounds(
          (fullPageCost, lastPageCost) => fullPageCount * fullPageCost + (lastPageItems === 0 ? 0 : lastPageCost),
        );
      return { atLeast: applyToBounds(Math.min).atLeast, atMost: applyToBounds(Math.max).atMost };
    },
    isFree: async (operation) => getMaxPrice(await readPrices(), operation) === 0,
  };
}

/**
 * Returns true for page sizes that may be requested even if their price is unknown, e.g. 10. Services often charge per
 * group of 5 or 10 items, so a page of 7 items would cost as much as a page of 10. Pages of 1 or 2 items are allowed
 * for small credit limits.
 */
const isRoundPageSize = (pageSize: number) => pageSize % 10 === 0 || pageSize === 5 || pageSize <= 2;

/** The input of `findLargestPageSize`: the largest page size to try, and the maximum cost of the page in credits. */
interface PageSizeQuery {
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
function findLargestPageSize({ operation, prices, maxSize, maxCost, trustsFreeOperations }: PageSizeQuery): number {
  const isFree = trustsFreeOperations && getMaxPrice(prices, operation.name) === 0;
  for (let size = maxSize; size > 0; size--) {
    const bounds = computePriceBounds(prices, operation, size);
    const highestCost = Number.isFinite(bounds.atMost) ? bounds.atMost : isFree ? 0 : size;
    const canRequestSize = size === maxSize || isRoundPageSize(size) || isExactPrice(bounds);
    if (canRequestSize && isAffordable(highestCost, maxCost)) return size;
  }
  return 0;
}

/** Returns an error message which says that the remaining credits may not cover another page. */
const explainTooFewCredits = (maxCredits: number, usedCredits: number, day?: string) =>
  `${formatCreditAmount(usedCredits)} of ${formatCreditAmount(maxCredits)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the remaining credits.`;
