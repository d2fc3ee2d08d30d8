import { timeIsUp } from '../api/abort.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Call, Send } from '../api/send.ts';
import type { CreditLedger } from './credit-ledger.ts';

/**
 * Finds out what a call was charged if the service does not state it, by the balance before and after. Used only for
 * calls of unknown price, which run one at a time.
 */
export interface BalanceOptions {
  send: Send;
  call: Call;
  ledger: CreditLedger;
}

/** How long asking for the balance may take, in milliseconds, while a call waits for it. */
const maxAskMs = 5000;

/** Reads the balance before such a call. Counts late charges of an earlier call whose outcome was unknown. */
export async function readBalanceBefore({ send, call, ledger }: BalanceOptions): Promise<void> {
  const { tenantId } = call;
  const credits = await askBalance(send, call);
  const earlier = await ledger.readBalance(tenantId, credits);
  if (earlier === undefined || credits === undefined) return;
  const late = earlier.credits - credits - earlier.explained;
  if (late > 0) await ledger.settle(tenantId, { charged: 0, uncertain: late, isPaidAnswer: false });
}

/**
 * By how much the balance has fallen since then, without what other calls were charged; undefined if the balance cannot
 * be read. After a call without an answer, a reading without a change is kept: the charge may still come.
 */
export async function balanceChange(
  { send, call, ledger }: BalanceOptions,
  isAnswered: boolean,
): Promise<number | undefined> {
  const { tenantId } = call;
  const credits = await askBalance(send, call);
  const before = await ledger.readBalance(tenantId, credits);
  if (before === undefined || credits === undefined) return undefined;
  const change = Math.max(0, before.credits - credits - before.explained);
  if (change > 0 || isAnswered) await ledger.readBalance(tenantId, undefined);
  return change;
}

async function askBalance(send: Send, { tenantId, apiKey }: Call): Promise<number | undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(timeIsUp()), maxAskMs);
  try {
    const request = { operation: operations.getCredits, path: {}, query: {}, tenantId, apiKey, signal: late.signal };
    const { value } = await send(request);
    return (value as CreditStatusAnswer).credits ?? undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
