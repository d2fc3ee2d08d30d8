import { AdLibraryError } from '../api/errors.ts';
import type { Send } from '../api/send.ts';
import type { CreditLedgers } from './credit-ledger.ts';
import { learnPrice } from './prices.ts';

/** Writes down what every call was charged and what is left, and learns prices from it. */
export function withLedger(send: Send, books: CreditLedgers): Send {
  return async (call) => {
    const book = books(call.tenantId);
    try {
      const answer = await send(call);
      const { charged, remaining } = answer.receipt;
      if (call.operation.gated) book.calls++;
      book.spent += charged ?? 0;
      book.remaining = remaining ?? book.remaining;
      learnPrice(book.prices, call, answer);
      return answer;
    } catch (error) {
      if (error instanceof AdLibraryError) book.spent += error.failure.charged ?? 0;
      throw error;
    }
  };
}
