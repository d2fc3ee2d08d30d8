import { type Failure, mayBeCharged } from '../api/errors.ts';
import type { Receipt } from '../api/send.ts';
import { type ReceiptView, viewReceipt } from './receipt.ts';

/** The receipts of one tool call. */
export interface Receipts {
  add(receipt: Receipt): void;
  /** A failed call costs what the service stated, which is nothing or unknown if it stated nothing. */
  addFailure(failure: Failure): void;
  /** The last one, for a tool that makes one call. */
  last(): Receipt | undefined;
  /** All of them in one, for a tool that makes several calls. */
  sum(): ReceiptView & { calls: number };
  /** What is known to have been charged, where some of it is not. */
  atLeast(): number;
  warning(): string | undefined;
}

export function collectReceipts(): Receipts {
  const all: Receipt[] = [];
  const sent = () => all.filter(({ cached }) => !cached);
  const atLeast = () => rounded(sent().reduce((sum, { charged }) => sum + (charged ?? 0), 0));
  return {
    add: (receipt) => void all.push(receipt),
    addFailure: (failure) => {
      if (failure.sent !== false) all.push(receiptOf(failure));
    },
    last: () => all.at(-1),
    atLeast,
    sum: () => {
      const calls = sent();
      const isUnknown = calls.some(({ charged }) => charged === null);
      const { requestId } = viewReceipt(calls.at(-1));
      const remaining = all.findLast((receipt) => receipt.remaining !== null)?.remaining ?? null;
      const charged = isUnknown ? null : atLeast();
      return { charged, remaining, cached: calls.length === 0, requestId, calls: calls.length };
    },
    warning: () => all.findLast(({ warning }) => warning !== undefined)?.warning,
  };
}

function receiptOf(failure: Failure): Receipt {
  const { charged, requestId = null, paid } = failure;
  const unknown = paid && mayBeCharged(failure) ? null : 0;
  return { charged: charged ?? unknown, remaining: null, cached: false, requestId };
}

const rounded = (credits: number) => Math.round(credits * 1e6) / 1e6;
