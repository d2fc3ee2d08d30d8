import { AdLibraryError, type Failure } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import type { Allowance, Answer, Call, Send } from '../api/send.ts';
import { fits, used } from './admission.ts';
import type { AskCredits } from './ask-credits.ts';
import type { CreditLedger } from './credit-ledger.ts';
import { type Cost, costOf, dearestOf, maxCostOf, type PricedCall, type Prices, quote } from './prices.ts';
import { withBudget } from './with-budget.ts';

/** What one tool call may spend, however many calls of the API it makes. */
export interface CallAllowance extends Allowance {
  /**
   * The largest page, of so many items at most, that costs no more than what is left, by all that is known of prices.
   * Throws if none does: `credit_budget`, marked with `maxCredits` if it is this limit that refuses.
   */
  pageSize(page: { operation: ListName; max: number }): Promise<number>;
  /** The cost of reading so many items in pages of that size; undefined if no charge was seen. */
  costOf(pages: { operation: ListName; items: number; size: number }): Promise<Cost | undefined>;
}

type ListName = 'searchAds' | 'listCollectionItems';

export interface AllowanceOptions {
  maxCredits: number;
  tenantId: string;
  /** An empty ledger for this tool call alone. */
  own: CreditLedger;
  /** The ledger and the budget of the server, which go on to apply. */
  ledger: CreditLedger;
  budget: number | undefined;
  askCredits: AskCredits;
}

/** The rule of budgets for one tool call. It starts with the prices that the tenant's calls have shown so far. */
export async function openAllowance(options: AllowanceOptions): Promise<CallAllowance> {
  const { maxCredits, tenantId, own, ledger, budget, askCredits } = options;
  const { prices: known } = await ledger.estimate(tenantId);
  await own.settle(tenantId, { ...nothing, learn: (prices) => copyPrices(known, prices) });

  const pageSize: CallAllowance['pageSize'] = async ({ operation, max }) => {
    const account = await own.read(tenantId);
    const sizeWithin = (left: number) => maxPage(account.prices, { operation: operations[operation], max, left });
    const within = sizeWithin(maxCredits - used(account));
    if (within === 0) throw overMaxCredits({ problem: leftText(maxCredits, used(account)) }, maxCredits);
    const spent = budget === undefined ? 0 : used(await ledger.read(tenantId));
    const affordable = budget === undefined ? within : Math.min(within, sizeWithin(budget - spent));
    if (affordable > 0) return affordable;
    throw new AdLibraryError({ kind: 'credit_budget', problem: leftText(budget ?? 0, spent), sent: false });
  };

  return {
    spend: (call, send) => spend({ call, send, own, maxCredits, askCredits }),
    pageSize,
    costOf: async ({ operation, items, size }) => {
      const { prices } = await own.read(tenantId);
      const costOfPage = (limit: number) => costOf(prices, operations[operation], limit);
      const [pages, rest] = [Math.floor(items / size), items % size];
      const [full, last] = [costOfPage(size), rest === 0 ? { least: 0, most: 0 } : costOfPage(rest)];
      if (full === undefined || last === undefined) return undefined;
      const isKnown = full.least === full.most && last.least === last.most;
      // The last page is asked for like the others: where it is open what counts, it may cost as much.
      const lastAtMost = isKnown || rest === 0 ? last.most : full.most;
      return { least: pages * full.least + last.least, most: pages * full.most + lastAtMost };
    },
  };
}

interface Spending {
  call: Call;
  send: Send;
  own: CreditLedger;
  maxCredits: number;
  askCredits: AskCredits;
}

/** The budget itself, on a ledger of its own. A refusal of its own is marked, one from further inside is not. */
async function spend({ call, send, own, maxCredits, askCredits }: Spending): Promise<Answer> {
  let isAdmitted = false;
  const admitted: Send = (inner) => {
    isAdmitted = true;
    return send(inner);
  };
  try {
    return await withBudget(admitted, { ledger: own, budget: maxCredits, askCredits })(call);
  } catch (error) {
    const isOverBudget = error instanceof AdLibraryError && error.failure.kind === 'credit_budget';
    throw isOverBudget && !isAdmitted ? overMaxCredits(error.failure, maxCredits) : error;
  }
}

/** Sends a call with an allowance only if that admits it. */
export const withAllowance =
  (send: Send): Send =>
  (call) =>
    call.allowance === undefined ? send(call) : call.allowance.spend(call, send);

/** Page sizes while a price is not known: whole groups of whatever a service may charge by. */
const roundSizes = [100, 50, 20, 10, 5, 2, 1];

function maxPage(prices: Prices, { operation, max, left }: { operation: Operation; max: number; left: number }) {
  // While no price is known, an item is taken to cost a credit at most.
  if (dearestOf(prices, operation.name) === undefined)
    return roundSizes.find((size) => size <= Math.min(max, Math.floor(left))) ?? 0;
  for (let size = max; size > 0; size--) {
    const call = pageOf(operation, size);
    const { price } = quote(prices, call);
    const isPlain = price !== undefined || size === max || roundSizes.includes(size);
    if (isPlain && fits(price ?? maxCostOf(prices, call) ?? Infinity, left)) return size;
  }
  return 0;
}

const pageOf = (operation: Operation, limit: number): PricedCall => ({ operation, query: { limit } });

const copyPrices = (from: Prices, to: Prices) => {
  for (const [name, table] of from) to.set(name, structuredClone(table));
};

const nothing = { charged: 0, uncertain: 0, isPaidAnswer: false };

const overMaxCredits = (failure: Partial<Failure>, maxCredits: number) =>
  new AdLibraryError({ ...failure, kind: 'credit_budget', maxCredits, transient: false, sent: false });

const leftText = (limit: number, spent: number) =>
  `Of ${limit} credits ${Math.round(spent * 1e6) / 1e6} are spent or reserved, and no page is sure to cost as little as the rest.`;
