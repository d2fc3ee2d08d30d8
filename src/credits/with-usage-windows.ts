import type { CreditStatusAnswer, UsageLimitAnswer } from '../api/answers.ts';
import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { Call, Send } from '../api/send.ts';
import type { Book, Books } from './books.ts';

/** While a window is known to be full, how often the service is asked whether it still is, in milliseconds. */
const askAgainAfter = 60_000;

/**
 * Explains a 429 with the windows of `GET /v1/credits`, which is not gated, and while a window is known to be full
 * answers gated calls at once without sending them. Any answer of it that shows the windows open lifts this, and so
 * does none when it is asked again: the call itself is the question then.
 */
export function withUsageWindows(send: Send, { books, now }: { books: Books; now: () => number }): Send {
  const ask = async (call: Call): Promise<UsageLimitAnswer | undefined> => {
    const credits = { operation: operations.getCredits, path: {}, query: {}, key: call.key, signal: call.signal };
    const answer = await send(credits).catch(() => undefined);
    return (answer?.value as CreditStatusAnswer | undefined)?.usageLimit;
  };
  const learn = (book: Book, usageLimit: UsageLimitAnswer | undefined) => {
    book.full = usageLimit?.isLimitReached ? { usageLimit, askedAt: now() } : undefined;
  };

  return async (call) => {
    const book = books(call.key);
    if (call.operation.name === 'getCredits') {
      const answer = await send(call);
      learn(book, (answer.value as CreditStatusAnswer).usageLimit);
      return answer;
    }
    if (!call.operation.gated) return send(call);
    if (book.full) {
      if (now() - book.full.askedAt < askAgainAfter) throw limitReached(book.full.usageLimit);
      // Written down before asking, so that calls at once ask once.
      book.full = { ...book.full, askedAt: now() };
      learn(book, await ask(call));
      if (book.full) throw limitReached(book.full.usageLimit);
    }
    try {
      return await send(call);
    } catch (error) {
      if (!(error instanceof AdLibraryError) || error.failure.kind !== 'usage_limit') throw error;
      // Another call may have found out while this one was under way.
      const usageLimit = books(call.key).full?.usageLimit ?? (await ask(call));
      learn(book, usageLimit);
      throw new AdLibraryError({ ...error.failure, usageLimit }, { cause: error });
    }
  };
}

const limitReached = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
