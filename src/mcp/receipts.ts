import type { Receipt } from '../api/call.ts';
import { type Failure, mayBeCharged } from '../api/errors.ts';
import { roundCredits } from '../credits/credit-text.ts';
import type { Tool } from '../tools/tool.ts';
import { dayMs } from '../views/durations.ts';
import { formatCreditAmount, formatNumber } from '../views/numbers.ts';
import { quoteUnlessWord } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import type { ReceiptView } from './described-tools.ts';

/**
 * The number of tokens that every result reserves for the line about credits and for the notice, e.g. that the ads are
 * demo data.
 */
export const receiptTokens = 160;
/** The number of UTF-8 bytes that every result reserves for the line about credits and for the notice. */
export const receiptBytes = 1000;

/** The cost of a tool call, as data and as the line of text about credits. */
export interface CallCost {
  receipt: ReceiptView;
  creditsLine: string;
}

/** Collects the receipts of the API calls that one tool call makes. */
export class Receipts {
  readonly #receipts: Receipt[] = [];

  readonly add = (receipt: Receipt): void => void this.#receipts.push(receipt);

  /**
   * Records the charge of a failed API call. The charge is the one that the service reported. Otherwise, it is null
   * (unknown) if the call may have been charged, and 0 if not. A charge that another receipt counts is recorded as 0.
   */
  readonly addFailure = (failure: Failure): void => {
    const { isChargeShared, requestId = null, isPaid, wasSent, storage } = failure;
    const charged = isChargeShared ? 0 : failure.charged;
    const unreportedCharge = isPaid && mayBeCharged(failure) ? null : 0;
    if (wasSent !== false && !storage)
      this.add({ charged: charged ?? unreportedCharge, remaining: null, cached: false, requestId });
  };

  buildCost({ operations, makesSeveralCalls }: Tool): CallCost {
    if (makesSeveralCalls || this.#listSentReceipts().length > 1) return this.#buildTotalCost();
    const lastReceipt = this.#receipts.at(-1);
    const isFree = operations.length === 0 && (lastReceipt?.charged ?? null) === null;
    return buildSingleCost(isFree ? unsentReceipt : lastReceipt);
  }

  /** Returns the sum of the known charges for this tool call, in credits. */
  sumKnownCharges(): number {
    const knownCharges = this.#listSentReceipts().reduce((sum, receipt) => sum + (receipt.charged ?? 0), 0);
    return roundCredits(knownCharges);
  }

  /** Returns true if this tool call has sent a request to the service, even if the request failed. */
  hasSentRequests(): boolean {
    return this.#listSentReceipts().length > 0;
  }

  /**
   * Formats the charges of a failed tool call. Returns an empty string if the call cost nothing or if the error message
   * already states the charge.
   */
  formatEarlierCharges(failure: Failure | undefined): string {
    const sentReceipts = this.#listSentReceipts();
    const errorStatesCharge = failure !== undefined && failure.wasSent !== false && !failure.storage;
    if ((errorStatesCharge && sentReceipts.length === 1) || sentReceipts.every(({ charged }) => charged === 0))
      return '';
    return this.#buildTotalCost().creditsLine;
  }

  #listSentReceipts = (): Receipt[] => this.#receipts.filter(({ cached }) => !cached);

  #buildTotalCost(): CallCost {
    const sentReceipts = this.#listSentReceipts();
    const knownCharges = this.sumKnownCharges();
    const charged = sentReceipts.some((receipt) => receipt.charged === null) ? null : knownCharges;
    const remaining = this.#receipts.findLast((receipt) => receipt.remaining !== null)?.remaining ?? null;
    const requestId = sanitizeRequestId(sentReceipts.at(-1));
    const calls = sentReceipts.length;
    const spent = `${charged === null ? 'at least ' : ''}${formatCreditAmount(knownCharges)} charged`;
    const charges =
      calls === 0 ? 'nothing charged, no calls' : `${spent} for ${calls} ${calls === 1 ? 'call' : 'calls'}`;
    const unusable = this.#receipts.reduce((sum, receipt) => sum + (receipt.unusableCount ?? 0), 0);
    const receipt = { charged, remaining, cached: calls === 0, requestId, calls, ...(unusable > 0 && { unusable }) };
    return { receipt, creditsLine: formatCreditsLine(charges, receipt, 'Last request') };
  }
}

const unsentReceipt: Receipt = { charged: 0, remaining: null, cached: true, requestId: null };

function buildSingleCost(received: Receipt | undefined): CallCost {
  const { charged = null, remaining = null, cached = false, ageMs, unusableCount } = received ?? {};
  const requestId = sanitizeRequestId(received);
  const receipt = {
    charged,
    remaining,
    cached,
    requestId,
    ...(unusableCount !== undefined && { unusable: unusableCount }),
  };
  const shared = requestId === null ? '' : ' (shared with an identical call)';
  const how = ageMs === undefined ? shared : ` (cached ${formatAge(ageMs)})`;
  const spent = charged === null ? 'not reported for this call' : `${formatCreditAmount(charged)} charged`;
  return { receipt, creditsLine: formatCreditsLine(cached ? `nothing charged${how}` : spent, receipt, 'Request') };
}

const sanitizeRequestId = (receipt: Receipt | undefined) => (receipt?.requestId ? sanitizeId(receipt.requestId) : null);

function formatCreditsLine(spent: string, { remaining, requestId, unusable }: ReceiptView, request: string): string {
  const remainingText = remaining === null ? '' : `, ${formatCreditAmount(remaining)} left`;
  const creditsLine = `Credits: ${spent}${remainingText}${requestId === null ? '' : `. ${request} ${quoteUnlessWord(requestId)}`}`;
  return unusable === undefined ? creditsLine : `${formatUnusableItems(unusable)}\n${creditsLine}`;
}

/**
 * Formats a note about items without an id, which are left out of the result. Users need the note because the service
 * charges for the whole page.
 */
const formatUnusableItems = (unusableCount: number) =>
  unusableCount === 1
    ? '1 item that the service sent has no id and is left out. It counts in what was charged for its page.'
    : `${formatNumber(unusableCount)} items that the service sent have no id and are left out. They count in what was charged for their page.`;

function formatAge(ms: number): string {
  if (ms < 1000) return 'just now';
  if (ms < 120_000) return `${Math.round(ms / 1000)} s ago`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min ago`;
  return ms < 2 * dayMs ? `${Math.round(ms / 3_600_000)} h ago` : `${Math.round(ms / dayMs)} days ago`;
}
