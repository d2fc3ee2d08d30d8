import * as z from 'zod';
import type { Receipt } from '../api/call.ts';
import { type Failure, mayBeCharged } from '../api/errors.ts';
import { word } from '../present/safe-text.ts';
import { untrustedId } from '../present/tokens.ts';

/** `receipt` of every successful result. Null where the service sent no header. */
export const ReceiptView = z.looseObject({
  charged: z.number().nullable(),
  remaining: z.number().nullable(),
  cached: z.boolean(),
  requestId: z.string().nullable(),
});
export type ReceiptView = z.infer<typeof ReceiptView>;

export const viewReceipt = (receipt: Receipt | undefined): ReceiptView => ({
  charged: receipt?.charged ?? null,
  remaining: receipt?.remaining ?? null,
  cached: receipt?.cached ?? false,
  requestId: receipt?.requestId ? untrustedId(receipt.requestId) : null,
});

/** Of a tool that needed no call. */
export const nothingSent: Receipt = { charged: 0, remaining: null, cached: true, requestId: null };

// Created when first needed: the first one takes a good part of the time in which a process starts.
let numberFormat: Intl.NumberFormat | undefined;
function formatCredits(credits: number): string {
  if (Number.isInteger(credits) && credits < 1000) return String(credits);
  numberFormat ??= new Intl.NumberFormat('en-US');
  return numberFormat.format(credits);
}

/** The credits line of a result. */
export function receiptText({ charged, remaining, cached, requestId }: ReceiptView, age: number | undefined): string {
  const spent = cached
    ? `nothing charged${sourceText(age, requestId)}`
    : charged === null
      ? 'not reported for this call'
      : `${formatCredits(charged)} charged`;
  const left = remaining === null ? '' : `, ${formatCredits(remaining)} left`;
  return `Credits: ${spent}${left}${requestId === null ? '' : `. Request ${word(requestId)}`}`;
}

/** The credits line of a tool that makes several calls. */
export function receiptSumText(receipt: ReceiptView & { calls: number }, atLeast: number): string {
  const { charged, remaining, requestId, calls } = receipt;
  const spent = charged === null ? `at least ${formatCredits(atLeast)} charged` : `${formatCredits(charged)} charged`;
  const made = calls === 0 ? 'nothing charged, no calls' : `${spent} for ${calls} ${calls === 1 ? 'call' : 'calls'}`;
  const left = remaining === null ? '' : `, ${formatCredits(remaining)} left`;
  return `Credits: ${made}${left}${requestId === null ? '' : `. Last request ${word(requestId)}`}`;
}

/** The same for one that failed, if the calls before had a cost. */
export function earlierCostText(receipts: Receipts): string {
  const [sum, atLeast] = [receipts.sum(), receipts.atLeast()];
  return sum.calls > 1 && atLeast > 0 ? receiptSumText(sum, atLeast) : '';
}

function sourceText(age: number | undefined, requestId: string | null): string {
  if (age !== undefined) return ` (cached ${ageText(age)})`;
  return requestId === null ? '' : ' (shared with an identical call)';
}

function ageText(ms: number): string {
  if (ms < 1000) return 'just now';
  if (ms < 120_000) return `${Math.round(ms / 1000)} s ago`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min ago`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h ago` : `${Math.round(ms / 86_400_000)} days ago`;
}

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
