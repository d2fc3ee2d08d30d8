import * as z from 'zod';
import type { ServiceRequest } from '../api/call.ts';
import { type OperationName, operations } from '../api/operations.ts';
import { type CreditAccount, fits } from './ledger.ts';
import { isKnown, isList, isPaid, type Prices, priceBounds, pricesSeen, requestBounds } from './prices.ts';

/** `free`, `10 credits`, `between 3 and 267 credits`; that nothing is known where there is no upper bound. */
export function priceText({ atLeast, atMost }: { atLeast: number; atMost?: number | undefined }): string {
  if (atMost === undefined) return 'at an unknown price';
  if (atMost === 0) return 'free';
  const most = `${creditsFigure(atMost)} ${atMost === 1 ? 'credit' : 'credits'}`;
  if (atLeast === atMost) return most;
  return atLeast === 0 ? `at most ${most}` : `between ${creditsFigure(atLeast)} and ${most}`;
}

const UncertainCredits = z
  .number()
  .optional()
  .describe('Credits that may have been charged in addition, for calls whose charge is unknown.');

/** The spending of a key on this server, and the prices that the server has seen. */
export const Spending = z
  .looseObject({
    charged: z.number().describe('Credits charged for calls of this server.'),
    paidCalls: z.number().describe('Number of paid calls.'),
    uncertain: UncertainCredits,
    budget: z.number().optional().describe('Most credits that this server may spend for the key.'),
    day: z.string().optional().describe('Day of these numbers, if the budget is for one day.'),
    connection: z
      .looseObject({
        budget: z.number().describe('Most credits that this connection may spend.'),
        charged: z.number().describe('Credits charged to this connection.'),
        uncertain: UncertainCredits,
      })
      .meta({ title: 'Connection' })
      .optional()
      .describe('Budget and spending of the signed-in connection.'),
    prices: z.looseObject({}).describe('For each tool: the charges that were seen, as [{ items, charged }].'),
  })
  .meta({ title: 'Spending' });
export type Spending = z.infer<typeof Spending> & { prices: Record<string, SizeCharge[]> };

export function spendingOf(
  account: CreditAccount,
  budget: number | undefined,
  connection?: { account: CreditAccount; budget: number },
): Spending {
  const chargesOf = ({ spent, uncertain }: CreditAccount) => ({
    charged: roundCredits(spent),
    ...(uncertain > 0 && { uncertain: roundCredits(uncertain) }),
  });
  const { charged, ...rest } = chargesOf(account);
  return {
    charged,
    paidCalls: account.calls,
    ...rest,
    ...(budget !== undefined && { budget }),
    ...(account.day && { day: account.day }),
    ...(connection && { connection: { budget: connection.budget, ...chargesOf(connection.account) } }),
    prices: Object.fromEntries(pricedOperations(account).map(([operation, table]) => [operation, pricesSeen(table)])),
  };
}

/** An operation that the document does not gate, and that never charged, has no price to show. */
const pricedOperations = ({ prices }: CreditAccount) =>
  [...prices].filter(([operation]) => isPaid(operations[operation as OperationName], prices));

/** "this server since it started: 12 charged in 5 paid calls …" and the charges seen for each operation. */
export function spendingText(spending: Spending): string {
  const { charged, paidCalls, uncertain, budget, day, connection, prices } = spending;
  const maybe = uncertain ? `; about ${creditsFigure(uncertain)} more for calls whose charge is unknown` : '';
  const limit = budget === undefined ? '' : `; ${budgetText({ budget, charged, uncertain })}`;
  const learned = Object.entries(prices).flatMap(([operation, charges]) =>
    charges.length > 0 ? `${operation} ${pricesText(charges)}` : [],
  );
  return [
    `${day === undefined ? 'this server since it started' : `calls on ${day} (UTC)`}: ${creditsFigure(charged)} charged in ${creditsFigure(paidCalls)} paid ${paidCalls === 1 ? 'call' : 'calls'}${maybe}${limit}`,
    ...(connection ? [`this connection: ${creditsFigure(connection.charged)} charged; ${budgetText(connection)}`] : []),
    learned.length > 0 ? `prices seen: ${learned.join('; ')}` : 'prices are unknown until the first paid call',
  ].join('\n');
}

type Bounded = { budget: number; charged: number; uncertain?: number | undefined };

const budgetText = ({ budget, charged, uncertain = 0 }: Bounded): string =>
  `budget ${creditsFigure(budget)}, ${creditsFigure(Math.max(0, budget - charged - uncertain))} left`;

const pricesText = (charges: readonly SizeCharge[]): string =>
  charges.every(({ charged }) => charged === 0) ? 'free' : charges.map(chargeText).join(', ');

export interface SizeCharge {
  items: number;
  charged: number;
}

const chargeText = ({ items, charged }: SizeCharge) => `${charged} for ${items === 1 ? '1 item' : `${items} items`}`;

interface Refusal {
  account: CreditAccount;
  budget: number;
  prices: Prices;
  request: ServiceRequest;
}

/** Says why a budget refuses a call, and which smaller limit would fit. */
export function budgetProblem({ account, budget, prices, request }: Refusal): string {
  const { spent, uncertain, reservedAtLeast, day } = account;
  const parts = [
    `${creditsFigure(spent)} spent`,
    uncertain > 0 && `${creditsFigure(uncertain)} counted for calls whose charge is unknown`,
    reservedAtLeast > 0 && `${creditsFigure(reservedAtLeast)} reserved for calls in progress`,
  ];
  const bounds = requestBounds(prices, request);
  const cost = isKnown(bounds)
    ? `this call is expected to cost ${bounds.atMost}`
    : prices.has(request.operation.name)
      ? `this call is expected to cost ${bounds.atLeast} or more`
      : 'the price of this call is not known yet';
  const remaining = budget - spent - uncertain - reservedAtLeast;
  return `Budget of ${creditsFigure(budget)} credits${day === undefined ? '' : ` for ${day} (UTC)`}: ${parts.filter(Boolean).join(', ')}; ${cost}.${smallerLimit(request, prices, remaining)}`;
}

/** The largest limit that is advised in place of a larger one or of none. */
const maxLimit = 100;

function smallerLimit(request: ServiceRequest, prices: Prices, remaining: number): string {
  if (!isList(request)) return '';
  const { limit: requested = maxLimit + 1 } = { ...request.query, ...request.body } as { limit?: number };
  for (let limit = Math.min(maxLimit, requested - 1); limit > 0; limit--) {
    const bounds = priceBounds(prices, request.operation, limit);
    if (fits(bounds.atMost, remaining))
      return ` With limit ${limit} it would cost ${isKnown(bounds) ? 'about' : 'at most'} ${bounds.atMost}, which fits.`;
  }
  return '';
}

export const roundCredits = (credits: number) => Math.round(credits * 1e6) / 1e6;

export const { format: creditsFigure } = new Intl.NumberFormat('en-US');
