import type { CreditLimit } from '../api/call.ts';
import { type Operation, type OperationName, operations } from '../api/operations.ts';
import { type Budget, createBudgetError, hasBudget, type Limit } from './budget.ts';
import { formatCreditNumber } from './credit-text.ts';
import { isAffordable, sumUsedCredits } from './ledger.ts';
import { computePriceBounds, getMaxPrice, isExactPrice, type PriceBounds, type Prices } from './prices.ts';

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
  readUsedCredits(): Promise<number>;
  /**
   * Returns the largest page size, up to `max`, whose highest cost fits the remaining credits of every limit.
   * @throws AdLibraryError `credit_budget` if no page fits
   */
  choosePageSize(page: { operation: ListName; max: number }): Promise<number>;
  /** Returns the bounds of what reading pages costs; undefined while no charge bounds it. */
  estimateCost(pages: PagesToRead): Promise<PriceBounds | undefined>;
  /** Returns whether every charge seen for an operation was 0, and there was one. */
  isFree(operation: ListName): Promise<boolean>;
}

interface CallBudgetOptions {
  callLimit: Budget;
  /** The limits that apply besides: of the connection and of the server. */
  limits: readonly Limit[];
  prices(): Promise<Prices>;
  /** Trusts that an operation whose charges were all 0 stays free, whatever the size of the page. */
  trustsFreeOperations: boolean;
}

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

/** Page sizes while their price is not known: whole groups of whatever a service may charge by. */
const isRoundPageSize = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

interface PageToFit {
  operation: Operation;
  prices: Prices;
  max: number;
  credits: number;
  trustsFreeOperations: boolean;
}

/** Returns the largest page that fits the credits, or 0. While no charge bounds the price, an item counts as a credit. */
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

const explainSmallRemainder = (limit: number, spent: number, day?: string) =>
  `${formatCreditNumber(spent)} of ${formatCreditNumber(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the rest.`;
