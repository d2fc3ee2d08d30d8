import { AdLibraryError } from '../api/errors.ts';
import type { Answer, Call, Send } from '../api/send.ts';
import type { Book, Books } from './books.ts';
import { expectedPrice } from './prices.ts';

/**
 * Keeps what one key spends through this process within a budget, under any number of calls at once: what a call can
 * cost at most is set aside before it goes out and settled after. A call whose price is not known goes alone, so that
 * at most one such call can pass the budget. Calls that are not gated are never held up.
 */
export function withBudget(send: Send, { books, budget }: { books: Books; budget: number | undefined }): Send {
  if (budget === undefined) return send;
  return async (call) => {
    if (!call.operation.gated) return send(call);
    const book = books(call.key);
    while (book.alone !== undefined && book.spent < budget) await settled(book.alone, call.signal);
    const expected = expectedPrice(book.prices, call);
    if (book.spent + book.reserved + (expected ?? 1) > budget) throw overBudget({ book, budget, expected, call });
    return expected === undefined ? goAlone(send, { book, call }) : withReserve(send, { book, call, expected });
  };
}

async function withReserve(send: Send, { book, call, expected }: { book: Book; call: Call; expected: number }) {
  book.reserved += expected;
  try {
    return await send(call);
  } catch (error) {
    if (fateUnknown(error)) book.spent += expected;
    throw error;
  } finally {
    book.reserved -= expected;
  }
}

async function goAlone(send: Send, { book, call }: { book: Book; call: Call }): Promise<Answer> {
  const flight = send(call);
  book.alone = flight;
  try {
    return await flight;
  } finally {
    book.alone = undefined;
  }
}

/** A call that may have been charged counts as charged: a budget errs on the side of spending less. */
function fateUnknown(error: unknown): boolean {
  return error instanceof AdLibraryError ? error.failure.sent === undefined && error.failure.kind !== 'internal' : true;
}

async function settled(flight: Promise<unknown> | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await Promise.race([
    flight?.catch(() => {}),
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  ]);
}

interface Refusal {
  book: Book;
  budget: number;
  expected: number | undefined;
  call: Call;
}

function overBudget({ book, budget, expected, call }: Refusal): AdLibraryError {
  const set = book.reserved > 0 ? `, ${book.reserved} set aside for calls under way` : '';
  const cost = expected === undefined ? 'not known yet' : `at most ${expected}`;
  const smaller = expected !== undefined && expected > 1 && ` A smaller limit may fit.`;
  const problem = `Budget ${budget} credits, ${book.spent} spent${set}; this ${call.operation.name} costs ${cost}.${smaller || ''}`;
  return new AdLibraryError({ kind: 'credit_budget', problem, sent: false });
}
