import { timeIsUp } from '../api/abort.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Call, Send } from '../api/send.ts';
import type { CreditLedger } from './credit-ledger.ts';

/**
 * What a call was charged where the service does not say so, found out from the balance before and after. It is asked
 * only for calls of an operation that never stated a charge, which go one at a time.
 */
export interface BalanceOptions {
  send: Send;
  call: Call;
  ledger: CreditLedger;
}

/** How long a question for the balance may take, in milliseconds: somebody's call waits for it. */
const maxAskMs = 5000;

/** Reads the balance before such a call. What an earlier call of unknown fate was charged late is counted now. */
export async function readBalanceBefore({ send, call, ledger }: BalanceOptions): Promise<void> {
  const { tenantId } = call;
  const credits = await askBalance(send, call);
  const earlier = await ledger.readBalance(tenantId, credits);
  if (earlier === undefined || credits === undefined) return;
  const late = earlier.credits - credits - earlier.explained;
  if (late > 0) await ledger.settle(tenantId, { charged: 0, uncertain: late, isPaidAnswer: false });
}

/**
 * What the balance fell by since then, less what other calls were charged; undefined where there is no balance to read.
 * A reading that shows no change after a call without an answer is kept: the charge may still come.
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
    const question = { operation: operations.getCredits, path: {}, query: {}, tenantId, apiKey, signal: late.signal };
    const { value } = await send(question);
    return (value as CreditStatusAnswer).credits ?? undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
