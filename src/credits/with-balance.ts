import { gatedOnly, type Send } from '../api/send.ts';
import type { CreditLedger, CreditLedgers } from './credit-ledger.ts';
import { highestPrice } from './prices.ts';

/** Little is left of the account's credits when they pay for fewer calls than this, at the highest price seen. */
const fewCalls = 20;
/** Little is left of a budget below this share of it. */
const smallShare = 0.2;

/**
 * Completes every receipt from the books: an answer given again says what is left now and not what was left then, and
 * counts as saved. Says once when little is left.
 */
export function withBalance(send: Send, { books, budget }: { books: CreditLedgers; budget: number | undefined }): Send {
  return gatedOnly(send, async (call) => {
    const answer = await send(call);
    const book = books(call.tenantId);
    const { receipt } = answer;
    if (receipt.cached) {
      book.savedCalls++;
      book.savedCredits += receipt.saved ?? 0;
    }
    const remaining = receipt.cached ? (book.remaining ?? receipt.remaining) : receipt.remaining;
    const warning = warningOf(book, budget);
    return { ...answer, receipt: { ...receipt, remaining, ...(warning && { warning }) } };
  });
}

function warningOf(book: CreditLedger, budget: number | undefined): string | undefined {
  const price = highestPrice(book.prices);
  const { remaining = Infinity } = book;
  const inBudget = budget === undefined ? Infinity : Math.max(0, budget - book.spent - book.uncertain);
  const warnings = [
    remaining < fewCalls * price && sayOnce(book, 'credits', `the account has ${remaining} credits`),
    inBudget < smallShare * (budget ?? 0) &&
      sayOnce(book, 'budget', `the budget of this server has ${inBudget} credits`),
  ].filter(Boolean);
  if (remaining >= fewCalls * price) book.warned.delete('credits');
  if (warnings.length === 0) return undefined;
  return `Little is left: ${warnings.join(' and ')}, and a call was seen to cost up to ${price}. Tell the person.`;
}

function sayOnce({ warned }: CreditLedger, what: 'credits' | 'budget', text: string): string | undefined {
  if (warned.has(what)) return undefined;
  warned.add(what);
  return text;
}
