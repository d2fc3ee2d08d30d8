import * as z from 'zod';
import type { ServiceRequest } from '../api/call.ts';
import { type OperationName, operations } from '../api/operations.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import { formatCreditAmount, formatNumber, roundCredits } from '../views/numbers.ts';
import { type CreditAccount, isAffordable } from './ledger.ts';
import {
  computePriceBounds,
  computeRequestPriceBounds,
  isExactPrice,
  isListRequest,
  isPaidOperation,
  listCharges,
  type Prices,
} from './prices.ts';

/**
 * Formats a price, e.g. `free`, `10 credits` or `between 3 and 267 credits`. If the price has no upper bound, returns
 * `at an unknown price`.
 */
export function formatPrice({ atLeast, atMost }: { atLeast: number; atMost?: number | undefined }): string {
  if (atMost === undefined) return 'at an unknown price';
  if (atMost === 0) return 'free';
  const highestPrice = `${formatCreditAmount(atMost)} ${atMost === 1 ? 'credit' : 'credits'}`;
  if (atLeast === atMost) return highestPrice;
  return atLeast === 0 ? `at most ${highestPrice}` : `between ${formatCreditAmount(atLeast)} and ${highestPrice}`;
}

const createUncertainCreditsSchema = () =>
  z.number().optional().describe('Credits that may have been charged in addition, for calls whose charge is unknown.');

/** Schema for the spending of an API key on this server, with the prices that the server has observed. */
export const getSpendingSchema = createLazyGetter(() =>
  z
    .looseObject({
      charged: z.number().describe('Credits charged for calls of this server.'),
      paidCalls: z.number().describe('Number of paid calls.'),
      uncertain: createUncertainCreditsSchema(),
      budget: z.number().optional().describe('Most credits that this server may spend for the key.'),
      day: z.string().optional().describe('Day of these numbers, if the budget is for one day.'),
      connection: z
        .looseObject({
          budget: z.number().describe('Most credits that this connection may spend.'),
          charged: z.number().describe('Credits charged to this connection.'),
          uncertain: createUncertainCreditsSchema(),
        })
        .meta({ title: 'Connection' })
        .optional()
        .describe('Budget and spending of the signed-in connection.'),
      prices: z.looseObject({}).describe('For each tool: the charges that were seen, as [{ items, charged }].'),
    })
    .meta({ title: 'Spending' }),
);
/** The spending of an API key on this server. The type of `prices` is more precise than in the `Spending` schema. */
export type Spending = z.infer<ReturnType<typeof getSpendingSchema>> & { prices: Record<string, ItemCountCharge[]> };

/**
 * Summarizes the spending and the budget of an API key. For a signed-in caller, adds the spending and the budget of the
 * sign-in connection.
 */
export function buildSpending(
  account: CreditAccount,
  budget: number | undefined,
  connection?: { account: CreditAccount; budget: number },
): Spending {
  const roundCharges = ({ spentCredits, uncertainCredits }: CreditAccount) => ({
    charged: roundCredits(spentCredits),
    ...(uncertainCredits > 0 && { uncertain: roundCredits(uncertainCredits) }),
  });
  const { charged, ...uncertainty } = roundCharges(account);
  return {
    charged,
    paidCalls: account.paidCallCount,
    ...uncertainty,
    ...(budget !== undefined && { budget }),
    ...(account.day && { day: account.day }),
    ...(connection && { connection: { budget: connection.budget, ...roundCharges(connection.account) } }),
    prices: Object.fromEntries(
      listPricedOperations(account).map(([operation, table]) => [operation, listCharges(table)]),
    ),
  };
}

/**
 * Returns the operations whose prices are shown. Omits operations that are normally free, unless the service has
 * charged for them.
 */
const listPricedOperations = ({ prices }: CreditAccount) =>
  [...prices].filter(([operation]) => isPaidOperation(operations[operation as OperationName], prices));

/**
 * Formats the spending of an API key for a model, e.g. `this server since it started: 12 charged in 5 paid calls`,
 * followed by the charges of each operation.
 */
