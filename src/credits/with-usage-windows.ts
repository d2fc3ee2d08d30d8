import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer, UsageLimitAnswer } from '../api/response-schemas.ts';
import { type Call, gatedOnly, type Send } from '../api/send.ts';
import type { CreditLedger, CreditLedgers } from './credit-ledger.ts';
import { expectedPrice } from './prices.ts';

/** While a window is known to be full, how often the service is asked whether it still is, in milliseconds. */
const askAgainAfter = 60_000;

/**
 * Explains a 429 with the windows of `GET /v1/credits`, which is not gated, and a 402 with the balance it tells. While
 * a window is known to hold less than a gated call costs, answers it at once without sending it. Any answer of
 * `GET /v1/credits` that shows the windows open lifts this; where there is none when it is asked again, the call
 * itself is the question.
 */
export function withUsageWindows(send: Send, { books, now }: { books: CreditLedgers; now: () => number }): Send {
  const learn = (book: CreditLedger, usageLimit: UsageLimitAnswer | undefined, refused = false) => {
    const isFull = usageLimit !== undefined && (usageLimit.isLimitReached || refused);
    book.full = isFull ? { usageLimit, left: roomIn(usageLimit), askedAt: now() } : undefined;
  };

  const status = async (call: Call) => {
    const answer = await send(call);
    learn(books(call.tenantId), (answer.value as CreditStatusAnswer).usageLimit);
    return answer;
  };

  const ask = gatedOnly(send, async (call) => {
    const book = books(call.tenantId);
    if (book.full && !fits(book, call)) {
      if (now() - book.full.askedAt < askAgainAfter) throw limitReached(book.full.usageLimit);
      // Written down before asking, so that calls at once ask once.
      book.full = { ...book.full, askedAt: now() };
      learn(book, (await askOnce(send, book, call))?.usageLimit);
      if (book.full && !fits(book, call)) throw limitReached(book.full.usageLimit);
    }
    const before = book.full;
    try {
      return await send(call);
    } catch (error) {
      if (!(error instanceof AdLibraryError)) throw error;
      const { kind } = error.failure;
      if (kind !== 'usage_limit' && kind !== 'payment_required') throw error;
      // Another call may have found out while this one was under way.
      const found = book.full !== before ? book.full : undefined;
      if (kind === 'usage_limit' && found) {
        throw new AdLibraryError({ ...error.failure, usageLimit: found.usageLimit }, { cause: error });
      }
      const told = await askOnce(send, book, call);
      if (kind === 'payment_required') {
        throw new AdLibraryError({ ...error.failure, creditsLeft: told?.credits ?? undefined }, { cause: error });
      }
      learn(book, told?.usageLimit, true);
      throw new AdLibraryError({ ...error.failure, usageLimit: told?.usageLimit }, { cause: error });
    }
  });

  return (call) => (call.operation.name === 'getCredits' ? status(call) : ask(call));
}

/** The balance and the windows; callers who ask at once share one question. Undefined where there is no answer. */
function askOnce(
  send: Send,
  book: CreditLedger,
  { apiKey, tenantId, signal }: Call,
): Promise<CreditStatusAnswer | undefined> {
  book.asking ??= send({ operation: operations.getCredits, path: {}, query: {}, apiKey, tenantId, signal })
    .then(({ value }) => value as CreditStatusAnswer)
    .catch(() => undefined)
    .finally(() => {
      book.asking = undefined;
    });
  return book.asking;
}

/** Credits that the tighter of the two windows still gives out. */
function roomIn({ isLimitReached, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: UsageLimitAnswer): number {
  if (isLimitReached) return 0;
  const left = (used: number | undefined, most: number | undefined) => (most ?? Infinity) - (used ?? 0);
  return Math.max(0, Math.min(left(hourlyCredits, hourlyLimit), left(dailyCredits, dailyLimit)));
}

/** A call whose price is not known may fit where anything is left. */
function fits({ full, prices }: CreditLedger, call: Call): boolean {
  return full === undefined || (full.left > 0 && (expectedPrice(prices, call) ?? 0) <= full.left);
}

const limitReached = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
