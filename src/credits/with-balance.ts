import { LRUCache } from 'lru-cache';
import { AdLibraryError } from '../api/errors.ts';
import { gatedOnly, type Send } from '../api/send.ts';
import type { CreditAccount } from './credit-ledger.ts';
import { dearest, isPaid } from './prices.ts';
import type { BudgetOptions } from './with-budget.ts';

/** An account is low if its credits pay for fewer calls than this, at the highest price seen. */
const fewCalls = 20;
/** A budget is low below this share of it. */
const lowShare = 0.2;
/** Tenants whose warnings are remembered. */
const maxWarned = 10_000;

type Low = 'credits' | 'budget';

/**
 * Completes every receipt from the ledger: a cached answer states the credits left now, not then, and counts as saved.
 * Warns once when little is left. Marks the failure of a call that is not gated but has charged before.
 */
export function withBalance(send: Send, { ledger, budget }: Pick<BudgetOptions, 'ledger' | 'budget'>): Send {
  const warned = new LRUCache<string, Set<Low>>({ max: maxWarned });

  const free: Send = async (call) => {
    try {
      return await send(call);
    } catch (error) {
      const { prices } = await ledger.estimate(call.tenantId);
      if (!(error instanceof AdLibraryError && isPaid(call.operation, prices))) throw error;
      throw new AdLibraryError({ ...error.failure, paid: true }, { cause: error });
    }
  };

  return gatedOnly(free, async (call) => {
    const { tenantId } = call;
    const answer = await send(call);
    const { receipt } = answer;
    const account = receipt.cached ? await ledger.saved(tenantId, receipt.saved ?? 0) : await ledger.estimate(tenantId);
    const remaining = receipt.cached ? (account.remaining ?? receipt.remaining) : receipt.remaining;
    const warning = warningOf(tenantId, account);
    return { ...answer, receipt: { ...receipt, remaining, ...(warning && { warning }) } };
  });

  function warningOf(tenantId: string, { prices, remaining = Infinity, spent, uncertain }: CreditAccount) {
    const price = dearest(prices);
    const inBudget = budget === undefined ? Infinity : Math.max(0, budget - spent - uncertain);
    const isLow = { credits: remaining < fewCalls * price, budget: inBudget < lowShare * (budget ?? 0) };
    const texts = [
      isNews(tenantId, 'credits', isLow.credits) && `the account has ${remaining} credits left`,
      isNews(tenantId, 'budget', isLow.budget) && `the budget of this server has ${inBudget} credits left`,
    ].filter(Boolean);
    if (texts.length === 0) return undefined;
    return `Low balance: ${texts.join(' and ')}, and calls have cost up to ${price}. Tell the user.`;
  }

  /** Warns of each once, until there is more of it again. */
  function isNews(tenantId: string, what: Low, isLow: boolean): boolean {
    const known = warned.get(tenantId) ?? new Set();
    if (!isLow) {
      known.delete(what);
      return false;
    }
    if (known.has(what)) return false;
    warned.set(tenantId, known.add(what));
    return true;
  }
}
