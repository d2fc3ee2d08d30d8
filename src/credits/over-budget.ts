import { AdLibraryError } from '../api/errors.ts';
import type { Call } from '../api/send.ts';
import { fits, used } from './admission.ts';
import type { CreditAccount } from './credit-ledger.ts';
import { cheapestOf, isList, type Quote, quote } from './prices.ts';

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
