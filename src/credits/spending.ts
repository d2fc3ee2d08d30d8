import * as z from 'zod';
import type { Book } from './books.ts';
import { priceText } from './prices.ts';

/** What this process spent and saved for one key, and what operations were seen to cost. */
export const Spending = z.looseObject({
  charged: z.number(),
  paidCalls: z.number(),
  savedCalls: z.number(),
  savedCredits: z.number(),
  uncertain: z.number().optional().describe('credits of calls that may have been charged'),
  budget: z.number().optional(),
  prices: z.looseObject({}),
});
export type Spending = z.infer<typeof Spending>;

export function spendingOf(book: Book, budget: number | undefined): Spending {
  return {
    charged: book.spent,
    paidCalls: book.calls,
    savedCalls: book.savedCalls,
    savedCredits: book.savedCredits,
    ...(book.uncertain > 0 && { uncertain: book.uncertain }),
    ...(budget !== undefined && { budget }),
    prices: Object.fromEntries([...book.prices].map(([operation, seen]) => [operation, priceText(seen)])),
  };
}

/** "this server since its start: 12 charged in 5 paid calls …" and what operations were seen to cost. */
export function spendingText(spending: Spending): string {
  const { charged, paidCalls, savedCalls, savedCredits, uncertain, budget, prices } = spending;
  const saved = savedCalls > 0 ? `; ${savedCalls} answered without a new charge, ${savedCredits} saved` : '';
  const maybe = uncertain ? `; about ${uncertain} more may have been, in calls that got no answer` : '';
  const limit = budget === undefined ? '' : `; budget ${budget}`;
  const learned = Object.entries(prices).map(([operation, price]) => `${operation} ${price}`);
  return [
    `this server since its start: ${charged} charged in ${paidCalls} paid calls${maybe}${saved}${limit}`,
    learned.length > 0 ? `seen to cost: ${learned.join('; ')}` : 'prices are not known before the first paid call',
  ].join('\n');
}