export function formatSpending(spending: Spending): string {
  const { charged, paidCalls, uncertain, budget, day, connection, prices } = spending;
  const uncertainText = uncertain
    ? `; about ${formatCreditAmount(uncertain)} more for calls whose charge is unknown`
    : '';
  const limitText = budget === undefined ? '' : `; ${formatBudget({ budget, charged, uncertain })}`;
  const priceTexts = Object.entries(prices).flatMap(([operation, charges]) =>
    charges.length > 0 ? `${operation} ${formatCharges(charges)}` : [],
  );
  return [
    `${day === undefined ? 'this server since it started' : `calls on ${day} (UTC)`}: ${formatCreditAmount(charged)} charged in ${formatNumber(paidCalls)} paid ${paidCalls === 1 ? 'call' : 'calls'}${uncertainText}${limitText}`,
    ...(connection
      ? [`this connection: ${formatCreditAmount(connection.charged)} charged; ${formatBudget(connection)}`]
      : []),
    priceTexts.length > 0 ? `prices seen: ${priceTexts.join('; ')}` : 'prices are unknown until the first paid call',
  ].join('\n');
}

/**
 * A budget and the credits charged against it. `uncertain` is the number of credits that the service may have charged
 * in addition.
 */
type BudgetUsage = { budget: number; charged: number; uncertain?: number | undefined };

/** Formats a budget and its remaining credits, e.g. `budget 50, 38 left`. */
const formatBudget = ({ budget, charged, uncertain = 0 }: BudgetUsage): string =>
  `budget ${formatCreditAmount(budget)}, ${formatCreditAmount(Math.max(0, budget - charged - uncertain))} left`;

const formatCharges = (charges: readonly ItemCountCharge[]): string =>
  charges.every(({ charged }) => charged === 0) ? 'free' : charges.map(formatCharge).join(', ');

/** The highest charge so far, in credits, for a response with `items` items. */
export interface ItemCountCharge {
  items: number;
  charged: number;
}

const formatCharge = ({ items, charged }: ItemCountCharge) =>
  `${charged} for ${items === 1 ? '1 item' : `${items} items`}`;

/** A call that would exceed a budget, with the data that explains why. */
interface RefusedCall {
  account: CreditAccount;
  budget: number;
  prices: Prices;
  request: ServiceRequest;
}

/** Explains why a call exceeds a budget. Suggests a smaller `limit` if the call would then fit the budget. */
export function explainRefusal({ account, budget, prices, request }: RefusedCall): string {
  const { spentCredits, uncertainCredits, minReservedCredits, day } = account;
  const spendingTexts = [
    `${formatCreditAmount(spentCredits)} spent`,
    uncertainCredits > 0 && `${formatCreditAmount(uncertainCredits)} counted for calls whose charge is unknown`,
    minReservedCredits > 0 && `${formatCreditAmount(minReservedCredits)} reserved for calls in progress`,
  ];
  const bounds = computeRequestPriceBounds(prices, request);
  const cost = isExactPrice(bounds)
    ? `this call is expected to cost ${bounds.atMost}`
    : prices.has(request.operation.name)
      ? `this call is expected to cost ${bounds.atLeast} or more`
      : 'the price of this call is not known yet';
  const remainingCredits = budget - spentCredits - uncertainCredits - minReservedCredits;
  return `Budget of ${formatCreditAmount(budget)} credits${day === undefined ? '' : ` for ${day} (UTC)`}: ${spendingTexts.filter(Boolean).join(', ')}; ${cost}.${suggestSmallerLimit(request, prices, remainingCredits)}`;
}

/** The highest `limit` that an error message suggests, even if the call had a higher `limit` or none. */
const maxSuggestedLimit = 100;

/**
 * Suggests the largest `limit` below the requested one whose highest possible cost fits the remaining credits. Returns
 * an empty string if no `limit` fits.
 */
function suggestSmallerLimit(request: ServiceRequest, prices: Prices, remainingCredits: number): string {
  if (!isListRequest(request)) return '';
  const { limit: requestedLimit = maxSuggestedLimit + 1 } = { ...request.query, ...request.body } as { limit?: number };
  for (let limit = Math.min(maxSuggestedLimit, requestedLimit - 1); limit > 0; limit--) {
    const bounds = computePriceBounds(prices, request.operation, limit);
    if (isAffordable(bounds.atMost, remainingCredits))
      return ` With limit ${limit} it would cost ${isExactPrice(bounds) ? 'about' : 'at most'} ${bounds.atMost}, which fits.`;
  }
  return '';
}
