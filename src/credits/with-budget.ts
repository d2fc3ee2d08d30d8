import { raceAbort } from '../api/abort.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import { type Answer, type Call, gatedOnly, type Send } from '../api/send.ts';
import type { CreditLedger, CreditLedgers } from './credit-ledger.ts';
import { expectedPrice, isList, lowestPrice } from './prices.ts';

/**
 * Keeps what one key spends through this process within a budget, under any number of calls at once: what a call can
 * cost at most is set aside before it goes out and settled after. A call whose price is not known goes alone, so that
 * at most one such call can pass the budget. Calls that are not gated are never held up.
 */
export function withBudget(send: Send, { books, budget }: { books: CreditLedgers; budget: number | undefined }): Send {
  if (budget === undefined) return send;
  return gatedOnly(send, async (call) => {
    const book = books(call.tenantId);
    while (book.alone !== undefined && used(book) < budget) {
      call.signal.throwIfAborted();
      await raceAbort(book.alone.catch(ended), call.signal);
    }
    const expected = expectedPrice(book.prices, call);
    if (used(book) + (expected ?? leastPrice) > budget) throw overBudget({ book, budget, expected, call });
    const flight = withReserve(send, { book, call, reserve: expected ?? leastPrice });
    if (expected !== undefined) return flight;
    book.alone = flight;
    return flight.finally(() => {
      if (book.alone === flight) book.alone = undefined;
    });
  });
}

/** What a call of unknown price is taken to cost, where even afterwards nobody tells. */
const leastPrice = 1;

const used = ({ spent, uncertain, reserved }: CreditLedger) => spent + uncertain + reserved;

interface Reserve {
  book: CreditLedger;
  call: Call;
  reserve: number;
}

/** A call that may have been charged counts as charged: a budget errs on the side of spending less. */
async function withReserve(send: Send, { book, call, reserve }: Reserve): Promise<Answer> {
  book.reserved += reserve;
  try {
    const answer = await send(call);
    if (answer.receipt.charged === null) book.uncertain += reserve;
    return answer;
  } catch (error) {
    if (!(error instanceof AdLibraryError) || mayBeCharged(error.failure)) book.uncertain += reserve;
    throw error;
  } finally {
    book.reserved -= reserve;
  }
}

/** Whichever way a flight ended, it is over. */
const ended = () => {};

interface Refusal {
  book: CreditLedger;
  budget: number;
  expected: number | undefined;
  call: Call;
}

function overBudget({ book, budget, expected, call }: Refusal): AdLibraryError {
  const { spent, uncertain, reserved } = book;
  const parts = [
    `${spent} spent`,
    uncertain > 0 && `${uncertain} counted for calls that got no answer`,
    reserved > 0 && `${reserved} set aside for calls under way`,
  ];
  const cost = expected === undefined ? 'what is not known yet' : `at most ${expected}`;
  const fits = lowestPrice(book.prices, call) <= budget - used(book);
  const smaller = isList(call) && fits ? ' A smaller limit may fit.' : '';
  const problem = `Budget ${budget} credits: ${parts.filter(Boolean).join(', ')}; this call costs ${cost}.${smaller}`;
  const transient = spent + uncertain + (expected ?? leastPrice) <= budget;
  return new AdLibraryError({ kind: 'credit_budget', problem, transient, sent: false });
}
