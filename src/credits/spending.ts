import * as z from 'zod';
import type { CreditLedger } from './credit-ledger.ts';
import { pricesSeen } from './prices.ts';

/** What this process spent and saved for one key, and what operations were seen to cost. */
export const Spending = z.looseObject({
  charged: z.number(),
  paidCalls: z.number(),
  savedCalls: z.number(),
  savedCredits: z.number(),
  uncertain: z.number().optional().describe('credits of calls that may have been charged'),
  budget: z.number().optional(),
  prices: z.looseObject({}).describe('by operation: charged for an answer of so many items'),
});
export type Spending = z.infer<typeof Spending> & { prices: Record<string, { items: number; charged: number }[]> };

export function spendingOf(book: CreditLedger, budget: number | undefined): Spending {
  return {
    charged: book.spent,
    paidCalls: book.calls,
    savedCalls: book.savedCalls,
    savedCredits: book.savedCredits,
    ...(book.uncertain > 0 && { uncertain: book.uncertain }),
    ...(budget !== undefined && { budget }),
    prices: Object.fromEntries([...book.prices].map(([operation, seen]) => [operation, pricesSeen(seen)])),
  };
}

/** "this server since its start: 12 charged in 5 paid calls …" and what operations were seen to cost. */
export function spendingText(spending: Spending): string {
  const { charged, paidCalls, savedCalls, savedCredits, uncertain, budget, prices } = spending;
  const saved = savedCalls > 0 ? `; ${savedCalls} answered without a new charge, ${savedCredits} saved` : '';
  const maybe = uncertain ? `; about ${uncertain} more may have been, in calls that got no answer` : '';
  const unspent = Math.max(0, (budget ?? 0) - charged - (uncertain ?? 0));
  const limit = budget === undefined ? '' : `; budget ${budget}, ${unspent} left of it`;
  const learned = Object.entries(prices).flatMap(([operation, seen]) =>
    seen.length > 0 ? `${operation} ${seen.map(priceText).join(', ')}` : [],
  );
  return [
    `this server since its start: ${charged} charged in ${paidCalls} paid ${paidCalls === 1 ? 'call' : 'calls'}${maybe}${saved}${limit}`,
    learned.length > 0 ? `seen to cost: ${learned.join('; ')}` : 'prices are not known before the first paid call',
  ].join('\n');
}

const priceText = ({ items, charged }: { items: number; charged: number }) =>
  `${charged} for ${items === 1 ? '1 item' : `${items} items`}`;
