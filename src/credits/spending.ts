import { z } from 'zod';
import type { Book } from './books.ts';
import { priceText } from './prices.ts';

/** What this process spent and saved for one key, and what operations were seen to cost. */
export const Spending = z.looseObject({
  charged: z.number(),
  paidCalls: z.number(),
  savedCalls: z.number(),
  savedCredits: z.number(),
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
    ...(budget !== undefined && { budget }),
    prices: Object.fromEntries([...book.prices].map(([operation, seen]) => [operation, priceText(seen)])),
  };
}

/** "This server: 12 credits charged in 5 calls, …" and what operations were seen to cost. */
export function spendingText({ charged, paidCalls, savedCalls, savedCredits, budget, prices }: Spending): string {
  const saved = savedCalls > 0 ? `; ${savedCalls} answered from kept answers, ${savedCredits} saved` : '';
  const limit = budget === undefined ? '' : `; budget ${budget}`;
  const learned = Object.entries(prices).map(([operation, price]) => `${operation} ${price}`);
  return [
    `this server since its start: ${charged} charged in ${paidCalls} paid calls${saved}${limit}`,
    learned.length > 0 ? `seen to cost: ${learned.join('; ')}` : 'prices are not known before the first paid call',
  ].join('\n');
}
