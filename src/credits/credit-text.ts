import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { type Call, type OperationName, operations } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { type CreditAccount, fits, used } from './ledger.ts';
import {
  cheapestOf,
  dearest,
  isList,
  isPaid,
  type PriceRule,
  pricesSeen,
  type Quote,
  quote,
  ruleOf,
} from './prices.ts';

/** What this process spent and saved for one key, and the charges seen for each operation. */
export const Spending = z.looseObject({
  charged: z.number(),
  paidCalls: z.number(),
  savedCalls: z.number(),
  savedCredits: z.number(),
  uncertain: z.number().optional().describe('credits of calls that may have been charged'),
  budget: z.number().optional(),
  prices: z.looseObject({}).describe('by operation: credits charged, by number of items'),
});
export type Spending = z.infer<typeof Spending> & {
  prices: Record<string, SizeCharge[]>;
  /** By operation: the rule that all its charges follow, if there is one. */
  rules: Record<string, PriceRule>;
};

export function spendingOf(account: CreditAccount, budget: number | undefined): Spending {
  return {
    charged: account.spent,
    paidCalls: account.calls,
    savedCalls: account.savedCalls,
    savedCredits: account.savedCredits,
    ...(account.uncertain > 0 && { uncertain: account.uncertain }),
    ...(budget !== undefined && { budget }),
    prices: Object.fromEntries(pricedOperations(account).map(([operation, table]) => [operation, pricesSeen(table)])),
    rules: Object.fromEntries(
      pricedOperations(account).flatMap(([operation, table]) => {
        const rule = ruleOf(table);
        return rule === undefined ? [] : [[operation, rule]];
      }),
    ),
  };
}

/** An operation that the document does not gate, and that never charged, has no price to show. */
const pricedOperations = ({ prices }: CreditAccount) =>
  [...prices].filter(([operation]) => isPaid(operations[operation as OperationName], prices));

/** "this server since it started: 12 charged in 5 paid calls …" and the charges seen for each operation. */
export function spendingText(spending: Spending): string {
  const { charged, paidCalls, savedCalls, savedCredits, uncertain, budget, prices, rules } = spending;
  const saved = savedCalls > 0 ? `; ${savedCalls} answered without a new charge, ${savedCredits} saved` : '';
  const maybe = uncertain ? `; about ${uncertain} more for calls whose charge is unknown` : '';
  const unspent = Math.max(0, (budget ?? 0) - charged - (uncertain ?? 0));
  const limit = budget === undefined ? '' : `; budget ${budget}, ${unspent} left`;
  const learned = Object.entries(prices).flatMap(([operation, seen]) =>
    seen.length > 0 ? `${operation} ${pricesText(seen, rules[operation])}` : [],
  );
  return [
    `this server since it started: ${charged} charged in ${paidCalls} paid ${paidCalls === 1 ? 'call' : 'calls'}${maybe}${saved}${limit}`,
    learned.length > 0 ? `prices seen: ${learned.join('; ')}` : 'prices are unknown until the first paid call',
  ].join('\n');
}

function pricesText(seen: readonly SizeCharge[], rule: PriceRule | undefined): string {
  if (seen.every(({ charged }) => charged === 0)) return 'free';
  return ruleText(rule) + seen.map(priceText).join(', ');
}

/** `1 for each 10 items begun`, before the charges that show it. */
function ruleText(rule: PriceRule | undefined): string {
  if (rule === undefined) return '';
  const { credits, perItems } = rule;
  const each = perItems === undefined ? 'call' : perItems === 1 ? 'item' : `${perItems} items begun`;
  return `${credits} for each ${each}, as seen: `;
}

export interface SizeCharge {
  items: number;
  charged: number;
}

const priceText = ({ items, charged }: SizeCharge) => `${charged} for ${items === 1 ? '1 item' : `${items} items`}`;

interface Refused {
  account: CreditAccount;
  budget: number;
  quoted: Quote;
  call: Call;
}

/** States the budget, how it was used, and what the call would cost. */
export function overBudget({ account, budget, quoted, call }: Refused): AdLibraryError {
  const { spent, uncertain, reserved, prices } = account;
  const parts = [
    `${rounded(spent)} spent`,
    uncertain > 0 && `${rounded(uncertain)} counted for calls whose charge is unknown`,
    reserved > 0 && `${rounded(reserved)} reserved for calls in progress`,
  ];
  const { price, atLeast } = quoted;
  const { name } = call.operation;
  const cost =
    price !== undefined
      ? `this call is expected to cost ${price}`
      : prices.has(name)
        ? `this call is expected to cost ${atLeast} or more`
        : 'the price of this call is not known yet';
  const problem = `Budget of ${budget} credits: ${parts.filter(Boolean).join(', ')}; ${cost}.${advice(call, account, budget)}`;
  const transient = fits(price ?? atLeast, budget - spent - uncertain);
  return new AdLibraryError({ kind: 'credit_budget', problem, transient, sent: false });
}

/** The largest page, up to this, whose price is known and fits. */
const maxLimit = 100;

function advice(call: Call, account: CreditAccount, budget: number): string {
  if (!isList(call)) return '';
  const { prices } = account;
  const left = budget - used(account);
  const { limit: requested = maxLimit + 1 } = { ...call.query, ...call.body } as { limit?: number };
  for (let limit = Math.min(maxLimit, requested - 1); limit > 0; limit--) {
    const { price } = quote(prices, { ...call, body: { ...call.body, limit } });
    if (price !== undefined && fits(price, left))
      return ` With limit ${limit} it would cost about ${price}, which fits.`;
  }
  return fits(cheapestOf(prices, call.operation.name), left) ? ' A smaller limit may fit.' : '';
}

const rounded = (credits: number) => Math.round(credits * 1e6) / 1e6;

/** An account is low if its credits pay for fewer calls than this, at the highest price seen. */
const fewCalls = 20;
/** A budget is low below this share of it. */
const lowShare = 0.2;
/** Tenants whose warnings are remembered. */
const maxWarned = 10_000;

type Low = 'credits' | 'budget';

/** Warns once when little is left, of credits or of the budget, until there is more again. */
export function lowBalanceWarnings(budget: number | undefined) {
  const warned = new LRUCache<string, Set<Low>>({ max: maxWarned });
  const isNews = (tenantId: string, what: Low, isLow: boolean): boolean => {
    const known = warned.get(tenantId) ?? new Set();
    if (!isLow) {
      known.delete(what);
      return false;
    }
    if (known.has(what)) return false;
    warned.set(tenantId, known.add(what));
    return true;
  };
  return (tenantId: string, { prices, remaining = Infinity, spent, uncertain }: CreditAccount): string | undefined => {
    const price = dearest(prices);
    const inBudget = budget === undefined ? Infinity : Math.max(0, budget - spent - uncertain);
    const isLow = { credits: remaining < fewCalls * price, budget: inBudget < lowShare * (budget ?? 0) };
    const texts = [
      isNews(tenantId, 'credits', isLow.credits) && `the account has ${remaining} credits left`,
      isNews(tenantId, 'budget', isLow.budget) && `the budget of this server has ${inBudget} credits left`,
    ].filter(Boolean);
    if (texts.length === 0) return undefined;
    return `Low balance: ${texts.join(' and ')}, and calls have cost up to ${price}. Tell the user.`;
  };
}
